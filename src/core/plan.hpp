// Shapes and options to work: how rows are cut into blocks and what memory a call needs. Pure.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/kernel_table.hpp"
#include "sdpa/attention.hpp"

namespace sdpa::core {

struct AttentionPlan {
  std::size_t rows_per_block = 0;   // of each head
  std::size_t rows_before = 0;      // that the first block would have before its own first
  std::size_t heads_per_block = 1;  // query heads of one key head that are stacked
  std::size_t bounds_bytes = 0;     // RowBounds of one block, at the workspace's start
  std::size_t kernel_bytes = 0;     // what the kernel wants, behind them
  /// Of the block that begins with row `first`.
  std::size_t rows_at(std::size_t first, std::size_t seqlen_q) const {
    return std::min(rows_per_block - (rows_before + first) % rows_per_block, seqlen_q - first);
  }
  std::size_t bytes() const { return bounds_bytes + kernel_bytes; }
};

/// Rows of a block where there are more than one block holds: whole panels of two vectors.
std::size_t usual_block_rows(const kernels::KernelTable& table);

/// Arguments have passed validate(). kSizeOverflow where the workspace does not fit std::size_t.
Status make_plan(const kernels::KernelTable& table, const AttentionTensors& tensors, const AttentionOptions& options,
                 AttentionPlan& plan);

}  // namespace sdpa::core
