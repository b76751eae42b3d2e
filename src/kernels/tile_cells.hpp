// What the panels of a block see of a tile of keys: intervals, and bits where these do not tell all.
#pragma once

#include <cstddef>

#include "kernels/cells.hpp"
#include "kernels/kernel_table.hpp"
#include "kernels/mask.hpp"
#include "kernels/panel_mask.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

/// Weights of keys that a panel did not compute are 0 where its neighbours' products run over them.
template <class Arch>
void clear_weights(KeyRange keys, std::size_t vectors, float* weights) {
  const auto zero = simd::splat<Arch>(0.0F);
  for (std::size_t j = keys.begin; j < keys.end; ++j) {
    float* w = weights + j * kScoreStride<Arch>;
    for (std::size_t v = 0; v < vectors; ++v) simd::store<Arch>(w + v * simd::kWidth<Arch>, zero);
  }
}

/// What does not change from tile to tile of a block: what its panels and its register tiles of rows may see.
template <class Arch>
struct BlockRanges {
  static constexpr std::size_t kPanel = kNr * simd::kWidth<Arch>;
  static constexpr std::size_t kMr = TileSize<Arch>::kMr;

  RowsRange block;
  RowsRange panel[kScoreStride<Arch> / kPanel];
  RowTiles tiles;
  KeyRange tile[kScoreStride<Arch> / kMr + 1];  // of each register tile of rows

  explicit BlockRanges(const AttentionBlock& b) : tiles(split_rows<kMr>(b.rows)) {
    const bool alike = rows_are_alike(b.key_begin, b.key_end, b.rows);
    const auto range = [&](std::size_t first, std::size_t rows) {
      return alike ? block : range_of_rows<Arch>(b.key_begin + first, b.key_end + first, rows);
    };
    block = range_of_rows<Arch>(b.key_begin, b.key_end, alike ? 1 : b.rows);
    for (std::size_t first = 0, p = 0; first < b.rows; first += kPanel, ++p) {
      panel[p] = range(first, panel_at<Arch>(first, b.rows).rows);
    }
    for (std::size_t t = 0, first = 0; t < tiles.count(); first += tiles.rows_of(t), ++t) {
      tile[t] = range(first, tiles.rows_of(t)).any;
    }
  }
};

/// What the panels of a block see of a tile.
template <class Arch>
struct TileCells {
  static constexpr std::size_t kPanel = kNr * simd::kWidth<Arch>;
  static constexpr std::size_t kPanels = (kScoreStride<Arch> + kPanel - 1) / kPanel;

  KeyRange keys[kPanels];
  Coverage coverage[kPanels];
  PanelMask<Arch> mask[kPanels];  // where the coverage is partial
  KeyRange seen;                  // by some panel
  bool by_cell = false;           // the masks hold what the rows' intervals exclude
  bool partial = false;           // a mask, a hole or a bias excludes some cell

  /// What rows [first, first + rows) see.
  KeyRange of_rows(std::size_t first, std::size_t rows) const {
    const KeyRange a = keys[first / kPanel];
    const KeyRange b = keys[(first + rows - 1) / kPanel];
    if (a.empty()) return b;
    if (b.empty()) return a;
    return {a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end};
  }
};

/// Calls f(tile) for each tile of keys of which holes and block masks leave something to some row of the block.
template <class Arch, class F>
SDPA_INLINE void for_each_tile(const AttentionBlock& block, const BlockRanges<Arch>& ranges, F&& f) {
  const KeyRange any = ranges.block.any;
  const KeyRange hole = common_hole(block);
  for (std::size_t begin = any.begin / kBc * kBc; begin < any.end; begin += kBc) {
    const KeyRange tile = tile_at(begin, block.num_keys);
    if (!excludes_tile(block, tile, hole)) f(tile);
  }
}

template <class Arch>
SDPA_NOINLINE void classify_tile(const AttentionBlock& block, const BlockRanges<Arch>& ranges, KeyRange tile,
                                 TileCells<Arch>& cells) {
  constexpr std::size_t kPanel = kNr * simd::kWidth<Arch>;
  cells.by_cell = block.has_cells();
  cells.partial = false;
  cells.seen = within_tile(ranges.block.any, tile);
  KeyRange some{kBc, 0};
  for (std::size_t first = 0, p = 0; first < block.rows; first += kPanel, ++p) {
    KeyRange keys = within_tile(ranges.panel[p].any, tile);
    cells.coverage[p] = keys.empty() ? Coverage::kEmpty : Coverage::kFull;
    if (cells.by_cell && !keys.empty()) {
      cells.coverage[p] = read_cells<Arch>(block, panel_at<Arch>(first, block.rows), tile,
                                           within_tile(ranges.panel[p].all, tile), keys, cells.mask[p]);
    }
    cells.keys[p] = keys;
    if (keys.empty()) continue;
    some.begin = keys.begin < some.begin ? keys.begin : some.begin;
    some.end = keys.end > some.end ? keys.end : some.end;
  }
  if (!cells.by_cell) return;
  cells.seen = some.end == 0 ? KeyRange{} : some;
  const std::size_t panels = (block.rows + kPanel - 1) / kPanel;
  for (std::size_t p = 0; p < panels; ++p) {
    if (cells.coverage[p] != Coverage::kFull || cells.keys[p].size() != cells.seen.size()) cells.partial = true;
  }
}

}  // namespace sdpa::kernels
