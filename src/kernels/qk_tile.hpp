// S^T = K Q^T of one panel of queries, lanes across queries.
//
//   scores[j][i] = factor * sum_d key[j][d] * query[d][i]
//
// key (keys, head_dim) is read where it lies, one splat load an element, so any head_dim will do; query is a packed
// panel [d][2 vectors]; scores is [key][row] with `score_stride` floats between keys. Register tile kMr keys x 2
// vectors: 2 loads and kMr splats per 2 kMr multiply-adds. The sum over d runs in order in every build of the tile, so
// the bits of a score do not depend on its neighbours.
#pragma once

#include <cstddef>

#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

template <class Arch, std::size_t kKeys>
inline void qk_register_tile(const float* key, std::size_t key_stride, const float* query, std::size_t head_dim,
                             float factor, float* scores, std::size_t score_stride) {
  static_assert(kKeys >= 1 && kKeys <= TileSize<Arch>::kMr);
  constexpr std::size_t kW = simd::kWidth<Arch>;
  using V = simd::Batch<Arch>;
  V acc[kKeys][kNr];
  const float* row[kKeys];
  for (std::size_t m = 0; m < kKeys; ++m) {
    acc[m][0] = acc[m][1] = V(0.0F);
    row[m] = key + m * key_stride;
  }
  SDPA_NO_UNROLL
  for (std::size_t d = 0; d < head_dim; ++d) {
    const V q0 = simd::load<Arch>(query);
    const V q1 = simd::load<Arch>(query + kW);
    query += kNr * kW;
    for (std::size_t m = 0; m < kKeys; ++m) {
      const V k = simd::splat<Arch>(*row[m]++);
      acc[m][0] = simd::madd<Arch>(k, q0, acc[m][0]);
      acc[m][1] = simd::madd<Arch>(k, q1, acc[m][1]);
    }
  }
  const V f = simd::splat<Arch>(factor);
  for (std::size_t m = 0; m < kKeys; ++m, scores += score_stride) {
    simd::store<Arch>(scores, acc[m][0] * f);
    simd::store<Arch>(scores + kW, acc[m][1] * f);
  }
}

/// All of `keys` keys against one panel.
template <class Arch>
SDPA_NOINLINE void qk_panel(const float* key, std::size_t key_stride, std::size_t keys, const float* query,
                            std::size_t head_dim, float factor, float* scores, std::size_t score_stride) {
  constexpr std::size_t kMr = TileSize<Arch>::kMr;
  for_each_row_tile<kMr>(keys, [&](std::size_t first, std::size_t n) {
    with_constant<kMr>(n, [&](auto constant) {
      qk_register_tile<Arch, constant()>(key + first * key_stride, key_stride, query, head_dim, factor,
                                         scores + first * score_stride, score_stride);
    });
  });
}

}  // namespace sdpa::kernels
