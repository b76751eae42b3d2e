// Weights of a tile from its scores and the log-sum-exp of each row.
//
//   P = exp(min(s - lse, 0))
//
// A cell that takes no part (score -infinity) has a fixed value instead, whatever its row's lse: nothing can turn it
// into NaN. An lse from elsewhere may be rounded to below the largest score: the minimum keeps weights at 1 or less.
#pragma once

#include <cstddef>
#include <limits>

#include "kernels/attention_workspace.hpp"
#include "kernels/kernel_table.hpp"
#include "kernels/mask.hpp"
#include "kernels/score_tile.hpp"
#include "kernels/tile_cells.hpp"
#include "kernels/tile_size.hpp"
#include "simd/math.hpp"

namespace sdpa::kernels {

/// What marks a cell that takes no part where 0 would be a weight like others.
inline constexpr float kNoWeight = -1.0F;

template <class Arch>
struct WeightOf {
  using V = simd::Batch<Arch>;
  simd::ExpConstants<Arch> constants;
  V masked, zero, excluded;

  explicit WeightOf(float of_excluded)
      : constants(simd::ExpConstants<Arch>::load()),
        masked(simd::splat<Arch>(kMasked)),
        zero(simd::splat<Arch>(0.0F)),
        excluded(simd::splat<Arch>(of_excluded)) {}

  SDPA_INLINE V logarithm(V score, V lse) const { return simd::clamp_high<Arch>(score - lse, zero); }
  SDPA_INLINE V operator()(V score, V lse) const {
    return xsimd::select(score == masked, excluded, simd::exp_nonpositive<Arch>(logarithm(score, lse), constants));
  }
};

/// What panel p sees of the `wanted` keys of a tile.
template <class Arch>
KeyRange keys_of_panel(const TileCells<Arch>& cells, std::size_t p, KeyRange wanted) {
  const KeyRange keys = intersect(cells.keys[p], wanted);
  return keys.empty() ? KeyRange{} : keys;
}

/// Masked scores of the `wanted` keys of a tile into workspace.scores, for each panel those that it sees.
template <class Arch>
SDPA_NOINLINE void score_tile(const AttentionBlock& block, const ScoreMod& mod, const BlockRanges<Arch>& ranges,
                              KeyRange tile, const TileCells<Arch>& cells, KeyRange wanted,
                              const AttentionWorkspace<Arch>& workspace) {
  constexpr std::size_t kPanel = kNr * simd::kWidth<Arch>;
  const KeyRange seen = intersect(cells.seen, wanted);
  if (seen.empty()) return;
  const KeyTile key = load_key_tile<Arch>(block, tile, seen, workspace.keys, workspace.key_scales);
  for (std::size_t first = 0, p = 0; first < block.rows; first += kPanel, ++p) {
    const Panel panel = panel_at<Arch>(first, block.rows);
    const KeyRange keys = keys_of_panel(cells, p, wanted);
    if (keys.empty()) continue;
    float* scores = workspace.scores + first;
    capped_scores<Arch>(block, mod, key, keys, panel, workspace.queries, {}, scores);
    mask_panel<Arch>(block, ranges, tile, cells, p, panel, keys, scores);
  }
}

/// Scores of `keys` to weights in place.
template <class Arch>
SDPA_NOINLINE void weigh_scores(KeyRange keys, std::size_t vectors, const float* lse, float excluded, float* scores) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const WeightOf<Arch> weight(excluded);
  for (std::size_t v = 0; v < vectors; ++v) {
    const auto shift = simd::load<Arch>(lse + v * kW);
    float* s = scores + keys.begin * kScoreStride<Arch> + v * kW;
    SDPA_NO_UNROLL
    for (std::size_t n = keys.size(); n != 0; --n, s += kScoreStride<Arch>) {
      simd::store<Arch>(s, weight(simd::load<Arch>(s), shift));
    }
  }
}

}  // namespace sdpa::kernels
