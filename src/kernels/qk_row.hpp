// Scores of one or two query rows, lanes across keys.
//
//   scores[r][j] = factor * sum_d query[d][r] * key[j][d]
//
// With so few rows, lanes across queries would stay empty. Squares of kW keys by kW columns are transposed in registers
// instead, so the keys are read in order, whole vectors at a time. The sum over d runs in the same order as in
// qk_tile.hpp: a row alone has the bits it has among others.
#pragma once

#include <cstddef>

#include "kernels/qk_tile.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

/// kGroups vectors of keys against kRows rows. `query` is [d][query_step], `scores` rows are kBc apart.
template <class Arch, std::size_t kRows, std::size_t kGroups>
SDPA_INLINE void qk_row_tile(const float* key, std::size_t key_stride, const float* query, std::size_t query_step,
                             std::size_t head_dim, float factor, float* scores) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  using V = simd::Batch<Arch>;
  V acc[kGroups][kRows];
  for (std::size_t g = 0; g < kGroups; ++g) {
    for (std::size_t r = 0; r < kRows; ++r) acc[g][r] = V(0.0F);
  }
  std::size_t d = 0;
  SDPA_NO_UNROLL
  for (; d + kW <= head_dim; d += kW) {
    for (std::size_t g = 0; g < kGroups; ++g) {
      V square[kW];
      for (std::size_t k = 0; k < kW; ++k) square[k] = simd::load<Arch>(key + (g * kW + k) * key_stride + d);
      simd::transpose<Arch>(square);
      for (std::size_t k = 0; k < kW; ++k) {
        for (std::size_t r = 0; r < kRows; ++r) {
          acc[g][r] = simd::madd<Arch>(square[k], simd::splat<Arch>(query[(d + k) * query_step + r]), acc[g][r]);
        }
      }
    }
  }
  for (; d < head_dim; ++d) {
    for (std::size_t g = 0; g < kGroups; ++g) {
      float column[kW];
      for (std::size_t k = 0; k < kW; ++k) column[k] = key[(g * kW + k) * key_stride + d];
      for (std::size_t r = 0; r < kRows; ++r) {
        acc[g][r] =
            simd::madd<Arch>(simd::load<Arch>(column), simd::splat<Arch>(query[d * query_step + r]), acc[g][r]);
      }
    }
  }
  const V f = simd::splat<Arch>(factor);
  for (std::size_t g = 0; g < kGroups; ++g) {
    for (std::size_t r = 0; r < kRows; ++r) simd::store<Arch>(scores + r * kBc + g * kW, acc[g][r] * f);
  }
}

/// All of `keys` keys; scores up to the next multiple of the width are set to `padding`.
template <class Arch, std::size_t kRows>
SDPA_NOINLINE void qk_rows(const float* key, std::size_t key_stride, std::size_t keys, const float* query,
                           std::size_t query_step, std::size_t head_dim, float factor, float padding, Ahead ahead, float* scores) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  constexpr std::size_t kGroups = 4 / kRows;  // chains enough to hide the latency, registers enough for a square
  constexpr std::size_t kKeys = kGroups * kW;
  for (; keys >= kKeys; keys -= kKeys) {
    if (ahead.value != nullptr) {
      const float* next = keys >= 2 * kKeys ? key + kKeys * key_stride : nullptr;
      ahead.touch(kKeys, next, key_stride, head_dim);
    }
    qk_row_tile<Arch, kRows, kGroups>(key, key_stride, query, query_step, head_dim, factor, scores);
    key += kKeys * key_stride;
    scores += kKeys;
  }
  for (; keys >= kW; keys -= kW) {
    qk_row_tile<Arch, kRows, 1>(key, key_stride, query, query_step, head_dim, factor, scores);
    key += kW * key_stride;
    scores += kW;
  }
  if (keys == 0) return;
  for (std::size_t r = 0; r < kRows; ++r) simd::store<Arch>(scores + r * kBc, simd::splat<Arch>(padding));
  for (std::size_t j = 0; j < keys; ++j) {
    // Every lane computes the same key; a scalar sum would not have to round as the vectors do.
    simd::Batch<Arch> acc[kRows];
    for (std::size_t r = 0; r < kRows; ++r) acc[r] = simd::splat<Arch>(0.0F);
    for (std::size_t d = 0; d < head_dim; ++d) {
      const auto k = simd::splat<Arch>(key[j * key_stride + d]);
      for (std::size_t r = 0; r < kRows; ++r) {
        acc[r] = simd::madd<Arch>(k, simd::splat<Arch>(query[d * query_step + r]), acc[r]);
      }
    }
    for (std::size_t r = 0; r < kRows; ++r) {
      float lanes[kW];
      simd::store<Arch>(lanes, acc[r] * simd::splat<Arch>(factor));
      scores[r * kBc + j] = lanes[0];
    }
  }
}

}  // namespace sdpa::kernels
