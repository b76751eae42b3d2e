// The values of one tile as the products with the weights want them.
#pragma once

#include <cstddef>

#include "kernels/attention_workspace.hpp"
#include "kernels/key_rows.hpp"
#include "kernels/mask.hpp"
#include "kernels/pack.hpp"
#include "kernels/pv_tile.hpp"

namespace sdpa::kernels {

/// Keys [tile.begin + seen.begin, tile.begin + seen.end) of V: in place, or copied; the last columns packed.
template <class Arch>
ValueTile load_value_tile(const AttentionBlock& block, KeyRange tile, KeyRange seen,
                          const AttentionWorkspace<Arch>& workspace) {
  const std::size_t tail_stride = AttentionWorkspace<Arch>::tail_stride(block.head_dim_v);
  const auto [data, stride] = float_rows<Arch>(block.map, block.value, tile.begin + seen.begin, seen.size(),
                                               block.head_dim_v, workspace.values);
  const ValueTile value{data, stride, block.head_dim_v, workspace.tail, tail_stride};
  const std::size_t rest = block.head_dim_v % kColumnBlock<Arch>;
  if (rest != 0) {
    pack_column_tail<Arch>(value.data + (block.head_dim_v - rest), value.stride, seen.size(), rest, workspace.tail,
                           tail_stride);
  }
  return value;
}

}  // namespace sdpa::kernels
