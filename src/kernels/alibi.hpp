// Attention with linear biases (Press, Smith & Lewis 2022): s - slope |p - j|, p the position of the row, j that of the
// key. No matrix: a distance is one subtraction.
#pragma once

#include <cstddef>

#include "kernels/kernel_table.hpp"
#include "kernels/mask.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

/// Adds the biases of `keys` of the tile to the scores [key][row] of a panel.
template <class Arch>
SDPA_NOINLINE void apply_alibi(const AttentionBlock& block, const Panel& panel, std::size_t tile_begin, KeyRange keys,
                               float* scores) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  for (std::size_t v = 0; v < panel.vectors; ++v) {
    // Positions relative to the tile are exact as float32 up to a distance of 2^24.
    float position[kW];
    float slope[kW];
    for (std::size_t r = 0; r < kW; ++r) {
      const std::size_t lane = v * kW + r;
      const std::size_t row = panel.first + (lane < panel.rows ? lane : panel.rows - 1);
      position[r] = static_cast<float>(block.position[row] - static_cast<std::int64_t>(tile_begin));
      slope[r] = -block.alibi[block.head_of(row)];
    }
    const auto p = simd::load<Arch>(position);
    const auto minus_slope = simd::load<Arch>(slope);
    float* s = scores + keys.begin * kScoreStride<Arch> + v * kW;
    for (std::size_t j = keys.begin; j < keys.end; ++j, s += kScoreStride<Arch>) {
      const auto distance = xsimd::abs(p - simd::splat<Arch>(static_cast<float>(j)));
      simd::store<Arch>(s, simd::madd<Arch>(minus_slope, distance, simd::load<Arch>(s)));
    }
  }
}

}  // namespace sdpa::kernels
