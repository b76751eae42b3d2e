// Sizes that several tables have in common.
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "grids/setting.hpp"

namespace sdpa::grids {

using Lengths = std::pair<std::size_t, std::size_t>;  // queries, keys

inline std::vector<Lengths> square(std::initializer_list<std::size_t> lengths) {
  std::vector<Lengths> result;
  for (const std::size_t length : lengths) result.emplace_back(length, length);
  return result;
}

// Each pair and its reverse.
inline std::vector<Lengths> both_ways(const std::vector<Lengths>& pairs) {
  std::vector<Lengths> result;
  for (const auto& [queries, keys] : pairs) {
    result.emplace_back(queries, keys);
    if (queries != keys) result.emplace_back(keys, queries);
  }
  return result;
}

struct Heads {
  std::size_t query;
  std::size_t key;
};

inline constexpr std::array kHeads{Heads{6, 6}, Heads{6, 2}, Heads{6, 1}};
inline constexpr std::array kManyHeadDims{32, 40, 59, 64, 80, 96, 111, 128, 160, 192, 224, 256};

// Lengths of flash-attention's tests of one call, and of those of causal calls.
inline const std::vector<Lengths> kFlash2Lengths{{113, 203}, {128, 217},   {113, 211},   {108, 256},   {256, 512},
                                                 {512, 256}, {1024, 1024}, {1023, 1024}, {1024, 1023}, {2048, 2048}};
inline const std::vector<Lengths> kFlash2CausalLengths{{1, 239},   {3, 799},   {127, 512}, {127, 513}, {113, 203},
                                                       {128, 217}, {113, 211}, {108, 256}, {256, 512}, {1023, 1024}};

// Calls f with the setting causal or not, with a window or not, with ALiBi or not.
template <class F>
void for_each_modifier(Setting s, F&& f) {
  for (const bool causal : {false, true}) {
    for (const Window window : {Window::kNone, Window::kBoth}) {
      for (const bool alibi : {false, true}) {
        s.causal = causal;
        s.window = window;
        s.alibi = alibi;
        f(s);
      }
    }
  }
}

}  // namespace sdpa::grids
