// Forward attention of one block of query rows, any length of keys, in O(tile) memory.
//
//   query (rows, head_dim), key (num_keys, head_dim), value (num_keys, head_dim_v) -> out (rows, head_dim_v), lse
//   (rows)
//
// Queries are packed once. Per tile of kBc keys that some row sees:
//   1. S^T = K Q^T       lanes across queries, [key][row]              qk_tile.hpp
//   2. softcap, bias, masks where the tile is partial                  score_mod.hpp, mask.hpp
//   3. m, l, weights     no horizontal step                            online_softmax.hpp
//   4. O = alpha O + P V lanes along columns, P read by splats         pv_tile.hpp
// and one division by l at the end. K, V and out stay where they lie; only Q is copied. Traffic per block: K and V
// once.
//
// Tiles begin at multiples of kBc counted from key 0, so a row's sequence of roundings is a function of the row alone.
// Keys that no row of the block sees are not read. Left to the caller: sizes, positions, the workspace.
#pragma once

#include <cmath>
#include <cstddef>

#include "kernels/attention_scores.hpp"
#include "kernels/attention_workspace.hpp"
#include "kernels/online_softmax.hpp"
#include "kernels/pv_tile.hpp"
#include "kernels/score_tile.hpp"

namespace sdpa::kernels {

template <class Arch>
ValueTile load_value_tile(const AttentionBlock& block, KeyRange tile, const AttentionWorkspace<Arch>& workspace) {
  ValueTile value{nullptr, block.value.stride, block.head_dim_v, workspace.tail};
  if (block.value.dtype == DType::kFloat32) {
    value.data = static_cast<const float*>(block.value.data) + tile.begin * block.value.stride;
  } else {
    widen_rows<Arch>(block.value, tile.begin, tile.size(), block.head_dim_v, workspace.values);
    value.data = workspace.values;
    value.stride = block.head_dim_v;
  }
  const std::size_t rest = block.head_dim_v % simd::kWidth<Arch>;
  if (rest != 0) {
    pack_column_tail<Arch>(value.data + (block.head_dim_v - rest), value.stride, tile.size(), rest, workspace.tail);
  }
  return value;
}

/// Weights of keys that a panel did not compute are 0 where its neighbours' products run over them.
inline void clear_weights(KeyRange keys, float* weights, std::size_t stride, std::size_t panel) {
  for (std::size_t j = keys.begin; j < keys.end; ++j) {
    for (std::size_t r = 0; r < panel; ++r) weights[j * stride + r] = 0.0F;
  }
}

/// Steps 1 to 3 for every panel: weights of `any` (what the block sees of the tile) in workspace.scores.
template <class Arch>
SDPA_NOINLINE void weigh_tile(const AttentionBlock& block, const ScoreMod& mod, KeyRange tile, KeyRange any,
                              const AttentionWorkspace<Arch>& workspace) {
  constexpr std::size_t kPanel = kNr * simd::kWidth<Arch>;
  constexpr std::size_t kStride = AttentionWorkspace<Arch>::kRows;
  const KeyTile key = load_key_tile<Arch>(block, tile, any, workspace.keys);
  const bool has_extra = block.mask.data != nullptr || block.bias.data != nullptr;
  if (has_extra) build_explicit_tile<Arch>(block, tile.begin, any, workspace.extra, kStride);
  for (std::size_t first = 0; first < block.rows; first += kPanel) {
    const std::size_t rows = block.rows - first < kPanel ? block.rows - first : kPanel;
    const RowsRange range = range_of_rows<Arch>(block.key_begin + first, block.key_end + first, rows);
    const KeyRange keys = within_tile(range.any, tile);
    float* scores = workspace.scores + first;
    if (keys.empty()) {
      clear_weights(any, scores, kStride, kPanel);
      for (std::size_t r = 0; r < kPanel; ++r) workspace.alpha[first + r] = 1.0F;
      continue;
    }
    capped_scores<Arch>(block, mod, key, keys, workspace.queries + first * block.head_dim, scores, kStride);
    mask_scores<Arch>(block, first, rows, tile.begin, keys, within_tile(range.all, tile),
                      has_extra ? workspace.extra + first : nullptr, scores, kStride);
    online_softmax<Arch>(keys, scores, kStride, workspace.m + first, workspace.l + first, workspace.alpha + first);
    clear_weights({any.begin, keys.begin}, scores, kStride, kPanel);
    clear_weights({keys.end, any.end}, scores, kStride, kPanel);
  }
}

/// Step 4 for every row.
template <class Arch>
SDPA_NOINLINE void accumulate_tile(const AttentionBlock& block, KeyRange tile, KeyRange any,
                                   const AttentionWorkspace<Arch>& workspace) {
  constexpr std::size_t kStride = AttentionWorkspace<Arch>::kRows;
  const std::size_t out_stride = AttentionWorkspace<Arch>::out_stride(block.head_dim_v);
  const KeyRange seen{tile.begin + any.begin, tile.begin + any.end};
  const ValueTile value = load_value_tile<Arch>(block, seen, workspace);
  const float* weights = workspace.scores + any.begin * kStride;
  const bool has_extra = block.mask.data != nullptr || block.bias.data != nullptr;
  const KeyRange all = range_of_rows<Arch>(block.key_begin, block.key_end, block.rows).all;
  const bool partial = has_extra || all.begin > seen.begin || all.end < seen.end;
  if (partial && !values_are_finite<Arch>(value, 0, any.size())) {
    for (std::size_t r = 0; r < block.rows; ++r) {
      const KeyRange row = within_tile({block.key_begin[r], block.key_end[r]}, seen);
      const float* extra = workspace.extra + any.begin * kStride + r;
      pv_selected_row<Arch>(weights + r, kStride, value, row.begin, row.end, workspace.alpha[r],
                            workspace.out + r * out_stride,
                            [&](std::size_t j) { return !has_extra || extra[j * kStride] != kMasked; });
    }
    return;
  }
  for_each_row_tile<TileSize<Arch>::kMr>(block.rows, [&](std::size_t first, std::size_t rows) {
    const RowsRange range = range_of_rows<Arch>(block.key_begin + first, block.key_end + first, rows);
    const KeyRange keys = within_tile(range.any, seen);
    if (keys.empty()) return;
    pv_rows<Arch>(weights + first, kStride, value, keys.begin, keys.end, workspace.alpha + first,
                  workspace.out + first * out_stride, out_stride, rows);
  });
}

/// out = O / l, lse = m + ln l; zeros and -infinity for rows that saw nothing.
template <class Arch>
SDPA_NOINLINE void finish_rows(const AttentionBlock& block, const AttentionWorkspace<Arch>& workspace) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const std::size_t out_stride = AttentionWorkspace<Arch>::out_stride(block.head_dim_v);
  for (std::size_t r = 0; r < block.rows; ++r) {
    const float m = workspace.m[r];
    const float l = workspace.l[r];
    float* to = block.out + r * block.out_stride;
    const bool empty = m == kMasked && l == 0.0F;
    if (block.lse != nullptr) {
      const double lse = static_cast<double>(m) + std::log(static_cast<double>(l));
      block.lse[r * block.lse_stride] = empty ? kMasked : static_cast<float>(lse);
    }
    if (empty) {
      for (std::size_t c = 0; c < block.head_dim_v; ++c) to[c] = 0.0F;
      continue;
    }
    // A division, not a product with 1/l: equal values then come out as they are. Adding 0 makes -0 the same 0 on every
    // path.
    const float* from = workspace.out + r * out_stride;
    const auto sum = simd::splat<Arch>(l);
    const auto zero = simd::splat<Arch>(0.0F);
    std::size_t c = 0;
    for (; c + kW <= block.head_dim_v; c += kW) simd::store<Arch>(to + c, simd::load<Arch>(from + c) / sum + zero);
    for (; c < block.head_dim_v; ++c) to[c] = from[c] / l + 0.0F;
  }
}

