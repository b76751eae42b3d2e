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

#include "kernels/ahead.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

struct Nothing {
  void operator()() const {}
};

/// kUnroll steps of d at once where registers are left; `at_line` is then called at each first d of a line.
template <class Arch, std::size_t kKeys, std::size_t kVectors, std::size_t kUnroll = 1, class AtLine = Nothing>
SDPA_INLINE void qk_register_tile(const float* key, std::size_t key_stride, const float* query, std::size_t head_dim,
                                  float factor, float* scores, AtLine&& at_line = {}) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  using V = simd::Batch<Arch>;
  V acc[kKeys][kVectors];
  const float* row[kKeys];
  for (std::size_t m = 0; m < kKeys; ++m) {
    for (std::size_t v = 0; v < kVectors; ++v) acc[m][v] = V(0.0F);
    row[m] = key + m * key_stride;
  }
  const auto step = [&](std::size_t from) SDPA_INLINE_LAMBDA {
    V q[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) q[v] = simd::load<Arch>(query + (from * kVectors + v) * kW);
    for (std::size_t m = 0; m < kKeys; ++m) {
      const V k = simd::splat<Arch>(row[m][from]);
      for (std::size_t v = 0; v < kVectors; ++v) acc[m][v] = simd::madd<Arch>(k, q[v], acc[m][v]);
    }
  };
  const auto advance = [&](std::size_t steps) SDPA_INLINE_LAMBDA {
    query += steps * kVectors * kW;
    for (std::size_t m = 0; m < kKeys; ++m) row[m] += steps;
  };
  std::size_t d = 0;
  if constexpr (kUnroll > 1) {
    SDPA_NO_UNROLL
    for (; d + kUnroll <= head_dim; d += kUnroll) {
      if (d % Lines::kFloats == 0) at_line();
      for (std::size_t u = 0; u < kUnroll; ++u) step(u);
      advance(kUnroll);
    }
  }
  SDPA_NO_UNROLL
  for (; d < head_dim; ++d) {
    step(0);
    advance(1);
  }
  if (factor != 1.0F) {
    const V f = simd::splat<Arch>(factor);
    for (std::size_t m = 0; m < kKeys; ++m) {
      for (std::size_t v = 0; v < kVectors; ++v) acc[m][v] = acc[m][v] * f;
    }
  }
  for (std::size_t m = 0; m < kKeys; ++m) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      simd::store<Arch>(scores + m * kScoreStride<Arch> + v * kW, acc[m][v]);
    }
  }
}

/// All of `keys` keys against one panel of two vectors; `next` may be nullptr.
template <class Arch>
SDPA_NOINLINE void qk_panel(const float* key, std::size_t key_stride, std::size_t keys, const float* query,
                            std::size_t head_dim, float factor, NextBlockLines* next, float* scores) {
  constexpr std::size_t kMr = TileSize<Arch>::kMr;
  const RowTiles tiles = split_rows<kMr>(keys);
  for (std::size_t t = 0; t < tiles.count(); ++t) {
    if (next != nullptr) next->touch();
    with_constant<kMr>(tiles.rows_of(t), [&](auto constant) {
      constexpr std::size_t kRows = constant();
      qk_register_tile<Arch, kRows, kNr>(key, key_stride, query, head_dim, factor, scores);
      key += kRows * key_stride;
      scores += kRows * kScoreStride<Arch>;
    });
  }
}

/// The same for a panel of one vector. A whole tile is made of the tall ones; what is left of the last one goes singly.
template <class Arch>
SDPA_NOINLINE void qk_single_panel(const float* key, std::size_t key_stride, std::size_t keys, const float* query,
                                   std::size_t head_dim, float factor, KeysAndValuesAhead& ahead, float* scores) {
  static_assert(kBc % kMrSingle == 0);
  KeyAndValueLines now = ahead.lines;
  for (; keys >= kMrSingle; keys -= kMrSingle) {
    ahead.refill(now);
    qk_register_tile<Arch, kMrSingle, 1, kSingleUnroll<Arch>>(key, key_stride, query, head_dim, factor, scores,
                                                              [&]() SDPA_INLINE_LAMBDA { now.touch<kMrSingle>(); });
    key += kMrSingle * key_stride;
    scores += kMrSingle * kScoreStride<Arch>;
  }
  ahead.lines = now;
  for (; keys != 0; --keys) {
    qk_register_tile<Arch, 1, 1>(key, key_stride, query, head_dim, factor, scores);
    key += key_stride;
    scores += kScoreStride<Arch>;
  }
}

/// Either of the two.
template <class Arch>
SDPA_INLINE void qk_panel_of(std::size_t vectors, const float* key, std::size_t key_stride, std::size_t keys,
                             const float* query, std::size_t head_dim, float factor, KeysAndValuesAhead ahead,
                             float* scores) {
  if (vectors == 1) {
    qk_single_panel<Arch>(key, key_stride, keys, query, head_dim, factor, ahead, scores);
  } else {
    qk_panel<Arch>(key, key_stride, keys, query, head_dim, factor, ahead.block, scores);
  }
}

}  // namespace sdpa::kernels
