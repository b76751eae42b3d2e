// Rows that decode will read soon: it reads keys and values from memory once, and without a word ahead it computes and
// waits in turns. Lines are touched in order, a few at a time between the steps of the products, since order is what a
// machine's own prefetching recognises.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/key_rows.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

struct Ahead {
  static constexpr std::size_t kLine = 16;  // floats

  const float* next = nullptr;  // lines of a run, whatever lies there
  const float* end = nullptr;
  // Where the run ends before the rows that are wanted do, the next one follows.
  const AttentionBlock* block = nullptr;
  bool of_keys = false;
  std::size_t row = 0;  // the first behind the run
  std::size_t last = 0;

  /// The run that row `row` begins. By value, and no member: a struct whose address is known lives in memory.
  SDPA_NOINLINE static Ahead at(const AttentionBlock* block, bool of_keys, std::size_t row, std::size_t last) {
    if (row >= last) return {};
    const InputRows& rows = of_keys ? block->key : block->value;
    const Run run = locate(block->map, rows, row, last - row, of_keys ? block->head_dim : block->head_dim_v);
    const std::size_t bytes = size_of(rows.dtype);
    const char* begin = static_cast<const char*>(rows.data) + run.element * bytes;
    return {reinterpret_cast<const float*>(begin),
            reinterpret_cast<const float*>(begin + run.rows * rows.stride * bytes),
            block,
            of_keys,
            row + run.rows,
            last};
  }

  /// Between register tiles: within one, a call would have all its sums stored and loaded again.
  SDPA_INLINE void refill() {
    if (row < last && static_cast<std::size_t>(end - next) < kLine) *this = at(block, of_keys, row, last);
  }

  /// As many floats as kRows rows have in a line.
  template <std::size_t kRows>
  SDPA_INLINE void touch() {
    constexpr std::size_t kFloats = kRows * kLine;
    if (static_cast<std::size_t>(end - next) < kFloats) return;
    for (std::size_t k = 0; k < kFloats; k += kLine) simd::touch(next + k);
    next += kFloats;
  }
};

/// Keys behind those at hand, and values.
struct KeysAndValuesAhead {
  Ahead key;
  Ahead value;

  bool any() const { return value.next != nullptr; }
  SDPA_INLINE void refill() {
    key.refill();
    value.refill();
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
    if (in_place) return Ahead::at(&block, of_keys, first + behind, last);
    return Ahead::at(&block, of_keys, next_tile, last < next_tile + kBc ? last : next_tile + kBc);
  };
  return {rows(true, keys_in_place, rows_at_once), rows(false, values_in_place, 0)};
}

}  // namespace sdpa::kernels
