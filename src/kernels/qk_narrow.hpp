// Scores of keys of 8 and 16 bits against one vector of query rows, widened in registers.
//
//   scores[j][i] = factor * sum_d query[d][i] * key[j][d], times the scale of key j where it has one
//
// Four keys at a time: 16 bytes of each are transposed as words, so that lanes run across keys, and each word gives two
// or four columns of d. The sum over d runs in the order of qk_tile.hpp and each product has the same value, so a score
// has the bits that it has from rows widened in memory. For one row two squares go side by side, for the latency.
#pragma once

#include <cstddef>
#include <utility>

#include "kernels/qk_tile.hpp"
#include "kernels/tile_size.hpp"
#include "simd/narrow.hpp"

namespace sdpa::kernels {

#if defined(__wasm_simd128__)

/// kSquares squares of four keys and kRows rows; `keys` says how many of the keys are there. `scores` is [key] for one
/// row and [key][row] for a vector of them.
template <class Arch, class Element, std::size_t kRows, std::size_t kSquares>
SDPA_INLINE void qk_narrow_tile(simd::Narrow<Arch, Element>& narrow, const Element* key, std::size_t key_stride,
                                std::size_t keys, const float* query, std::size_t head_dim, float factor,
                                const float* scales, float* scores, KeyAndValueLines& ahead) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  constexpr std::size_t kPerWord = simd::Narrow<Arch, Element>::kPerWord;
  constexpr std::size_t kStep = kW * kPerWord;
  constexpr std::size_t kLine = 64 / sizeof(Element);
  using V = simd::Batch<Arch>;
  static_assert(kW == 4 && (kRows == 1 || kRows == kW));
  V acc[kSquares][kRows];
  const Element* row[kSquares][kW];
  for (std::size_t s = 0; s < kSquares; ++s) {
    for (std::size_t r = 0; r < kRows; ++r) acc[s][r] = V(0.0F);
    for (std::size_t k = 0; k < kW; ++k) {
      const std::size_t j = s * kW + k;
      row[s][k] = key + (j < keys ? j : keys - 1) * key_stride;
    }
  }
  SDPA_NO_UNROLL
  for (std::size_t d = 0; d < head_dim; d += kStep) {
    if (d % kLine == 0) ahead.touch<kSquares * kW>();
    v128_t words[kSquares][kW];
    for (std::size_t s = 0; s < kSquares; ++s) simd::load_columns<Arch, Element>(narrow, row[s], d, words[s]);
    const auto column = [&]<std::size_t kPlace>(std::size_t w) SDPA_INLINE_LAMBDA {
      const float* q = query + (w * kPerWord + kPlace) * kW;
      for (std::size_t s = 0; s < kSquares; ++s) {
        const V k = narrow.template column<kPlace>(words[s][w]);
        for (std::size_t r = 0; r < kRows; ++r) acc[s][r] = simd::madd<Arch>(k, simd::splat<Arch>(q[r]), acc[s][r]);
      }
    };
    for (std::size_t w = 0; w < kW; ++w) {
      [&]<std::size_t... kPlace>(std::index_sequence<kPlace...>) SDPA_INLINE_LAMBDA {
        (column.template operator()<kPlace>(w), ...);
      }
      (std::make_index_sequence<kPerWord>());
    }
    query += kStep * kW;
  }
  const V f = simd::splat<Arch>(factor);
  const V after = simd::splat<Arch>(simd::Narrow<Arch, Element>::kAfter);
  for (std::size_t s = 0; s < kSquares; ++s) {
    for (std::size_t r = 0; r < kRows; ++r) {
      acc[s][r] = acc[s][r] * after * f;
      if (scales != nullptr) acc[s][r] = acc[s][r] * simd::load<Arch>(scales + s * kW);
    }
    if constexpr (kRows == 1) {
      simd::store<Arch>(scores + s * kW, acc[s][0]);
    } else {
      simd::transpose<Arch>(acc[s]);
      for (std::size_t k = 0; k < kW && s * kW + k < keys; ++k) {
        simd::store<Arch>(scores + (s * kW + k) * kScoreStride<Arch>, acc[s][k]);
      }
    }
  }
}

/// All of `keys` keys of a run; with one row, what is written goes on to two whole vectors. False, and nothing of use
/// in `scores`, where a key is infinite or NaN.
template <class Arch, class Element, std::size_t kRows>
SDPA_NOINLINE bool qk_narrow(const Element* key, std::size_t key_stride, std::size_t keys, const float* query,
                             std::size_t head_dim, float factor, const float* scales, KeysAndValuesAhead& ahead,
                             float* scores) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  constexpr std::size_t kSquares = kRows == 1 ? 2 : 1;
  constexpr std::size_t kKeys = kSquares * kW;
  constexpr std::size_t kStep = kRows == 1 ? 1 : kScoreStride<Arch>;
  simd::Narrow<Arch, Element> narrow;
  KeyAndValueLines now = ahead.lines;
  while (keys != 0) {
    ahead.refill(now);
    const std::size_t n = keys < kKeys ? keys : kKeys;
    qk_narrow_tile<Arch, Element, kRows, kSquares>(narrow, key, key_stride, n, query, head_dim, factor, scales, scores,
                                                   now);
    key += n * key_stride;
    scores += n * kStep;
    if (scales != nullptr) scales += n;
    keys -= n;
  }
  ahead.lines = now;
  return narrow.all_finite();
}

#endif

}  // namespace sdpa::kernels
