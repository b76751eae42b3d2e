// Rows of keys or values as float32 rows of one piece: where they lie if they do, else a tile's worth of them copied,
// widened and put together from pages or from both ends of a ring. No tensor is ever expanded as a whole.
//
// Of int8 these are the steps. Their scales go by themselves: a key's multiplies its scores, a value's its weights,
// once each instead of once a number.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.hpp"
#include "kernels/pack.hpp"
#include "kernels/widen.hpp"

namespace sdpa::kernels {

/// Rows that lie one behind the other.
struct Run {
  std::size_t element;  // of the first, from the operand's start
  std::size_t scale;
  std::size_t rows;
};

/// The first of `rows` rows from row `first` on, as many as are one piece.
inline Run locate(const RowMap& map, const InputRows& source, std::size_t first, std::size_t rows,
                  std::size_t columns) {
  const auto least = [](std::size_t a, std::size_t b) { return a < b ? a : b; };
  std::size_t slot = first;
  if (map.ring_size != 0) {
    if (first < map.ring_begin) {
      rows = least(rows, map.ring_begin - first);
    } else {
      const std::size_t turn = (first - map.ring_begin) % map.ring_size;
      slot = map.ring_begin + turn;
      rows = least(rows, map.ring_size - turn);
    }
  }
  if (map.page_size == 0) return {slot * source.stride, slot, rows};
  const std::size_t row = slot % map.page_size;
  const auto page = static_cast<std::size_t>(map.pages[slot / map.page_size]);
  return {page * source.page_stride + row * source.stride, page * (source.page_stride / columns) + row,
          least(rows, map.page_size - row)};
}

/// A run as contiguous float32 rows.
template <class Arch>
SDPA_NOINLINE void copy_run(const InputRows& source, const Run& run, std::size_t columns, float* to) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const std::size_t whole = columns - columns % kW;
  switch (source.dtype) {
    case DType::kFloat32: {
      const float* from = static_cast<const float*>(source.data) + run.element;
      for (std::size_t r = 0; r < run.rows; ++r, from += source.stride, to += columns) {
        // By vectors: a row is too short for what a call of memcpy costs.
        for (std::size_t c = 0; c < whole; c += kW) simd::store<Arch>(to + c, simd::load<Arch>(from + c));
        for (std::size_t c = whole; c < columns; ++c) to[c] = from[c];
      }
      return;
    }
    case DType::kInt8: {
      const auto* from = static_cast<const std::int8_t*>(source.data) + run.element;
      for (std::size_t r = 0; r < run.rows; ++r, from += source.stride, to += columns) {
        widen_int8<Arch>(from, columns, to);
      }
      return;
    }
    case DType::kFloat16:
    case DType::kBFloat16: {
      const auto* from = static_cast<const std::uint16_t*>(source.data) + run.element;
      for (std::size_t r = 0; r < run.rows; ++r, from += source.stride, to += columns) {
        if (source.dtype == DType::kFloat16) {
          widen_float16<Arch>(from, columns, to);
        } else {
          for (std::size_t c = 0; c < columns; ++c) to[c] = bfloat16_to_float(from[c]);
        }
      }
      return;
    }
  }
}

struct FloatRows {
  const float* data;
  std::size_t stride;
};

/// Rows [first, first + rows): in place where they are float32 and one piece, else copied into `to` ([rows][columns]).
template <class Arch>
FloatRows float_rows(const RowMap& map, const InputRows& source, std::size_t first, std::size_t rows,
                     std::size_t columns, float* to) {
  for (std::size_t done = 0; done < rows;) {
    const Run run = locate(map, source, first + done, rows - done, columns);
    if (source.dtype == DType::kFloat32 && run.rows == rows) {
      return {static_cast<const float*>(source.data) + run.element, source.stride};
    }
    copy_run<Arch>(source, run, columns, to + done * columns);
    done += run.rows;
  }
  return {to, columns};
}

/// The scales of rows [first, first + rows) in `to`, times `factor`; nullptr where rows have none.
inline const float* load_scales(const RowMap& map, const InputRows& source, std::size_t first, std::size_t rows,
                                std::size_t columns, float factor, float* to) {
  if (source.dtype != DType::kInt8) return nullptr;
  for (std::size_t done = 0; done < rows;) {
    const Run run = locate(map, source, first + done, rows - done, columns);
    for (std::size_t r = 0; r < run.rows; ++r) to[done + r] = factor * source.scales[run.scale + r];
    done += run.rows;
  }
  return to;
}

/// What the scores of keys [first, first + keys) are to be multiplied by, if anything.
inline const float* load_key_scales(const AttentionBlock& block, std::size_t first, std::size_t keys, float* to) {
  return load_scales(block.map, block.key, first, keys, block.head_dim, 1.0F / kStepFactor, to);
}

/// Likewise the weights.
inline const float* load_value_scales(const AttentionBlock& block, std::size_t first, std::size_t keys, float* to) {
  return load_scales(block.map, block.value, first, keys, block.head_dim_v, 1.0F, to);
}

}  // namespace sdpa::kernels
