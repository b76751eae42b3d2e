// The scores of one block of query rows, written out as (rows, num_keys) at a chosen stage. The only kernel whose
// output is quadratic; it runs after the forward pass of the block and does not touch its results.
//
// Weights come from the scores, m and l of the forward pass itself: P = exp(s - m) / l, bit for bit what was multiplied
// with V up to the division.
#pragma once

#include <cstddef>

#include "kernels/attention_workspace.hpp"
#include "kernels/cells.hpp"
#include "kernels/score_tile.hpp"

namespace sdpa::kernels {

/// Writes keys [tile.begin, tile.end) of the panel's rows from [key][row] scores to row-major `block.scores`.
template <class Arch, class Finish>
void write_panel(const AttentionBlock& block, const Panel& panel, KeyRange tile, const float* scores, Finish&& finish) {
  for (std::size_t r = 0; r < panel.rows; ++r) {
    const std::size_t row = panel.first + r;
    float* to = block.scores + block.row_offset(row, block.scores_head_stride, block.scores_stride) + tile.begin;
    for (std::size_t j = 0; j < tile.size(); ++j) to[j] = finish(scores[j * kScoreStride<Arch> + r], row);
  }
}

/// exp(s - m) in place; excluded keys stay -infinity, also in a row whose maximum is infinite or NaN.
template <class Arch>
void weights_from_scores(KeyRange keys, std::size_t vectors, float* scores, const float* m) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const auto k = simd::ExpConstants<Arch>::load();
  const auto masked = simd::splat<Arch>(kMasked);
  for (std::size_t v = 0; v < vectors; ++v) {
    const auto maximum = simd::load<Arch>(m + v * kW);
    const auto shift = xsimd::select(maximum == masked, simd::splat<Arch>(0.0F), maximum);
    for (std::size_t j = keys.begin; j < keys.end; ++j) {
      float* at = scores + j * kScoreStride<Arch> + v * kW;
      const auto s = simd::load<Arch>(at);
      simd::store<Arch>(at, xsimd::select(s == masked, masked, simd::exp_nonpositive<Arch>(s - shift, k)));
    }
  }
}

template <class Arch>
SDPA_NOINLINE void write_scores(const AttentionBlock& block, const AttentionWorkspace<Arch>& workspace) {
  constexpr std::size_t kPanel = kNr * simd::kWidth<Arch>;
  const bool weights = block.stage == Stage::kWeights;
  const bool masked = weights || block.stage == Stage::kBiased;
  const bool capped = block.stage != Stage::kScaled && block.softcap != 0.0;
  const ScoreMod mod = make_score_mod(block.scale, capped ? block.softcap : 0.0);
  // The forward pass left the queries packed with its own factor, which is another one before the softcap.
  if (!capped && block.softcap != 0.0) pack_queries<Arch>(block, mod.query_factor, workspace.queries);

  for (std::size_t begin = 0; begin < block.num_keys; begin += kBc) {
    const KeyRange tile = tile_at(begin, block.num_keys);
    const KeyRange whole{0, tile.size()};
    const KeyRange any = range_of_rows<Arch>(block.key_begin, block.key_end, block.rows).any;
    const KeyRange seen = masked ? within_tile(any, tile) : whole;
    const KeyTile key = load_key_tile<Arch>(block, tile, seen, workspace.keys, workspace.key_scales);
    for (std::size_t first = 0; first < block.rows; first += kPanel) {
      const Panel panel = panel_at<Arch>(first, block.rows);
      const RowsRange range = range_of_rows<Arch>(block.key_begin + first, block.key_end + first, panel.rows);
      KeyRange keys = masked ? within_tile(range.any, tile) : whole;
      KeyRange all = within_tile(range.all, tile);
      PanelMask<Arch> mask;
      bool partial = false;
      if (masked && block.has_cells() && !keys.empty()) {
        partial = read_cells<Arch>(block, panel, tile, all, keys, mask) == Coverage::kPartial;
        all = keys;
      }
      float* scores = workspace.scores + first;
      for (std::size_t j = 0; j < tile.size(); ++j) {
        for (std::size_t r = 0; r < panel.rows; ++r) scores[j * kScoreStride<Arch> + r] = kMasked;
      }
      if (!keys.empty()) {
        capped_scores<Arch>(block, mod, key, keys, panel, workspace.queries, {}, scores);
        if (masked) mask_scores<Arch>(block, panel, tile.begin, keys, all, partial ? &mask : nullptr, scores);
      }
      if (!weights) {
        write_panel<Arch>(block, panel, tile, scores, [](float s, std::size_t) { return s; });
        continue;
      }
      weights_from_scores<Arch>(keys, panel.vectors, scores, workspace.m + first);
      write_panel<Arch>(block, panel, tile, scores, [&](float p, std::size_t row) {
        const float l = workspace.l[row];
        return p == kMasked || l == 0.0F ? 0.0F : p / l;
      });
    }
  }
}

}  // namespace sdpa::kernels
