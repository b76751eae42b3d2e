// Rows that will be read soon. Decode reads keys and values from memory once, and so do small blocks one behind the
// other, as windows are: without a word ahead they compute and wait in turns. Lines are touched in order, a few at a
// time between the steps of the products, since order is what a machine's own prefetching recognises.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/key_rows.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

/// Lines of a run, whatever lies there.
struct Lines {
  static constexpr std::size_t kFloats = 16;  // of one

  const float* next = nullptr;
  const float* end = nullptr;

  SDPA_INLINE std::size_t left() const { return static_cast<std::size_t>(end - next); }

  /// As many floats as kRows rows have in a line.
  template <std::size_t kRows>
  SDPA_INLINE void touch() {
    if (left() < kRows * kFloats) return;
    for (std::size_t k = 0; k < kRows * kFloats; k += kFloats) simd::touch(next + k);
    next += kRows * kFloats;
  }
};

/// Rows of keys or of values, run by run.
struct RowsAhead {
  const AttentionBlock* block = nullptr;
  bool of_keys = false;
  std::size_t row = 0;  // the first that no run had
  std::size_t last = 0;

  SDPA_NOINLINE Lines next_run() {
    if (row >= last) return {};
    const InputRows& rows = of_keys ? block->key : block->value;
    const Run run = locate(block->map, rows, row, last - row, of_keys ? block->head_dim : block->head_dim_v);
    row += run.rows;
    const std::size_t bytes = size_of(rows.dtype);
    const char* begin = static_cast<const char*>(rows.data) + run.element * bytes;
    return {reinterpret_cast<const float*>(begin),
            reinterpret_cast<const float*>(begin + run.rows * rows.stride * bytes)};
  }
};

/// The part of it that a loop keeps in registers.
struct KeyAndValueLines {
  Lines key;
  Lines value;

  /// Lines for each of kRows rows.
  template <std::size_t kRows>
  SDPA_INLINE void touch() {
    if (value.next == nullptr) return;
    key.touch<kRows>();
    value.touch<kRows>();
  }
};

/// The operands of the next block side by side: of each two lines at once, so that the machine has time to run ahead.
class NextBlockLines {
 public:
  explicit NextBlockLines(const NextBlock& next) {
    for (std::size_t k = 0; k < kOperands; ++k) {
      const auto [begin, end] = next.operands[k];
      operand_[k] = {reinterpret_cast<const float*>(begin), reinterpret_cast<const float*>(end)};
    }
  }

  /// Between two register tiles.
  SDPA_INLINE void touch() {
    for (Lines& lines : operand_) lines.touch<2>();
  }

 private:
  static constexpr std::size_t kOperands = 4;
  Lines operand_[kOperands];
};

/// Keys behind those at hand, and values.
struct KeysAndValuesAhead {
  RowsAhead key;
  RowsAhead value;
  KeyAndValueLines lines;
  NextBlockLines* block = nullptr;  // of larger blocks

  /// The next runs where these are done with. Between register tiles: within one, a call would have all its sums stored
  /// and loaded again.
  SDPA_INLINE void refill(KeyAndValueLines& now) {
    if (now.key.left() < Lines::kFloats && key.row < key.last) now.key = key.next_run();
    if (now.value.left() < Lines::kFloats && value.row < value.last) now.value = value.next_run();
  }
};

/// What decode touches while it computes the scores of keys [first, ...): the rows behind those at hand, or of operands
/// that are not read where they lie and go by tiles, those of the next tile. Nothing where the block has more rows than
/// a vector, where the caches hold the operands, or where rows do not lie one behind the other.
template <class Arch>
KeysAndValuesAhead ahead_of(const AttentionBlock& block, std::size_t first, std::size_t rows_at_once,
                            bool keys_in_place, bool values_in_place) {
  if constexpr (std::is_same_v<Arch, simd::Scalar>) return {};  // computes for longer than it reads
  const bool contiguous = block.key.stride == block.head_dim && block.value.stride == block.head_dim_v;
  if (!block.streams || block.rows > simd::kWidth<Arch> || !contiguous) return {};
  std::size_t last = 0;
  for (std::size_t r = 0; r < block.rows; ++r) last = block.key_end[r] > last ? block.key_end[r] : last;
  const std::size_t next_tile = (first / kBc + 1) * kBc;
  const auto rows = [&](bool of_keys, bool in_place, std::size_t behind) {
    if (in_place) return RowsAhead{&block, of_keys, first + behind, last};
    return RowsAhead{&block, of_keys, next_tile, last < next_tile + kBc ? last : next_tile + kBc};
  };
  return {rows(true, keys_in_place, rows_at_once), rows(false, values_in_place, 0), {}, nullptr};
}

}  // namespace sdpa::kernels
