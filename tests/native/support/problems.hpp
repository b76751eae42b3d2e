// Making problems for the tests, and describing them in a failure's message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "reference/attention.hpp"
#include "support/random.hpp"

namespace sdpa::testing {

using reference::Align;
using reference::Broadcast;
using reference::Problem;

// L, S, D, then the sizes that are mostly 1; Dv = 0 means the same as D.
struct Shape {
  std::size_t seqlen_q = 1;
  std::size_t seqlen_kv = 1;
  std::size_t head_dim = 1;
  std::size_t head_dim_v = 0;
  std::size_t batch = 1;
  std::size_t num_heads = 1;
  std::size_t num_kv_heads = 1;
};

// Unit normal query, key and value, no option, scale 1 / sqrt(D).
Problem make_problem(const Shape& shape, std::uint64_t seed = 1);

// The same with a lower-right causal bound.
Problem make_causal(const Shape& shape, std::uint64_t seed = 1);

// A boolean mask of those extents in which each cell attends with that probability.
Broadcast<std::uint8_t> random_mask(Random& random, std::array<std::size_t, 4> extents, double probability = 0.7);

// A unit normal bias of those extents.
Broadcast<float> random_bias(Random& random, std::array<std::size_t, 4> extents);

// A problem with every size and option drawn at random: sizes around tile bounds and small ones, any mix of options.
Problem random_problem(std::uint64_t seed);

std::string describe(const Problem& problem);

}  // namespace sdpa::testing
