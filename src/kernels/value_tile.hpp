// The values of one tile as the products with the weights want them.
#pragma once

#include <cstddef>

#include "kernels/attention_workspace.hpp"
#include "kernels/key_rows.hpp"
#include "kernels/mask.hpp"
#include "kernels/pack.hpp"
#include "kernels/pv_tile.hpp"

namespace sdpa::kernels {

/// n rows with their last columns packed into `tail` where these are no whole block.
template <class Arch>
ValueTile with_tail(FloatRows rows, std::size_t n, std::size_t columns, float* tail) {
  const std::size_t rest = columns % kColumnBlock<Arch>;
  if (rest != 0) {
    pack_column_tail<Arch>(rows.data + (columns - rest), rows.stride, n, rest, tail, tail_stride<Arch>(columns));
  }
  return {rows.data, rows.stride, columns, tail, tail_stride<Arch>(columns)};
}

/// Keys [tile.begin + seen.begin, tile.begin + seen.end) of V: in place, or copied; the last columns packed.
template <class Arch>
ValueTile load_value_tile(const AttentionBlock& block, KeyRange tile, KeyRange seen,
                          const AttentionWorkspace<Arch>& workspace) {
  const FloatRows rows = float_rows<Arch>(block.map, block.value, tile.begin + seen.begin, seen.size(),
                                          block.head_dim_v, workspace.values);
  return with_tail<Arch>(rows, seen.size(), block.head_dim_v, workspace.tail);
}

}  // namespace sdpa::kernels
