// Scales of int8 rows on scores and on weights: one multiplication a cell instead of one a number.
#pragma once

#include <cmath>
#include <cstddef>

#include "kernels/mask.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

/// Cells [key][row] of `keys` times the number of their key; scales[0] is that of keys.begin.
template <class Arch>
SDPA_NOINLINE void scale_keys(KeyRange keys, std::size_t vectors, const float* scales, float* cells) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  for (std::size_t j = keys.begin; j < keys.end; ++j) {
    const auto scale = simd::splat<Arch>(scales[j - keys.begin]);
    float* row = cells + j * kScoreStride<Arch>;
    for (std::size_t v = 0; v < vectors; ++v) simd::store<Arch>(row + v * kW, simd::load<Arch>(row + v * kW) * scale);
  }
}

/// The same for a row alone, whose n cells lie side by side; as many more as fill a vector are of no meaning.
template <class Arch>
SDPA_NOINLINE void scale_row(std::size_t n, const float* scales, float* cells) {
  for (std::size_t j = 0; j < n; j += simd::kWidth<Arch>) {
    simd::store<Arch>(cells + j, simd::load<Arch>(cells + j) * simd::load<Arch>(scales + j));
  }
}

/// One vector of rows, or for kKeyStep = 1 a row alone, times the same number.
template <class Arch, std::size_t kKeyStep>
SDPA_NOINLINE void scale_all(std::size_t n, float factor, float* cells) {
  constexpr std::size_t kStep = kKeyStep == 1 ? simd::kWidth<Arch> : kKeyStep;
  const auto f = simd::splat<Arch>(factor);
  for (std::size_t j = 0; j < n * kKeyStep; j += kStep) {
    simd::store<Arch>(cells + j, simd::load<Arch>(cells + j) * f);
  }
}

inline bool scales_are_finite(const float* scales, std::size_t n) {
  for (std::size_t j = 0; scales != nullptr && j < n; ++j) {
    if (!std::isfinite(scales[j])) return false;
  }
  return true;
}

}  // namespace sdpa::kernels
