// One tile of scores: product, softcap, bias, masks, for the panels of a block. Shared by the forward pass and by those
// who want to see the scores, so that both exponentiate the very same numbers.
#pragma once

#include <cstddef>

#include "kernels/attention_workspace.hpp"
#include "kernels/mask.hpp"
#include "kernels/pack.hpp"
#include "kernels/qk_tile.hpp"
#include "kernels/score_mod.hpp"

namespace sdpa::kernels {

/// float32 rows of a tile's keys, from its key `first` on.
struct KeyTile {
  const float* data;
  std::size_t stride;
  std::size_t first;
};

/// Keys [tile.begin + seen.begin, tile.begin + seen.end): in place, or widened into `wide`.
template <class Arch>
KeyTile load_key_tile(const AttentionBlock& block, KeyRange tile, KeyRange seen, float* wide) {
  const std::size_t begin = tile.begin + seen.begin;
  if (block.key.dtype == DType::kFloat32) {
    return {static_cast<const float*>(block.key.data) + begin * block.key.stride, block.key.stride, seen.begin};
  }
  widen_rows<Arch>(block.key, begin, seen.size(), block.head_dim, wide);
  return {wide, block.head_dim, seen.begin};
}

/// Scores of keys `keys` (counted from the tile's first) for the panel whose packed queries are given, softcap applied.
template <class Arch>
void capped_scores(const AttentionBlock& block, const ScoreMod& mod, const KeyTile& key, KeyRange keys,
                   const float* queries, float* scores) {
  qk_panel<Arch>(key.data + (keys.begin - key.first) * key.stride, key.stride, keys.size(), queries, block.head_dim,
                 mod.score_factor, scores + keys.begin * kScoreStride<Arch>);
  if (mod.cap != 0.0F) apply_softcap<Arch>(mod.cap, keys, scores);
}

/// Bias and masks. `keys` is what the rows of the panel may see of the tile by position, `all` what every row sees.
template <class Arch>
void mask_scores(const AttentionBlock& block, std::size_t first_row, std::size_t rows, std::size_t tile_begin,
                 KeyRange keys, KeyRange all, const float* extra, float* scores) {
  if (extra != nullptr) apply_explicit_tile<Arch>(extra, keys, scores);
  const auto* begin = block.key_begin + first_row;
  const auto* end = block.key_end + first_row;
  if (all.empty()) {
    mask_outside<Arch>(begin, end, rows, tile_begin, keys, scores);
    return;
  }
  if (keys.begin < all.begin) mask_outside<Arch>(begin, end, rows, tile_begin, {keys.begin, all.begin}, scores);
  if (all.end < keys.end) mask_outside<Arch>(begin, end, rows, tile_begin, {all.end, keys.end}, scores);
}

/// `range` (keys of the operand) cut to a tile and counted from its first key; {0, 0} where nothing is left.
constexpr KeyRange within_tile(KeyRange range, KeyRange tile) {
  const KeyRange cut = intersect(range, tile);
  return cut.empty() ? KeyRange{0, 0} : KeyRange{cut.begin - tile.begin, cut.end - tile.begin};
}

}  // namespace sdpa::kernels
