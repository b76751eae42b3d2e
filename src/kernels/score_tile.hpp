// One tile of scores: product, softcap, bias, masks, for the panels of a block. Shared by the forward pass and by those
// who want to see the scores, so that both exponentiate the very same numbers.
#pragma once

#include <cstddef>

#include "kernels/alibi.hpp"
#include "kernels/attention_workspace.hpp"
#include "kernels/bias.hpp"
#include "kernels/key_rows.hpp"
#include "kernels/mask.hpp"
#include "kernels/panel_mask.hpp"
#include "kernels/qk_tile.hpp"
#include "kernels/scales.hpp"
#include "kernels/score_mod.hpp"
#include "kernels/tile_cells.hpp"

namespace sdpa::kernels {

/// float32 rows of a tile's keys, from its key `first` on.
struct KeyTile {
  const float* data;
  std::size_t stride;
  std::size_t first;
  const float* scales = nullptr;  // of int8: times which the scores of each key are
};

/// Keys [tile.begin + seen.begin, tile.begin + seen.end): in place, or copied into `wide`; their scales into `scales`.
template <class Arch>
KeyTile load_key_tile(const AttentionBlock& block, KeyRange tile, KeyRange seen, float* wide, float* scales) {
  const std::size_t begin = tile.begin + seen.begin;
  const auto [data, stride] = float_rows<Arch>(block.map, block.key, begin, seen.size(), block.head_dim, wide);
  return {data, stride, seen.begin, load_key_scales(block, begin, seen.size(), scales)};
}

/// Products of keys `keys` (counted from the tile's first) for one panel, what apply_softcap() takes or, without one,
/// scores. `queries` are the block's, packed.
template <class Arch>
void uncapped_scores(const AttentionBlock& block, const ScoreMod& mod, const KeyTile& key, KeyRange keys,
                     const Panel& panel, const float* queries, KeysAndValuesAhead ahead, float* scores) {
  const float* from = key.data + (keys.begin - key.first) * key.stride;
  const float* packed = queries + panel.first * block.head_dim;
  float* to = scores + keys.begin * kScoreStride<Arch>;
  qk_panel_of<Arch>(panel.vectors, from, key.stride, keys.size(), packed, block.head_dim, mod.score_factor, ahead, to);
  if (key.scales != nullptr) scale_keys<Arch>(keys, panel.vectors, key.scales + (keys.begin - key.first), scores);
}

/// The same, softcap applied.
template <class Arch>
void capped_scores(const AttentionBlock& block, const ScoreMod& mod, const KeyTile& key, KeyRange keys,
                   const Panel& panel, const float* queries, KeysAndValuesAhead ahead, float* scores) {
  uncapped_scores<Arch>(block, mod, key, keys, panel, queries, ahead, scores);
  if (mod.cap != 0.0F) apply_softcap<Arch>(mod.cap, keys, panel.vectors, scores);
}

/// Bias, ALiBi and masks. `keys` is what some row of the panel may see of the tile, `all` what every row sees by its
/// interval; `mask` has the cells, nullptr where nothing but the intervals excludes some. The answer is whether the
/// bias excludes a cell.
template <class Arch>
SDPA_NOINLINE bool mask_scores(const AttentionBlock& block, const Panel& panel, std::size_t tile_begin, KeyRange keys,
                               KeyRange all, const PanelMask<Arch>* mask, float* scores) {
  const bool biased_away = block.bias.data != nullptr && apply_bias<Arch>(block, panel, tile_begin, keys, scores);
  if (block.alibi != nullptr) apply_alibi<Arch>(block, panel, tile_begin, keys, scores);
  if (mask != nullptr) apply_panel_mask<Arch>(*mask, keys, panel.vectors, scores);
  const auto outside = [&](KeyRange range) {
    if (!range.empty()) mask_outside<Arch>(block.key_begin, block.key_end, panel, tile_begin, range, scores);
  };
  if (all.empty()) {
    outside(keys);
  } else {
    outside({keys.begin, all.begin});
    outside({all.end, keys.end});
  }
  return biased_away;
}

struct Exclusions {
  bool by_bias;
  bool some;  // of whatever kind
};

/// mask_scores() for the `keys` that panel p of a classified tile sees, or some of them.
template <class Arch>
SDPA_INLINE Exclusions mask_panel(const AttentionBlock& block, const BlockRanges<Arch>& ranges, KeyRange tile,
                                  const TileCells<Arch>& cells, std::size_t p, const Panel& panel, KeyRange keys,
                                  float* scores) {
  const KeyRange all = cells.by_cell ? keys : intersect(within_tile(ranges.panel[p].all, tile), keys);
  const bool partial = cells.coverage[p] == Coverage::kPartial;
  const bool some = partial || all.begin > keys.begin || all.end < keys.end;
  if (!some && block.bias.data == nullptr && block.alibi == nullptr) return {false, false};
  const bool by_bias =
      mask_scores<Arch>(block, panel, tile.begin, keys, all, partial ? &cells.mask[p] : nullptr, scores);
  return {by_bias, by_bias || some};
}

}  // namespace sdpa::kernels
