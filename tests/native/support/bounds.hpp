// Problems that exclude keys, one for each kind of bound, for tests of what may not leak.
#pragma once

#include <cstddef>

#include "support/problems.hpp"

namespace sdpa::testing {

inline constexpr std::size_t kQueries = 59;
inline constexpr std::size_t kKeys = 203;
inline constexpr std::size_t kHeadDim = 9;
inline constexpr std::size_t kHeadDimV = 6;

// Each kind of bound, alone, and all of them together.
struct Bound {
  const char* name;
  void (*apply)(Problem&, Random&);
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
};

inline Problem bounded(const Bound& bound) {
  Problem p = make_problem({.seqlen_q = kQueries,
                            .seqlen_kv = kKeys,
                            .head_dim = kHeadDim,
                            .head_dim_v = kHeadDimV,
                            .batch = 2,
                            .num_heads = 2,
                            .num_kv_heads = 1});
  Random random(17);
  bound.apply(p, random);
  return p;
}

}  // namespace sdpa::testing
