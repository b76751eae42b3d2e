// One tile of keys for a block of one query row: decode.
//
// The steps of attention_tiled.hpp with the lanes turned: across keys for scores and weights, which lie side by side in
// workspace.scores, and along as many columns of V at once as keep eight sums independent. The same operations in the
// same order, so a row has the bits that it has in a larger block.
#pragma once

#include <cstddef>

#include "kernels/attention_workspace.hpp"
#include "kernels/online_softmax.hpp"
#include "kernels/pv_tile.hpp"
#include "kernels/qk_row.hpp"
#include "kernels/score_tile.hpp"
#include "kernels/value_tile.hpp"

namespace sdpa::kernels {

/// Whether attend_row will do outside of holes: one row, and no cell that it sees is treated differently from another.
inline bool is_plain_row(const AttentionBlock& block) {
  return block.rows == 1 && block.mask.data == nullptr && block.bias.data == nullptr && block.softcap == 0.0 &&
         block.alibi == nullptr && block.block_mask.tiles == nullptr && block.query_segments == nullptr &&
         block.dropout.threshold == 0;
}

/// Step 4, eight vectors of columns at a time.
template <class Arch>
void accumulate_row(const ValueTile& value, std::size_t keys, bool fresh, const AttentionWorkspace<Arch>& workspace) {
  constexpr std::size_t kColumns = kColumnBlock<Arch>;
  constexpr std::size_t kWide = 8;
  std::size_t c = 0;
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
SDPA_NOINLINE void attend_row(const AttentionBlock& block, const ScoreMod& mod, KeyRange tile, KeyRange seen,
                              bool fresh, const AttentionWorkspace<Arch>& workspace) {
  const KeyTile key = load_key_tile<Arch>(block, tile, seen, workspace.keys);
  const ValueTile value = load_value_tile<Arch>(block, tile, seen, workspace);
  qk_row<Arch>(key.data, key.stride, seen.size(), workspace.queries, block.head_dim, mod.score_factor,
               ahead_of<Arch>(block, tile.begin + seen.begin, kRowKeys<Arch>), workspace.scores);
  online_softmax_row<Arch>(seen.size(), workspace.scores, workspace.m, workspace.l, workspace.alpha);
  accumulate_row<Arch>(value, seen.size(), fresh, workspace);
}

}  // namespace sdpa::kernels
