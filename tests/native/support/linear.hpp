// Calls of linear attention with their numbers, and their recurrence in double.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sdpa/linear.hpp"
#include "support/random.hpp"

namespace sdpa::testing {

inline std::size_t count(const Extents& e) { return e[0] * e[1] * e[2] * e[3]; }

struct LinearProblem {
  std::size_t batch = 1;
  std::size_t heads = 2;
  std::size_t key_heads = 2;
  std::size_t states = 2;
  std::size_t queries = 5;
  std::size_t keys = 5;
  std::size_t head_dim = 3;
  std::size_t head_dim_v = 4;
  std::size_t decay_columns = 0;
  std::size_t beta_heads = 0;
  bool steps = false;
  bool with_skip = false;
  bool with_state = false;
  bool masked = false;
  Layout layout = Layout::kBhld;
  LinearOptions options;

  std::vector<float> query, key, value, decay, beta, step, rate, skip, state;
  std::vector<std::uint8_t> mask;

  std::size_t out_heads() const { return heads > states ? heads : states; }
  std::size_t columns() const { return head_dim_v + (options.normalised ? 1 : 0); }
  Extents query_extents() const { return {batch, heads, queries, head_dim}; }
  Extents key_extents() const { return {batch, key_heads, keys, head_dim}; }
  Extents value_extents() const { return {batch, states, keys, head_dim_v}; }
  Extents out_extents() const { return {batch, out_heads(), queries, head_dim_v}; }
  std::size_t state_size() const { return batch * states * head_dim * columns(); }
};

// Fills the tensors of a problem: keys of length 1, decays below 0, betas and steps between 0 and 1.
void fill(LinearProblem& problem, std::uint64_t seed);

// The arguments, without out and next_state.
LinearTensors tensors_of(const LinearProblem& problem);

struct LinearResult {
  std::vector<double> out;
  std::vector<double> state;
};

// A token at a time.
LinearResult linear_reference(const LinearProblem& problem);

}  // namespace sdpa::testing
