// Forward attention of one block of query rows, any length of keys, in O(tile) memory.
//
//   query (rows, head_dim), key (num_keys, head_dim), value (num_keys, head_dim_v) -> out (rows, head_dim_v), lse
//   (rows)
//
// Queries are packed once. Per tile of kBc keys that some row sees:
//   1. S^T = K Q^T       lanes across queries, [key][row]              qk_tile.hpp
//   2. softcap, bias, masks where the tile is partial                  score_mod.hpp, bias.hpp, cells.hpp, mask.hpp
//   3. m, l, weights     no horizontal step                            online_softmax.hpp
//   4. O = alpha O + P V lanes along columns, P read by splats         pv_tile.hpp
// with dropout of weights before step 4 where it is asked for (dropout.hpp),
// and one division by l at the end. K, V and out stay where they lie; only Q is copied. Traffic per block: K and V
// once.
//
// Tiles begin at multiples of kBc counted from key 0, so a row's sequence of roundings is a function of the row alone.
// Keys that no row of the block sees are not read. Left to the caller: sizes, positions, the workspace.
#pragma once

#include <cstddef>

#include "kernels/attention_decode.hpp"
#include "kernels/attention_scores.hpp"
#include "kernels/attention_workspace.hpp"
#include "kernels/dropout.hpp"
#include "kernels/in_place.hpp"
#include "kernels/online_softmax.hpp"
#include "kernels/pv_tile.hpp"
#include "kernels/score_tile.hpp"
#include "kernels/tile_cells.hpp"

namespace sdpa::kernels {

/// Steps 1 to 3 for every panel: weights of cells.seen in workspace.scores.
template <class Arch>
SDPA_NOINLINE void weigh_tile(const AttentionBlock& block, const ScoreMod& mod, const BlockRanges<Arch>& ranges,
                              const InPlace& in_place, KeyRange tile, TileCells<Arch>& cells, NextBlockLines* next,
                              const AttentionWorkspace<Arch>& workspace) {
  constexpr std::size_t kPanel = kNr * simd::kWidth<Arch>;
  const KeyRange seen = cells.seen;
  KeysAndValuesAhead ahead = ahead_of<Arch>(block, tile.begin + seen.begin, kMrSingle, in_place.keys, in_place.values);
  ahead.block = next;
  bool scored = false;
  if constexpr (kStacksInPlace<Arch>) {
    scored = scores_in_place<Arch, simd::kWidth<Arch>>(block, in_place, mod.score_factor, tile.begin + seen.begin,
                                                       seen.size(), ahead, workspace.key_scales,
                                                       workspace.scores + seen.begin * kScoreStride<Arch>);
  }
  KeyTile key{};
  if (!scored) key = load_key_tile<Arch>(block, tile, seen, workspace.keys, workspace.key_scales);
  // Decode of a few stacked heads looks further ahead than the lone row does.
  const bool lone = simd::kWidth<Arch> > 1 && is_plain(block) && !scored && !block.streams && key.scales == nullptr;
  for (std::size_t first = 0, p = 0; first < block.rows; first += kPanel, ++p) {
    const Panel panel = panel_at<Arch>(first, block.rows);
    const KeyRange keys = cells.keys[p];
    float* scores = workspace.scores + first;
    if (keys.empty()) {
      clear_weights<Arch>(seen, panel.vectors, scores);
      for (std::size_t r = 0; r < panel.rows; ++r) workspace.alpha[first + r] = 1.0F;
      continue;
    }
    if (lone && panel.rows == 1 && cells.coverage[p] == Coverage::kFull) {
      weigh_lone_row<Arch>(key, keys, workspace.queries + first * block.head_dim, block.head_dim, mod.score_factor,
                           scores, workspace.m + first, workspace.l + first, workspace.alpha + first);
    } else {
      if (!scored) {
        capped_scores<Arch>(block, mod, key, keys, panel, workspace.queries, ahead, scores);
      } else if (mod.cap != 0.0F) {
        apply_softcap<Arch>(mod.cap, keys, panel.vectors, scores);
      }
      if (mask_panel<Arch>(block, ranges, tile, cells, p, panel, keys, scores).by_bias) cells.partial = true;
      online_softmax<Arch>(keys, panel.vectors, scores, workspace.m + first, workspace.l + first,
                           workspace.alpha + first);
      if (block.dropout.threshold != 0) apply_dropout<Arch>(block, panel, tile.begin, keys, scores);
    }
    clear_weights<Arch>({seen.begin, keys.begin}, panel.vectors, scores);
    clear_weights<Arch>({keys.end, seen.end}, panel.vectors, scores);
  }
}

/// Step 4 where a value that some row may not see is NaN or infinite.
template <class Arch>
SDPA_NOINLINE void accumulate_selected(const AttentionBlock& block, const ValueTile& value, KeyRange tile,
                                       KeyRange seen, bool fresh, const AttentionWorkspace<Arch>& workspace) {
  for (std::size_t r = 0; r < block.rows; ++r) {
    const KeyRange row =
        within_tile({block.key_begin[r], block.key_end[r]}, {tile.begin + seen.begin, tile.begin + seen.end});
    const float* weights = workspace.scores + seen.begin * kScoreStride<Arch> + r;
    pv_selected_row<Arch>(weights, value, row.begin, row.end, fresh, workspace.alpha[r],
                          workspace.out + r * kColumnBlock<Arch>, kScoreStride<Arch> * kColumnBlock<Arch>,
                          [&](std::size_t j) { return is_allowed(block, r, tile.begin + seen.begin + j); });
  }
}

/// What each register tile of rows sees of a tile of keys.
template <class Arch>
struct TileKeys {
  KeyRange of[kScoreStride<Arch> / TileSize<Arch>::kMr + 1];

