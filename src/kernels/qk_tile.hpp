// S^T = K Q^T of one panel of queries, lanes across queries.
//
//   scores[j][i] = factor * sum_d key[j][d] * query[d][i]
//
// key (keys, head_dim) is read where it lies, one splat load an element, so any head_dim will do; query is a packed
// panel [d][2 vectors]; scores is a tile [key][row]. Register tile kMr keys x 2
// vectors: 2 loads and kMr splats per 2 kMr multiply-adds. The sum over d runs in order in every build of the tile, so
// the bits of a score do not depend on its neighbours.
#pragma once

#include <cstddef>

#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

template <class Arch, std::size_t kKeys>
SDPA_INLINE void qk_register_tile(const float* key, std::size_t key_stride, const float* query, std::size_t head_dim,
                                  float factor, float* scores) {
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
  for (std::size_t m = 0; m < kKeys; ++m) {
    simd::store<Arch>(scores + m * kScoreStride<Arch>, acc[m][0] * f);
    simd::store<Arch>(scores + m * kScoreStride<Arch> + kW, acc[m][1] * f);
  }
}

/// All of `keys` keys against one panel.
template <class Arch>
SDPA_NOINLINE void qk_panel(const float* key, std::size_t key_stride, std::size_t keys, const float* query,
                            std::size_t head_dim, float factor, float* scores) {
  constexpr std::size_t kMr = TileSize<Arch>::kMr;
  const RowTiles tiles = split_rows<kMr>(keys);
  const auto run = [&](auto rows, std::size_t count) {
    for (std::size_t t = 0; t < count; ++t) {
      qk_register_tile<Arch, rows()>(key, key_stride, query, head_dim, factor, scores);
      key += rows() * key_stride;
      scores += rows() * kScoreStride<Arch>;
    }
  };
  if (tiles.tall != 0) with_constant<kMr>(tiles.rows, [&](auto rows) { run(rows, tiles.tall); });
  if (tiles.low != 0) with_constant<kMr>(tiles.rows - 1, [&](auto rows) { run(rows, tiles.low); });
}

}  // namespace sdpa::kernels
