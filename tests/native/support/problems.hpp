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

// A boolean mask of those extents made of tiles of 64 x 64 cells: empty, full or drawn cell by cell, a third each.
Broadcast<std::uint8_t> random_block_mask(Random& random, std::array<std::size_t, 4> extents);

// `count` ascending starts from 0 to at most `length`; some sequences are empty.
std::vector<std::int32_t> random_starts(Random& random, std::size_t count, std::size_t length);

// (batch, length) ids of one of `ids` segments each, in runs.
std::vector<std::int32_t> random_segments(Random& random, std::size_t batch, std::size_t length, std::int32_t ids);

// A problem with every size and option drawn at random: sizes around tile bounds and small ones, any mix of options.
Problem random_problem(std::uint64_t seed);

std::string describe(const Problem& problem);

}  // namespace sdpa::testing