  TileKeys(const BlockRanges<Arch>& ranges, KeyRange tile, const TileCells<Arch>& cells) {
    for (std::size_t t = 0, first = 0; t < ranges.tiles.count(); first += ranges.tiles.rows_of(t), ++t) {
      of[t] = within_tile(ranges.tile[t], tile);
      if (cells.by_cell) of[t] = intersect(of[t], cells.of_rows(first, ranges.tiles.rows_of(t)));
      if (of[t].empty()) of[t] = {cells.seen.begin, cells.seen.begin};
    }
  }
};

/// Step 4 of two vectors of columns from column c on, for every row.
template <class Arch>
SDPA_INLINE void accumulate_columns(const RowTiles& tiles, const TileKeys<Arch>& keys, const ValueTile& value,
                                    std::size_t seen_begin, bool fresh, std::size_t c,
                                    const AttentionWorkspace<Arch>& workspace) {
  const ValueTile::Columns columns = value.columns_from<Arch>(c);
  float* out = workspace.out + c * kScoreStride<Arch>;
  for (std::size_t t = 0, first = 0; t < tiles.count(); ++t) {
    const auto [begin, end] = keys.of[t];
    const std::size_t rows = tiles.rows_of(t);
    // The first tile writes every row, also those that see nothing of it yet.
    if (fresh || begin < end) {
      pv_rows<Arch>(workspace.scores + begin * kScoreStride<Arch> + first,
                    columns.data + (begin - seen_begin) * columns.stride, columns.stride, end - begin, fresh,
                    workspace.alpha + first, out, rows);
    }
    first += rows;
    out += rows * kColumnBlock<Arch>;
  }
}

/// Step 4 for every row. Columns outside, rows inside: two vectors of V's columns are a few KiB that stay in the
/// first-level cache while all rows of the block run over them.
template <class Arch>
SDPA_NOINLINE void accumulate_tile(const AttentionBlock& block, const BlockRanges<Arch>& ranges,
                                   const InPlace& in_place, KeyRange tile, const TileCells<Arch>& cells, bool fresh,
                                   const AttentionWorkspace<Arch>& workspace) {
  constexpr std::size_t kColumns = kColumnBlock<Arch>;
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const KeyRange seen = cells.seen;
  const std::size_t first = tile.begin + seen.begin;
  const float* scales = load_value_scales(block, first, seen.size(), workspace.value_scales);
  if (scales != nullptr) scale_keys<Arch>(seen, (block.rows + kW - 1) / kW, scales, workspace.scores);
  const KeyRange all = within_tile(ranges.block.all, tile);
  const bool partial = cells.partial || all.begin > seen.begin || all.end < seen.end;
  std::size_t done = 0;
  if constexpr (kStacksInPlace<Arch>) {
    if (!partial) {
      done = accumulate_in_place<Arch, kW, kScoreStride<Arch>>(
          block, in_place, first, seen.size(), fresh, workspace.scores + seen.begin * kScoreStride<Arch>, workspace);
    }
    if (done == block.head_dim_v) return;
  }
  const ValueTile value = load_value_tile<Arch>(block, tile, seen, workspace);
  if (partial && !(scales_are_finite(scales, seen.size()) && values_are_finite<Arch>(value, seen.size()))) {
    accumulate_selected<Arch>(block, value, tile, seen, fresh, workspace);
    return;
  }
  const TileKeys<Arch> keys(ranges, tile, cells);
  for (std::size_t c = done; c < block.head_dim_v; c += kColumns) {
    accumulate_columns<Arch>(ranges.tiles, keys, value, seen.begin, fresh, c, workspace);
  }
}

/// m and l before the first key: those of a sink where the head has one, as if it were a key without a value.
template <class Arch>
void begin_rows(const AttentionBlock& block, const AttentionWorkspace<Arch>& workspace) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  for (std::size_t r = 0; r < AttentionWorkspace<Arch>::kRows; r += kW) {
    simd::store<Arch>(workspace.m + r, simd::splat<Arch>(kMasked));
    simd::store<Arch>(workspace.l + r, simd::splat<Arch>(0.0F));
  }
  if (block.sinks == nullptr) return;
  for (std::size_t r = 0; r < block.rows; ++r) {
    workspace.m[r] = block.sinks[block.head_of(r)];
    workspace.l[r] = workspace.m[r] == kMasked ? 0.0F : 1.0F;
  }
}

