// The block mask: words of 32 keys out of a map of tiles.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.hpp"
#include "kernels/mask.hpp"

namespace sdpa::kernels {

inline constexpr std::size_t kTileWords = kMaskTile / 32;

/// Keys [key, key + 32) that row `row` of the block may see; `key` is a multiple of 32.
inline std::uint32_t block_mask_word(const AttentionBlock& block, std::size_t row, std::size_t key) {
  const BlockMaskRows& mask = block.block_mask;
  const std::size_t i = mask.first_row + block.row_of(row);
  const std::size_t at = i / kMaskTile * mask.columns + key / kMaskTile;
  const std::uint32_t tile = mask.tiles[block.head_of(row) * mask.head_stride + at];
  if (tile < 2) return tile == 0 ? 0 : ~std::uint32_t{0};
  const std::size_t line = (tile - 2) * kMaskTile + i % kMaskTile;
  return mask.bits[line * kTileWords + key / 32 % kTileWords];
}

/// Whether every tile of the mask that rows of the block have in common with keys [keys.begin, keys.end) is empty.
inline bool block_mask_is_empty(const AttentionBlock& block, KeyRange keys) {
  const BlockMaskRows& mask = block.block_mask;
  const std::size_t heads = block.head_of(block.rows - 1) + 1;
  const std::size_t rows = heads > 1 ? block.rows_per_head : block.rows;
  for (std::size_t h = 0; h < (mask.head_stride == 0 ? 1 : heads); ++h) {
    const std::size_t last_row = (mask.first_row + rows - 1) / kMaskTile;
    for (std::size_t i = mask.first_row / kMaskTile; i <= last_row; ++i) {
      const std::uint32_t* tiles = mask.tiles + h * mask.head_stride + i * mask.columns;
      for (std::size_t j = keys.begin / kMaskTile; j <= (keys.end - 1) / kMaskTile; ++j) {
        if (tiles[j] != 0) return false;
      }
    }
  }
  return true;
}

/// Whether a block mask alone excludes cells of a panel's rows at `keys`, and none but whole tiles.
inline bool panel_sees_whole_tiles(const AttentionBlock& block, const Panel& panel, KeyRange keys) {
  const BlockMaskRows& mask = block.block_mask;
  if (mask.tiles == nullptr || block.mask.data != nullptr || block.query_segments != nullptr) return false;
  const std::size_t last = panel.first + panel.rows - 1;
  const std::size_t head = block.head_of(panel.first);
  const std::size_t i = (mask.first_row + block.row_of(panel.first)) / kMaskTile;
  if (head != block.head_of(last) || i != (mask.first_row + block.row_of(last)) / kMaskTile) return false;
  const std::uint32_t* tiles = mask.tiles + head * mask.head_stride + i * mask.columns;
  for (std::size_t j = keys.begin / kMaskTile; j <= (keys.end - 1) / kMaskTile; ++j) {
    if (tiles[j] > 1) return false;
  }
  return true;
}

}  // namespace sdpa::kernels
