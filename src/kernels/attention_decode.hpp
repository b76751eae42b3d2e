// One tile of keys for a block of one query row: decode.
//
// The steps of attention_tiled.hpp with the lanes turned: across keys for scores and weights, which lie side by side in
// workspace.scores, and along as many columns of V at once as keep eight sums independent. The same operations in the
// same order, so a row has the bits that it has in a larger block.
#pragma once

#include <cstddef>

#include "kernels/ahead.hpp"
#include "kernels/attention_workspace.hpp"
#include "kernels/in_place.hpp"
#include "kernels/online_softmax.hpp"
#include "kernels/pv_tile.hpp"
#include "kernels/qk_row.hpp"
#include "kernels/scales.hpp"
#include "kernels/score_tile.hpp"
#include "kernels/value_tile.hpp"

namespace sdpa::kernels {

/// Whether no cell that a row sees is treated differently from another.
inline bool is_plain(const AttentionBlock& block) {
  return block.mask.data == nullptr && block.bias.data == nullptr && block.softcap == 0.0 && block.alibi == nullptr &&
         block.block_mask.tiles == nullptr && block.query_segments == nullptr && block.dropout.threshold == 0;
}

/// Whether attend_row will do outside of holes.
inline bool is_plain_row(const AttentionBlock& block) { return block.rows == 1 && is_plain(block); }

/// Weights of the keys `keys` of a tile for a panel that is a single row of a plain block, [key][row] as the panels
/// beside it have theirs. Its other lanes would compute nothing: the last row of a 7x7 window took 5 % of the time.
template <class Arch>
SDPA_NOINLINE void weigh_lone_row(const KeyTile& key, KeyRange keys, const float* query, std::size_t head_dim,
                                  float factor, float* scores, float* m, float* l, float* alpha) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  static_assert(kBc % kW == 0);
  float row[kBc];
  KeysAndValuesAhead nothing_ahead{};
  qk_row<Arch>(key.data + (keys.begin - key.first) * key.stride, key.stride, keys.size(), query, head_dim, factor,
               nothing_ahead, row);
  for (std::size_t j = keys.size(); j < round_up(keys.size(), kW); ++j) row[j] = kMasked;
  online_softmax_row<Arch>(keys.size(), row, m, l, alpha);
  for (std::size_t j = 0; j < keys.size(); ++j) scores[(keys.begin + j) * kScoreStride<Arch>] = row[j];
}

/// Step 4 of the columns from `done` on, eight vectors of them at a time.
template <class Arch>
void accumulate_row(const ValueTile& value, std::size_t done, std::size_t keys, bool fresh,
                    const AttentionWorkspace<Arch>& workspace) {
  constexpr std::size_t kColumns = kColumnBlock<Arch>;
  constexpr std::size_t kWide = 8;
  std::size_t c = done;
  for (; c + kWide * simd::kWidth<Arch> <= value.columns; c += kWide * simd::kWidth<Arch>) {
    pv_register_tile<Arch, 1, kWide, 1>(workspace.scores, value.data + c, value.stride, keys, fresh, workspace.alpha,
                                        workspace.out + c * kScoreStride<Arch>);
  }
  for (; c < value.columns; c += kColumns) {
    const ValueTile::Columns columns = value.columns_from<Arch>(c);
    pv_register_tile<Arch, 1, kNr, 1>(workspace.scores, columns.data, columns.stride, keys, fresh, workspace.alpha,
                                      workspace.out + c * kScoreStride<Arch>);
  }
}

/// Keys `seen` of the tile, all of which the row sees.
template <class Arch>
SDPA_NOINLINE void attend_row(const AttentionBlock& block, const ScoreMod& mod, const InPlace& in_place, KeyRange tile,
                              KeyRange seen, bool fresh, const AttentionWorkspace<Arch>& workspace) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const std::size_t first = tile.begin + seen.begin;
  const std::size_t keys = seen.size();
  KeysAndValuesAhead ahead = ahead_of<Arch>(block, first, kRowKeys<Arch>, in_place.keys, in_place.values);
  if (!scores_in_place<Arch, 1>(block, in_place, mod.score_factor, first, keys, ahead, workspace.key_scales,
                                workspace.scores)) {
    const KeyTile key = load_key_tile<Arch>(block, tile, seen, workspace.keys, workspace.key_scales);
    qk_row<Arch>(key.data, key.stride, keys, workspace.queries, block.head_dim, mod.score_factor, ahead,
                 workspace.scores);
    if (key.scales != nullptr) scale_row<Arch>(keys, key.scales, workspace.scores);
  }
  for (std::size_t j = keys; j < round_up(keys, kW); ++j) workspace.scores[j] = kMasked;
  online_softmax_row<Arch>(keys, workspace.scores, workspace.m, workspace.l, workspace.alpha);
  const float* scales = load_value_scales(block, first, keys, workspace.value_scales);
  if (scales != nullptr) scale_row<Arch>(keys, scales, workspace.scores);
  const std::size_t done =
      accumulate_in_place<Arch, 1, 1>(block, in_place, first, keys, fresh, workspace.scores, workspace);
  if (done == block.head_dim_v) return;
  accumulate_row<Arch>(load_value_tile<Arch>(block, tile, seen, workspace), done, keys, fresh, workspace);
}

}  // namespace sdpa::kernels
