// One tile of keys for a block of one or two query rows: decode.
//
// The steps of attention_tiled.hpp with the lanes turned: across keys for scores and weights, which lie row by row in
// workspace.scores, and along as many columns of V at once as keep eight sums independent. The same operations in the
// same order, so a row has the bits that it has in a larger block, and the two can alternate from tile to tile.
#pragma once

#include <cstddef>

#include "kernels/attention_workspace.hpp"
#include "kernels/online_softmax.hpp"
#include "kernels/pv_tile.hpp"
#include "kernels/qk_row.hpp"
#include "kernels/score_tile.hpp"
#include "kernels/value_tile.hpp"

namespace sdpa::kernels {

/// Whether attend_few_rows will do: no cell of the tile is treated differently from another.
template <class Arch>
bool is_few_rows(const AttentionBlock& block, const RowsRange& range, KeyRange tile) {
  if (block.rows > 2 || block.mask.data != nullptr || block.bias.data != nullptr || block.softcap != 0.0) return false;
  const KeyRange any = within_tile(range.any, tile);
  const KeyRange all = within_tile(range.all, tile);
  return any.begin == all.begin && any.end == all.end;
}

template <class Arch, std::size_t kRows>
void accumulate_few_rows(const ValueTile& value, std::size_t keys, bool fresh,
                         const AttentionWorkspace<Arch>& workspace) {
  constexpr std::size_t kColumns = kColumnBlock<Arch>;
  constexpr std::size_t kVectors = 8 / kRows;
  constexpr std::size_t kWide = kVectors * simd::kWidth<Arch>;
  std::size_t c = 0;
  for (; c + kWide <= value.columns; c += kWide) {
    pv_register_tile<Arch, kRows, kVectors, 1, kBc>(workspace.scores, value.data + c, value.stride, keys, fresh,
                                                    workspace.alpha, workspace.out + c * kScoreStride<Arch>);
  }
  for (; c < value.columns; c += kColumns) {
    const bool in_place = c + kColumns <= value.columns;
    pv_register_tile<Arch, kRows, kNr, 1, kBc>(
        workspace.scores, in_place ? value.data + c : value.tail, in_place ? value.stride : value.tail_stride, keys,
        fresh, workspace.alpha, workspace.out + c * kScoreStride<Arch>);
  }
}

template <class Arch, std::size_t kRows>
void attend_rows(const AttentionBlock& block, const ScoreMod& mod, const KeyTile& key, const ValueTile& value,
                 std::size_t keys, Ahead ahead, bool fresh, const AttentionWorkspace<Arch>& workspace) {
  qk_rows<Arch, kRows>(key.data, key.stride, keys, workspace.queries, simd::kWidth<Arch>, block.head_dim,
                       mod.score_factor, kMasked, ahead, workspace.scores);
  for (std::size_t r = 0; r < kRows; ++r) {
    online_softmax_row<Arch>(keys, workspace.scores + r * kBc, workspace.m + r, workspace.l + r, workspace.alpha + r);
  }
  accumulate_few_rows<Arch, kRows>(value, keys, fresh, workspace);
}

/// Keys `seen` of the tile, all of which every row sees.
template <class Arch>
SDPA_NOINLINE void attend_few_rows(const AttentionBlock& block, const ScoreMod& mod, KeyRange tile, KeyRange seen,
                                   bool fresh, const AttentionWorkspace<Arch>& workspace) {
  const KeyTile key = load_key_tile<Arch>(block, tile, seen, workspace.keys);
  const ValueTile value = load_value_tile<Arch>(block, tile, seen, workspace);
  const Ahead ahead = values_ahead<Arch>(block, tile.begin + seen.begin);
  if (block.rows == 1) {
    attend_rows<Arch, 1>(block, mod, key, value, seen.size(), ahead, fresh, workspace);
  } else {
    attend_rows<Arch, 2>(block, mod, key, value, seen.size(), ahead, fresh, workspace);
  }
}

}  // namespace sdpa::kernels
