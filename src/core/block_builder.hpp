// A piece of a call as the kernels take it: pointers, strides, intervals, masks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/row_bounds.hpp"
#include "kernels/kernel_table.hpp"
#include "sdpa/attention.hpp"

namespace sdpa::core {

/// What scores are times.
double scale_of(const AttentionOptions& options, std::size_t head_dim);

/// Where row `first` of a head lies.
const char* rows_from(const InputView& view, std::size_t b, std::size_t h, std::size_t first);

/// Rows [first, first + rows) of query heads [h, h + heads) of batch entry b, which share key head g.
struct Place {
  std::size_t b, g, h, heads, first, rows;
};

class BlockBuilder {
 public:
  /// `memory` holds bytes_for() bytes at a multiple of 64: the intervals of one block.
  BlockBuilder(const kernels::KernelTable& table, const AttentionTensors& tensors, const AttentionOptions& options,
               std::byte* memory);

  static std::size_t bytes_for(const kernels::KernelTable& table);

  /// Good until the next one: the intervals are overwritten.
  kernels::AttentionBlock build(const RowRules& rules, const Place& at);

  /// Of the block at a place, which is built next: operands that are one piece each, where keys and values are small.
  kernels::NextBlock next_at(const Place& at) const;

 private:
  void place_tensors(const Place& at, kernels::AttentionBlock& block) const;
  void place_rows(const RowRules& rules, const Place& at, kernels::AttentionBlock& block);
  void place_masks(const RowRules& rules, const Place& at, kernels::AttentionBlock& block) const;
  kernels::BlockMaskRows block_mask_rows(const Place& at) const;
  kernels::InputRows stored_rows(const InputView& view, const float* scales, std::size_t b, std::size_t h) const;

  const AttentionTensors& t_;
  const AttentionOptions& o_;
  RowBounds bounds_{};
  // The place whose rows bounds_ holds.
  struct Filled {
    std::size_t b, first, rows, heads;
    bool operator==(const Filled&) const = default;
  };
  Filled filled_{};  // of no rows
  bool streams_;
};

}  // namespace sdpa::core
