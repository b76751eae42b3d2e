// Scores of one query row, lanes across keys.
//
//   scores[j] = factor * sum_d query[d] * key[j][d]
//
// With one row, lanes across queries would stay empty. Squares of kW keys by kW columns are transposed in registers
// instead, so the keys are read in order, whole vectors at a time. The sum over d runs in the same order as in
// qk_tile.hpp: a row alone has the bits it has among others.
#pragma once

#include <cstddef>

#include "kernels/qk_tile.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

// Vectors of keys at once: chains enough to hide the latency, registers enough for a square besides.
inline constexpr std::size_t kRowGroups = 4;

template <class Arch>
inline constexpr std::size_t kRowKeys = kRowGroups* simd::kWidth<Arch>;

/// kGroups vectors of keys. `query` is a packed panel of one vector of rows, of which the first counts.
template <class Arch, std::size_t kGroups>
SDPA_INLINE void qk_row_tile(const float* key, std::size_t key_stride, const float* query, std::size_t head_dim,
                             float factor, KeyAndValueLines& ahead, float* scores) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  using V = simd::Batch<Arch>;
  V acc[kGroups];
  for (std::size_t g = 0; g < kGroups; ++g) acc[g] = V(0.0F);
  std::size_t d = 0;
  SDPA_NO_UNROLL
  for (; d + kW <= head_dim; d += kW, query += kW * kW) {
    if (d % Lines::kFloats == 0) ahead.touch<kGroups * kW>();
    for (std::size_t g = 0; g < kGroups; ++g) {
      V square[kW];
      for (std::size_t k = 0; k < kW; ++k) square[k] = simd::load<Arch>(key + (g * kW + k) * key_stride + d);
      simd::transpose<Arch>(square);
      for (std::size_t k = 0; k < kW; ++k) {
        acc[g] = simd::madd<Arch>(square[k], simd::splat<Arch>(query[k * kW]), acc[g]);
      }
    }
  }
  for (; d < head_dim; ++d, query += kW) {
    for (std::size_t g = 0; g < kGroups; ++g) {
      float column[kW];
      for (std::size_t k = 0; k < kW; ++k) column[k] = key[(g * kW + k) * key_stride + d];
      acc[g] = simd::madd<Arch>(simd::load<Arch>(column), simd::splat<Arch>(*query), acc[g]);
    }
  }
  const V f = simd::splat<Arch>(factor);
  for (std::size_t g = 0; g < kGroups; ++g) simd::store<Arch>(scores + g * kW, acc[g] * f);
}

/// All of `keys` keys.
template <class Arch>
SDPA_NOINLINE void qk_row(const float* key, std::size_t key_stride, std::size_t keys, const float* query,
                          std::size_t head_dim, float factor, KeysAndValuesAhead& ahead, float* scores) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  constexpr std::size_t kKeys = kRowKeys<Arch>;
  KeyAndValueLines now = ahead.lines;
  for (; keys >= kKeys; keys -= kKeys) {
    ahead.refill(now);
    qk_row_tile<Arch, kRowGroups>(key, key_stride, query, head_dim, factor, now, scores);
    key += kKeys * key_stride;
    scores += kKeys;
  }
  for (; keys >= kW; keys -= kW) {
    qk_row_tile<Arch, 1>(key, key_stride, query, head_dim, factor, now, scores);
    key += kW * key_stride;
    scores += kW;
  }
  ahead.lines = now;
  for (std::size_t j = 0; j < keys; ++j) {
    float lanes[kW];
    qk_register_tile<Arch, 1, 1>(key + j * key_stride, key_stride, query, head_dim, factor, lanes);
    scores[j] = lanes[0];
  }
}

}  // namespace sdpa::kernels
