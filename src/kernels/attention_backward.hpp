// Backward pass of one tile of keys against one block of query rows (Dao et al. 2022, algorithm 4), in O(tile) memory.
//
//   S^T = K Q^T, dP^T = V dO^T        lanes across queries, [key][row]        qk_tile.hpp
//   P = exp(S - lse), dS = P (dP - delta)                                     gradient_tile.hpp
//   dV += P^T dO, dK += dS^T Q, dQ += dS K      lanes along columns           add_product.hpp
//
// dK and dV of the tile stay in the workspace while all blocks of all heads that share the keys go by; dQ is added to
// in memory, tile by tile. So each gradient has one owner and one order of additions: keys go up for dQ, heads and rows
// for dK and dV. Scores, masks and biases are computed by the code of the forward pass. What no block sees is not read.
#pragma once

#include <cstddef>

#include "kernels/add_product.hpp"
#include "kernels/backward_workspace.hpp"
#include "kernels/gradient_tile.hpp"
#include "kernels/pack.hpp"
#include "kernels/score_tile.hpp"
#include "kernels/tile_cells.hpp"
#include "kernels/value_tile.hpp"

namespace sdpa::kernels {

/// Weights and gradients of the scores of cells.seen for every panel. The answer is whether a bias excludes a cell.
template <class Arch>
SDPA_NOINLINE bool differentiate_tile(const BackwardBlock& b, const ScoreMod& mod, const BlockRanges<Arch>& ranges,
                                      KeyRange tile, const TileCells<Arch>& cells, const KeyTile& key,
                                      const FloatRows& value, const BackwardWorkspace<Arch>& workspace) {
  constexpr std::size_t kPanel = kNr * simd::kWidth<Arch>;
  const AttentionBlock& block = b.attention;
  const KeyRange seen = cells.seen;
  bool excludes = false;
  for (std::size_t first = 0, p = 0; first < block.rows; first += kPanel, ++p) {
    const Panel panel = panel_at<Arch>(first, block.rows);
    const KeyRange keys = cells.keys[p];
    float* weights = workspace.weights + first;
    float* d_scores = workspace.d_scores + first;
    const KeyRange before{seen.begin, keys.empty() ? seen.end : keys.begin};
    const KeyRange behind = keys.empty() ? KeyRange{} : KeyRange{keys.end, seen.end};
    for (float* tile_of : {weights, d_scores}) {
      clear_weights<Arch>(before, panel.vectors, tile_of);
      clear_weights<Arch>(behind, panel.vectors, tile_of);
    }
    if (keys.empty()) continue;
    uncapped_scores<Arch>(block, mod, key, keys, panel, workspace.queries, {}, weights);
    if (mod.cap != 0.0F) {
      apply_softcap_with_slopes<Arch>(mod.cap, keys, panel.vectors, weights, workspace.slopes + first);
    }
    const Exclusions excluded = mask_panel<Arch>(block, ranges, tile, cells, p, panel, keys, weights);
    excludes = excludes || excluded.by_bias;
    const float* v = value.data + (keys.begin - seen.begin) * value.stride;
    const float* d_outs = workspace.d_outs + first * block.head_dim_v;
    float* to = d_scores + keys.begin * kScoreStride<Arch>;
    qk_panel_of<Arch>(panel.vectors, v, value.stride, keys.size(), d_outs, block.head_dim_v, 1.0F, {}, to);
    if (excluded.some) {
      weights_from_lse<Arch, true>(keys, panel.vectors, workspace.shift + first, weights);
    } else {
      weights_from_lse<Arch, false>(keys, panel.vectors, workspace.shift + first, weights);
    }
    if (block.dropout.threshold != 0) drop_gradients<Arch>(block, panel, tile.begin, keys, d_scores);
    score_gradients<Arch>(keys, panel.vectors, weights, workspace.delta + first, d_scores);
    if (b.d_bias != nullptr) add_bias_gradient<Arch>(b, panel, tile.begin, keys, d_scores);
    if (b.d_alibi != nullptr) *b.d_alibi += alibi_gradient<Arch>(block, panel, tile.begin, keys, d_scores);
    if (mod.cap != 0.0F) apply_slopes<Arch>(keys, panel.vectors, workspace.slopes + first, d_scores);
    if (block.dropout.threshold != 0) drop_gradients<Arch>(block, panel, tile.begin, keys, weights);
  }
  return excludes;
}

/// Rows in memory to and from accumulators in column blocks of `out_rows` rows.
template <class Arch>
void load_rows(const float* from, std::size_t stride, std::size_t rows, std::size_t columns, std::size_t out_rows,
               float* to) {
  constexpr std::size_t kColumns = kColumnBlock<Arch>;
  for (std::size_t c = 0; c < columns; c += kColumns, to += out_rows * kColumns) {
    const std::size_t n = columns - c < kColumns ? columns - c : kColumns;
    for (std::size_t r = 0; r < rows; ++r) {
      const float* row = from + r * stride + c;
      float* lanes = to + r * kColumns;
      if (n == kColumns) {
        for (std::size_t k = 0; k < kColumns; ++k) lanes[k] = row[k];
      } else {
        for (std::size_t k = 0; k < kColumns; ++k) lanes[k] = k < n ? row[k] : 0.0F;
      }
    }
  }
}

template <class Arch>
void store_rows(const float* from, std::size_t out_rows, std::size_t rows, std::size_t columns, float factor, float* to,
                std::size_t stride) {
  constexpr std::size_t kColumns = kColumnBlock<Arch>;
  for (std::size_t c = 0; c < columns; c += kColumns, from += out_rows * kColumns) {
    const std::size_t n = columns - c < kColumns ? columns - c : kColumns;
    for (std::size_t r = 0; r < rows; ++r) {
      const float* lanes = from + r * kColumns;
      float* row = to + r * stride + c;
      if (n == kColumns) {
        for (std::size_t k = 0; k < kColumns; ++k) row[k] = factor * lanes[k];
      } else {
        for (std::size_t k = 0; k < n; ++k) row[k] = factor * lanes[k];
      }
    }
  }
}

/// Rows of the block that some key of [tile.begin + first, + n) is seen by, by the rows' intervals.
inline KeyRange rows_that_see(const AttentionBlock& block, std::size_t key, std::size_t n) {
  KeyRange rows{block.rows, 0};
  for (std::size_t r = 0; r < block.rows; ++r) {
    if (block.key_begin[r] >= key + n || block.key_end[r] <= key) continue;
    if (rows.end == 0) rows.begin = r;
    rows.end = r + 1;
  }
  return rows.end == 0 ? KeyRange{} : rows;
}

template <class Arch>
SDPA_NOINLINE void add_key_gradients(const AttentionBlock& block, KeyRange tile, KeyRange seen, bool partial,
                                     const float* weights, const ValueTile& operand, float* out) {
  const bool finite = !partial || values_are_finite<Arch>(operand, block.rows);
  constexpr std::size_t kStride = kScoreStride<Arch>;
  add_product<Arch, kStride, 1, kBc>(
      weights + seen.begin * kStride, operand, finite, seen.size(), out + seen.begin * kColumnBlock<Arch>,
      [&](std::size_t first, std::size_t n) {
        return partial ? rows_that_see(block, tile.begin + seen.begin + first, n) : KeyRange{0, block.rows};
      });
}

template <class Arch>
SDPA_NOINLINE void add_query_gradients(const BackwardBlock& b, KeyRange tile, KeyRange seen, bool partial,
                                       const ValueTile& key, const BackwardWorkspace<Arch>& workspace) {
  constexpr std::size_t kRows = BackwardWorkspace<Arch>::kRows;
  const AttentionBlock& block = b.attention;
  const bool finite = !partial || values_are_finite<Arch>(key, seen.size());
  load_rows<Arch>(b.d_query, b.d_query_stride, block.rows, block.head_dim, kRows, workspace.d_query);
  add_product<Arch, 1, kScoreStride<Arch>, kRows>(
      workspace.d_scores + seen.begin * kScoreStride<Arch>, key, finite, block.rows, workspace.d_query,
      [&](std::size_t first, std::size_t n) {
        if (!partial) return KeyRange{0, seen.size()};
        const KeyRange rows = range_of_rows<Arch>(block.key_begin + first, block.key_end + first, n).any;
        return within_tile(rows, {tile.begin + seen.begin, tile.begin + seen.end});
      });
  store_rows<Arch>(workspace.d_query, kRows, block.rows, block.head_dim, 1.0F, b.d_query, b.d_query_stride);
}

template <class Arch>
void backward_block(const BackwardBlock& b, std::size_t tile_begin, float* memory) {
  using Workspace = BackwardWorkspace<Arch>;
  const AttentionBlock& block = b.attention;
  const BlockRanges<Arch> ranges(block);
  const KeyRange tile = tile_at(tile_begin, block.num_keys);
  if (intersect(ranges.block.any, tile).empty() || excludes_tile(block, tile, common_hole(block))) return;
  TileCells<Arch> cells;
  classify_tile<Arch>(block, ranges, tile, cells);
  const KeyRange seen = cells.seen;
  if (seen.empty()) return;

  const Workspace workspace = Workspace::at(memory, workspace_shape(block));
  const ScoreMod mod = make_score_mod(block.scale, block.softcap);
  for (std::size_t r = 0; r < Workspace::kRows; ++r) {
    const float lse = r < block.rows ? b.lse[r * b.lse_stride] : kMasked;
    workspace.shift[r] = shift_of(lse);
    workspace.delta[r] = lse != kMasked ? b.delta[r] : 0.0F;
  }
  pack_queries<Arch>(block, mod.query_factor, workspace.queries);
  AttentionBlock d_outs = block;
  d_outs.query = {b.d_out, DType::kFloat32, b.d_out_stride, 0, nullptr};
  d_outs.head_dim = block.head_dim_v;
  pack_queries<Arch>(d_outs, 1.0, workspace.d_outs);

  const std::size_t begin = tile.begin + seen.begin;
  const FloatRows key = float_rows<Arch>(block.map, block.key, begin, seen.size(), block.head_dim, workspace.keys);
  const FloatRows value =
      float_rows<Arch>(block.map, block.value, begin, seen.size(), block.head_dim_v, workspace.values);
  const bool excludes =
      differentiate_tile<Arch>(b, mod, ranges, tile, cells, {key.data, key.stride, seen.begin}, value, workspace);
  const KeyRange all = within_tile(ranges.block.all, tile);
  const bool partial = excludes || cells.partial || all.begin > seen.begin || all.end < seen.end;

  const FloatRows query = float_rows<Arch>({}, block.query, 0, block.rows, block.head_dim, workspace.query_rows);
  add_key_gradients<Arch>(
      block, tile, seen, partial, workspace.weights,
      with_tail<Arch>({b.d_out, b.d_out_stride}, block.rows, block.head_dim_v, workspace.d_out_tail),
      workspace.d_value);
  add_key_gradients<Arch>(block, tile, seen, partial, workspace.d_scores,
                          with_tail<Arch>(query, block.rows, block.head_dim, workspace.query_tail), workspace.d_key);
  add_query_gradients<Arch>(b, tile, seen, partial,
                            with_tail<Arch>(key, seen.size(), block.head_dim, workspace.key_tail), workspace);
}

template <class Arch>
void backward_begin(const WorkspaceShape& shape, float* memory) {
  const auto workspace = BackwardWorkspace<Arch>::at(memory, shape);
  const std::size_t columns = round_up(shape.head_dim, kColumnBlock<Arch>);
  const std::size_t columns_v = round_up(shape.head_dim_v, kColumnBlock<Arch>);
  for (std::size_t k = 0; k < kBc * columns; ++k) workspace.d_key[k] = 0.0F;
  for (std::size_t k = 0; k < kBc * columns_v; ++k) workspace.d_value[k] = 0.0F;
}

template <class Arch>
void backward_end(const WorkspaceShape& shape, const BackwardKeys& to, std::size_t keys, float* memory) {
  const auto workspace = BackwardWorkspace<Arch>::at(memory, shape);
  store_rows<Arch>(workspace.d_key, kBc, keys, to.head_dim, static_cast<float>(to.scale), to.d_key, to.d_key_stride);
  store_rows<Arch>(workspace.d_value, kBc, keys, to.head_dim_v, 1.0F, to.d_value, to.d_value_stride);
}

}  // namespace sdpa::kernels
