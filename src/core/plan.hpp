// Shapes and options to work: how rows are cut into blocks and what memory a call needs. Pure.
#pragma once

#include <cstddef>

#include "kernels/kernel_table.hpp"
#include "sdpa/attention.hpp"

namespace sdpa::core {

struct AttentionPlan {
  std::size_t rows_per_block = 0;   // of each head
  std::size_t heads_per_block = 1;  // query heads of one key head that are stacked
  std::size_t bounds_bytes = 0;     // RowBounds of one block, at the workspace's start
  std::size_t kernel_bytes = 0;     // what the kernel wants, behind them
  std::size_t bytes() const { return bounds_bytes + kernel_bytes; }
};

/// Rows of a block where there are more than one block holds: whole panels of two vectors.
std::size_t usual_block_rows(const kernels::KernelTable& table);

/// Arguments have passed validate(). kSizeOverflow where the workspace does not fit std::size_t.
Status make_plan(const kernels::KernelTable& table, const AttentionTensors& tensors, AttentionPlan& plan);

}  // namespace sdpa::core
