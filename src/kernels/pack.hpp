// Rows in their storage types to float32 in the order that the kernels want.
//
// Queries are packed once per block: panels of 2 vectors of rows, [panel][d][row], times a factor. Rows and columns
// beyond the operand are zeros in the workspace; nothing outside the operand is read.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/kernel_table.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

SDPA_INLINE float bfloat16_to_float(std::uint16_t h) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16);
}

/// Exact for every float16, subnormals, infinities and NaN included.
SDPA_INLINE float float16_to_float(std::uint16_t h) {
  const std::uint32_t magnitude = (h & 0x7fffU) << 13;
  // The exponent field moves from bias 15 to bias 127 by a multiplication, which handles subnormals by itself.
  const float finite = std::bit_cast<float>(magnitude) * 0x1p112F;
  const bool special = (h & 0x7c00U) == 0x7c00U;
  const std::uint32_t bits = special ? (magnitude | 0x7f800000U) : std::bit_cast<std::uint32_t>(finite);
  return std::bit_cast<float>(bits | (static_cast<std::uint32_t>(h & 0x8000U) << 16));
}

/// One element; `data` may be unaligned for nothing but its own type.
SDPA_INLINE float read_element(const void* data, DType dtype, std::size_t index) {
  switch (dtype) {
    case DType::kFloat32:
      return static_cast<const float*>(data)[index];
    case DType::kFloat16:
      return float16_to_float(static_cast<const std::uint16_t*>(data)[index]);
    case DType::kBFloat16:
      return bfloat16_to_float(static_cast<const std::uint16_t*>(data)[index]);
    case DType::kInt8:
      break;  // has a scale per row: see key_rows.hpp
  }
  return 0.0F;
}

// A step of int8 is up to 127 times smaller than what it stands for. A power of two of the scale of the keys goes into
// the queries, so that a product with the steps overflows no sooner than the score.
inline constexpr float kStepFactor = 0x1p-6F;

/// The first `whole` columns of a vector of rows times f, of a panel of kVectors vectors: constant distances between
/// what is stored.
template <class Arch, std::size_t kVectors>
SDPA_INLINE void pack_vector(const float* query, const std::size_t (&index)[simd::kWidth<Arch>], std::size_t whole,
                             simd::Batch<Arch> f, float* column) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const float* row[kW];
  for (std::size_t r = 0; r < kW; ++r) row[r] = query + index[r];
  SDPA_NO_UNROLL
  for (std::size_t d = 0; d < whole; d += kW) {
    simd::Batch<Arch> square[kW];
    for (std::size_t r = 0; r < kW; ++r) {
      square[r] = simd::load<Arch>(row[r]) * f;
      row[r] += kW;
    }
    simd::transpose<Arch>(square);
    for (std::size_t r = 0; r < kW; ++r) simd::store<Arch>(column + r * kVectors * kW, square[r]);
    column += kW * kVectors * kW;
  }
}

/// factor * query as [panel][d][1 or 2 vectors of rows]. Lanes beyond the block repeat its last row and are never read.
template <class Arch>
SDPA_NOINLINE void pack_queries(const AttentionBlock& block, double factor, float* to) {
  if (block.key.dtype == DType::kInt8) factor *= kStepFactor;
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const InputRows& query = block.query;
  const std::size_t head_dim = block.head_dim;
  const auto narrow = static_cast<float>(factor);
  // A factor that float32 cannot hold well (overflow, subnormal) still multiplies exactly in double.
  const bool in_double = factor != 0.0 && !std::isnormal(narrow);
  const auto scaled = [&](float q) { return in_double ? static_cast<float>(factor * q) : narrow * q; };
  const std::size_t whole = query.dtype == DType::kFloat32 && !in_double ? head_dim - head_dim % kW : 0;
  const auto f = simd::splat<Arch>(narrow);
  RowOffsets offsets(block, block.query_head_stride, query.stride);
  std::size_t last = 0;
  for (std::size_t first = 0; first < block.rows; first += kNr * kW) {
    const Panel panel = panel_at<Arch>(first, block.rows);
    const std::size_t stride = panel.vectors * kW;
    for (std::size_t v = 0; v < panel.vectors; ++v) {
      std::size_t index[kW];
      for (std::size_t r = 0; r < kW; ++r) {
        if (first + v * kW + r < block.rows) last = offsets.take();
        index[r] = last;
      }
      float* column = to + v * kW;
      if (panel.vectors == 1) {
        pack_vector<Arch, 1>(static_cast<const float*>(query.data), index, whole, f, column);
      } else {
        pack_vector<Arch, kNr>(static_cast<const float*>(query.data), index, whole, f, column);
      }
      for (std::size_t d = whole; d < head_dim; ++d) {
        for (std::size_t r = 0; r < kW; ++r) {
          column[d * stride + r] = scaled(read_element(query.data, query.dtype, index[r] + d));
        }
      }
    }
    to += stride * head_dim;
  }
}

/// `columns` columns of each row with zeros up to `to_stride`.
template <class Arch>
SDPA_NOINLINE void pack_column_tail(const float* from, std::size_t stride, std::size_t rows, std::size_t columns,
                                    float* to, std::size_t to_stride) {
  for (std::size_t r = 0; r < rows; ++r, from += stride, to += to_stride) {
    for (std::size_t c = 0; c < to_stride; ++c) to[c] = c < columns ? from[c] : 0.0F;
  }
}

}  // namespace sdpa::kernels
