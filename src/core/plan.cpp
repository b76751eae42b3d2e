#include "core/plan.hpp"

#include <algorithm>

#include "core/block_builder.hpp"

namespace sdpa::core {
namespace {

// Blocks of nearly equal height in whole panels of two vectors: 49 rows are one block, 80 are two of 40, never 48
// and 32. What is left of the table height (room for a 7x7 window) is for sequences that fit one block.
std::size_t rows_per_block(const kernels::KernelTable& table, std::size_t seqlen_q) {
  if (seqlen_q <= table.rows_per_block) return seqlen_q;
  const std::size_t usual = usual_block_rows(table);
  return std::min(table.rows_per_block, kernels::round_up(even_share(seqlen_q, usual), 2 * table.width));
}

// Decode has one row or a few and many query heads to a key head: stacked, they read the cache once. Groups are cut
// evenly.
std::size_t heads_per_block(const kernels::KernelTable& table, std::size_t seqlen_q, std::size_t group) {
  if (group <= 1 || seqlen_q == 0 || seqlen_q > table.rows_per_block / 2) return 1;
  return even_share(group, table.rows_per_block / seqlen_q);
}

}  // namespace

std::size_t usual_block_rows(const kernels::KernelTable& table) {
  const std::size_t panel = 2 * table.width;
  return table.rows_per_block * 6 / 7 / panel * panel;
}

Status make_plan(const kernels::KernelTable& table, const AttentionTensors& tensors, const AttentionOptions& options,
                 AttentionPlan& plan) {
  const bool pieces = tensors.map.page_size != 0 || tensors.map.ring_size != 0;
  const kernels::WorkspaceShape shape{tensors.query.extent(3), tensors.value.extent(3),
                                      pieces || tensors.key.dtype() != DType::kFloat32,
                                      pieces || tensors.value.dtype() != DType::kFloat32, false};
  if (!head_sizes_fit(shape.head_dim, shape.head_dim_v)) return StatusCode::kSizeOverflow;
  const std::size_t seqlen_q = tensors.query.extent(2);
  plan.rows_per_block = rows_per_block(table, seqlen_q);
  if (options.block_mask.tiles != nullptr && seqlen_q > table.rows_per_block) {
    // The rows of a block then see the same tiles of the mask, whatever part of the whole call this is.
    plan.rows_per_block = std::min(table.rows_per_block, kBlockMaskTile);
    plan.rows_before = options.origin.row % plan.rows_per_block;
  }
  const std::size_t kv_heads = tensors.key.extent(1);
  plan.heads_per_block =
      heads_per_block(table, tensors.query.extent(2), kv_heads == 0 ? 1 : tensors.query.extent(1) / kv_heads);
  plan.bounds_bytes = BlockBuilder::bytes_for(table);
  plan.kernel_bytes = table.workspace_floats(shape) * sizeof(float);
  return StatusCode::kOk;
}

}  // namespace sdpa::core