template <class Arch>
void attention_block(const AttentionBlock& block, float* memory) {
  using Workspace = AttentionWorkspace<Arch>;
  const Workspace workspace = Workspace::at(memory, workspace_shape(block));
  const ScoreMod mod = make_score_mod(block.scale, block.softcap);
  const std::size_t out_floats = block.rows * Workspace::out_stride(block.head_dim_v);
  for (std::size_t r = 0; r < Workspace::kRows; ++r) {
    workspace.m[r] = kMasked;
    workspace.l[r] = 0.0F;
  }
  for (std::size_t i = 0; i < out_floats; ++i) workspace.out[i] = 0.0F;
  pack_queries<Arch>(block.query, block.rows, block.head_dim, mod.query_factor, workspace.queries);

  const KeyRange any = range_of_rows<Arch>(block.key_begin, block.key_end, block.rows).any;
  for (std::size_t begin = any.begin / kBc * kBc; begin < any.end; begin += kBc) {
    const KeyRange tile{begin, begin + kBc < block.num_keys ? begin + kBc : block.num_keys};
    const KeyRange seen = within_tile(any, tile);
    weigh_tile<Arch>(block, mod, tile, seen, workspace);
    accumulate_tile<Arch>(block, tile, seen, workspace);
  }
  finish_rows<Arch>(block, workspace);
  if (block.scores != nullptr) write_scores<Arch>(block, workspace);
}

}  // namespace sdpa::kernels
