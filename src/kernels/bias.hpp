// An additive bias, read where it lies: no float32 copy of it, whatever its type and whichever of its dimensions
// repeat.
#pragma once

#include <cstddef>

#include "kernels/kernel_table.hpp"
#include "kernels/mask.hpp"
#include "kernels/pack.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

/// `n` biases, `step` elements apart.
SDPA_NOINLINE inline void read_line(const void* data, DType dtype, std::size_t at, std::size_t step, std::size_t n,
                                    float* to) {
  for (std::size_t k = 0; k < n; ++k) to[k] = read_element(data, dtype, at + k * step);
}

/// Adds the bias of keys [tile_begin + keys.begin, tile_begin + keys.end) to the scores [key][row] of a panel. A bias
/// of -infinity excludes its cell whatever the score; the answer is whether there was one.
template <class Arch>
SDPA_NOINLINE bool apply_bias(const AttentionBlock& block, const Panel& panel, std::size_t tile_begin, KeyRange keys,
                              float* scores) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  using V = simd::Batch<Arch>;
  const auto& bias = block.bias;
  const V masked = simd::splat<Arch>(kMasked);
  auto excluded = masked != masked;
  const auto add = [&](float* s, V x) {
    const auto out = x == masked;
    excluded = excluded | out;
    simd::store<Arch>(s, xsimd::select(out, masked, simd::load<Arch>(s) + x));
  };
  const bool in_place = bias.column_stride == 1 && block.bias_dtype == DType::kFloat32;
  const bool rows_alike = bias.row_stride == 0 && (bias.head_stride == 0 || block.rows <= block.rows_per_head);
  for (std::size_t v = 0; v < panel.vectors; ++v) {
    std::size_t at[kW];
    for (std::size_t r = 0; r < kW; ++r) {
      // Lanes beyond the block repeat its last row and are never read.
      const std::size_t row = panel.first + v * kW + r;
      at[r] = block.row_offset(row < block.rows ? row : block.rows - 1, bias.head_stride, bias.row_stride);
    }
    float* s = scores + keys.begin * kScoreStride<Arch> + v * kW;
    const std::size_t first = tile_begin + keys.begin;
    if (rows_alike) {
      for (std::size_t j = 0; j < keys.size(); ++j, s += kScoreStride<Arch>) {
        add(s, V(read_element(bias.data, block.bias_dtype, at[0] + (first + j) * bias.column_stride)));
      }
      continue;
    }
    for (std::size_t j = 0; j < keys.size(); j += kW) {
      const std::size_t n = keys.size() - j < kW ? keys.size() - j : kW;
      V square[kW];
      for (std::size_t r = 0; r < kW; ++r) {
        if (in_place && n == kW) {
          square[r] = simd::load<Arch>(static_cast<const float*>(bias.data) + at[r] + first + j);
        } else {
          float line[kW] = {};
          read_line(bias.data, block.bias_dtype, at[r] + (first + j) * bias.column_stride, bias.column_stride, n, line);
          square[r] = simd::load<Arch>(line);
        }
      }
      simd::transpose<Arch>(square);
      if (n == kW) {
        for (std::size_t k = 0; k < kW; ++k) add(s + k * kScoreStride<Arch>, square[k]);
      } else {
        for (std::size_t k = 0; k < n; ++k) add(s + k * kScoreStride<Arch>, square[k]);
      }
      s += kW * kScoreStride<Arch>;
    }
  }
  return xsimd::any(excluded);
}

}  // namespace sdpa::kernels
