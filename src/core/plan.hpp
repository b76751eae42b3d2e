// Shapes and options to work: how rows are cut into blocks and what memory a call needs. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

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

/// The largest of parts that are as even as can be, none above `most`; 1 <= n.
constexpr std::size_t even_share(std::size_t n, std::size_t most) {
  const std::size_t parts = (n - 1) / most + 1;  // n + most may not fit
  return (n - 1) / parts + 1;
}

/// Whether the kernel's pieces, a few hundred rows of either head size, fit std::size_t.
constexpr bool head_sizes_fit(std::size_t head_dim, std::size_t head_dim_v) {
  constexpr std::size_t kMostRows = 4096;
  constexpr std::size_t kLimit = std::numeric_limits<std::size_t>::max() / sizeof(float) / kMostRows;
  return head_dim_v <= kLimit && head_dim <= kLimit - head_dim_v;
}

/// Arguments have passed validate(). kSizeOverflow where the workspace does not fit std::size_t.
Status make_plan(const kernels::KernelTable& table, const AttentionTensors& tensors, const AttentionOptions& options,
                 AttentionPlan& plan);

}  // namespace sdpa::core
