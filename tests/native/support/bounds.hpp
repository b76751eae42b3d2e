// Problems that exclude keys, one for each kind of bound, for tests of what may not leak.
#pragma once

#include <cstddef>

#include "support/problems.hpp"

namespace sdpa::testing {

inline constexpr std::size_t kQueries = 59;
inline constexpr std::size_t kKeys = 203;
inline constexpr std::size_t kHeadDim = 9;
inline constexpr std::size_t kHeadDimV = 6;

// Each kind of bound, alone, and many of them together.
struct Bound {
  const char* name;
  void (*apply)(Problem&, Random&);
  std::size_t batch = 2;
};

inline constexpr Bound kBounds[] = {
    {"causal lower-right",
     [](Problem& p, Random&) {
       p.causal = true;
       p.align = Align::kLowerRight;
     }},
    {"causal upper-left",
     [](Problem& p, Random&) {
       p.causal = true;
       p.align = Align::kUpperLeft;
     }},
    {"causal with rows before the first key",
     [](Problem& p, Random&) {
       p.causal = true;
       p.align = Align::kOffset;
       p.query_offset = -30;
     }},
    {"window",
     [](Problem& p, Random&) {
       p.window_left = 7;
       p.window_right = 5;
       p.align = Align::kLowerRight;
     }},
    {"window to the left",
     [](Problem& p, Random&) {
       p.window_left = 40;
       p.align = Align::kLowerRight;
     }},
    {"key lengths",
     [](Problem& p, Random&) {
       p.kv_lengths = {101, 3};
     }},
    {"mask",
     [](Problem& p, Random& r) {
       p.mask = random_mask(r, {2, 2, kQueries, kKeys}, 0.5);
     }},
    {"sparse mask",
     [](Problem& p, Random& r) {
       p.mask = random_mask(r, {1, 1, kQueries, kKeys}, 0.02);
     }},
    {"mask of columns",
     [](Problem& p, Random& r) {
       p.mask = random_mask(r, {1, 1, 1, kKeys}, 0.5);
     }},
    {"all",
     [](Problem& p, Random& r) {
       p.causal = true;
       p.align = Align::kLowerRight;
       p.window_left = 90;
       p.kv_lengths = {201, 120};
       p.query_lengths = {57, 20};
       p.softcap = 3;
       p.bias = random_bias(r, {1, 1, kQueries, kKeys});
       p.mask = random_mask(r, {2, 1, kQueries, kKeys}, 0.8);
     }},
    {"chunk",
     [](Problem& p, Random&) {
       p.chunk = 37;
       p.align = Align::kLowerRight;
     }},
    {"global keys and a window far from them",
     [](Problem& p, Random&) {
       p.global_keys = 5;
       p.window_left = 7;
       p.window_right = 5;
       p.align = Align::kLowerRight;
     }},
    {"global keys and a chunk",
     [](Problem& p, Random&) {
       p.causal = true;
       p.global_keys = 50;
       p.chunk = 20;
       p.align = Align::kLowerRight;
     }},
    {"segments in order",
     [](Problem& p, Random&) {
       for (std::size_t n = 0; n < 2 * kQueries; ++n) p.query_segments.push_back(static_cast<std::int32_t>(n / 25));
       for (std::size_t n = 0; n < 2 * kKeys; ++n) p.key_segments.push_back(static_cast<std::int32_t>(n / 70));
     }},
    {"segments in any order",
     [](Problem& p, Random& r) {
       p.query_segments = random_segments(r, 2, kQueries, 3);
       p.key_segments = random_segments(r, 2, kKeys, 3);
     }},
    {"packed sequences",
     [](Problem& p, Random&) {
       p.query_starts = {0, 9, 9, 30, 55};
       p.key_starts = {0, 40, 97, 97, 180};
       p.causal = true;
       p.align = Align::kUpperLeft;
     },
     1},
    {"block mask",
     [](Problem& p, Random& r) {
       p.block_mask = random_block_mask(r, {2, 2, kQueries, kKeys});
     }},
    {"all of these, with sinks and slopes",
     [](Problem& p, Random& r) {
       p.global_keys = 3;
       p.chunk = 50;
       p.align = Align::kLowerRight;
       p.query_segments = random_segments(r, 2, kQueries, 2);
       p.key_segments = random_segments(r, 2, kKeys, 2);
       p.block_mask = random_block_mask(r, {1, 2, kQueries, kKeys});
       p.mask = random_mask(r, {2, 1, kQueries, kKeys}, 0.8);
       p.alibi_slopes = {{0.5F, 0.1F}, false};
       p.sinks = {{1, 2, -1, 0}, true};
     }},
};

// Whether row `row` of batch, head and query in this order sees no key at all.
inline bool sees_nothing(const Problem& p, std::size_t row) {
  for (std::size_t j = 0; j < p.seqlen_kv; ++j) {
    if (p.allowed(row / (p.num_heads * p.seqlen_q), row / p.seqlen_q % p.num_heads, row % p.seqlen_q, j)) return false;
  }
  return true;
}

inline Problem bounded(const Bound& bound) {
  Problem p = make_problem({.seqlen_q = kQueries,
                            .seqlen_kv = kKeys,
                            .head_dim = kHeadDim,
                            .head_dim_v = kHeadDimV,
                            .batch = bound.batch,
                            .num_heads = 2,
                            .num_kv_heads = 1});
  Random random(17);
  bound.apply(p, random);
  return p;
}

}  // namespace sdpa::testing