/// A row of the workspace's sums to the output, each through `finished`.
template <class Arch, class Finished>
SDPA_INLINE void write_row(const float* from, std::size_t columns, float* to, const Finished& finished) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const auto result = [&](const float* x) SDPA_INLINE_LAMBDA { return finished(simd::load<Arch>(x)); };
  for (; columns >= kNr * kW; columns -= kNr * kW) {
    for (std::size_t v = 0; v < kNr; ++v) simd::store<Arch>(to + v * kW, result(from + v * kW));
    from += kScoreStride<Arch> * kColumnBlock<Arch>;
    to += kNr * kW;
  }
  for (; columns >= kW; columns -= kW, from += kW, to += kW) simd::store<Arch>(to, result(from));
  if (columns == 0) return;
  float lanes[kW];
  simd::store<Arch>(lanes, result(from));
  for (std::size_t k = 0; k < columns; ++k) to[k] = lanes[k];
}

/// out = O / l, lse = m + ln l; zeros for rows that saw nothing, with the sink's lse or -infinity. `fresh`: nobody
/// wrote to workspace.out.
template <class Arch>
SDPA_NOINLINE void finish_rows(const AttentionBlock& block, bool fresh, const AttentionWorkspace<Arch>& workspace) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const auto zero = simd::splat<Arch>(0.0F);
  RowOffsets out_offsets(block, block.out_head_stride, block.out_stride);
  const float kept = block.dropout.threshold == 0 ? 1.0F : block.dropout.factor;
  float shares[AttentionWorkspace<Arch>::kRows];
  for (std::size_t r = 0; r < block.rows; r += kW) {
    simd::store<Arch>(shares + r, simd::splat<Arch>(kept) / simd::load<Arch>(workspace.l + r));
  }
  for (std::size_t r = 0; r < block.rows; ++r) {
    const float m = workspace.m[r];
    const float l = workspace.l[r];
    float* to = block.out + out_offsets.take();
    const bool empty = l == 0.0F && m == kMasked;
    if (block.lse != nullptr) {
      block.lse[block.row_offset(r, block.lse_head_stride, block.lse_stride)] = log_sum_exp(m, l);
    }
    if (empty || fresh) {
      for (std::size_t c = 0; c < block.head_dim_v; ++c) to[c] = 0.0F;
      continue;
    }
    const float* from = workspace.out + r * kColumnBlock<Arch>;
    const float share = shares[r];
    // Adding 0 makes -0 the same 0 on every path. A product is cheaper, and of every eighth sum the reciprocal's
    // rounding would show: a mean of ones is 1.
    if (share * l != 1.0F && kept == 1.0F) {
      const auto sum = simd::splat<Arch>(l);
      write_row<Arch>(from, block.head_dim_v, to, [&](simd::Batch<Arch> x) { return x / sum + zero; });
    } else {
      const auto factor = simd::splat<Arch>(share);
      write_row<Arch>(from, block.head_dim_v, to,
                      [&](simd::Batch<Arch> x) { return simd::madd<Arch>(x, factor, zero); });
    }
  }
}

template <class Arch>
void attention_block(const AttentionBlock& block, float* memory) {
  using Workspace = AttentionWorkspace<Arch>;
  const Workspace workspace = Workspace::at(memory, workspace_shape(block));
  const ScoreMod mod = make_score_mod(block.scale, block.softcap);
  begin_rows<Arch>(block, workspace);
  pack_queries<Arch>(block, mod.query_factor, workspace.queries);

  const BlockRanges<Arch> ranges(block);
  const InPlace in_place = choose_in_place<Arch>(block, workspace);
  const bool plain_row = is_plain_row(block);
  TileCells<Arch> cells;
  NextBlockLines next(block.next);
  bool fresh = true;
  for_each_tile<Arch>(block, ranges, [&](KeyRange tile) {
    if (plain_row && !meets_hole(block, tile)) {
      attend_row<Arch>(block, mod, in_place, tile, within_tile(ranges.block.any, tile), fresh, workspace);
      fresh = false;
      return;
    }
    classify_tile<Arch>(block, ranges, tile, cells);
    if (cells.seen.empty()) return;
    weigh_tile<Arch>(block, mod, ranges, in_place, tile, cells, block.next.is_empty() ? nullptr : &next, workspace);
    accumulate_tile<Arch>(block, ranges, in_place, tile, cells, fresh, workspace);
    fresh = false;
  });
  finish_rows<Arch>(block, fresh, workspace);
  if (block.scores != nullptr) write_scores<Arch>(block, workspace);
}

}  // namespace sdpa::kernels
