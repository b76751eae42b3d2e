// Rows divided by their Euclidean norm, for cosines.
//
//   to[i] = factor * from[i] / max(|from[i]|, 1e-12), rows of `columns` floats, `stride` apart in both
//
// Two reads and one write of each element. The sum of squares is float32 in as many chains as a vector has lanes, and
// where that is too large or too small to be exact, once more in float64. The result of a row depends on it alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "simd/simd.hpp"

namespace sdpa::kernels {

template <class Arch>
double sum_of_squares(const float* row, std::size_t columns) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const std::size_t whole = columns - columns % kW;
  auto sum = simd::splat<Arch>(0.0F);
  for (std::size_t c = 0; c < whole; c += kW) {
    const auto x = simd::load<Arch>(row + c);
    sum = simd::madd<Arch>(x, x, sum);
  }
  float lanes[kW];
  simd::store<Arch>(lanes, sum);
  double total = 0.0;
  for (std::size_t k = 0; k < kW; ++k) total += static_cast<double>(lanes[k]);
  for (std::size_t c = whole; c < columns; ++c) total += static_cast<double>(row[c]) * static_cast<double>(row[c]);
  // Beyond: squares that overflow, or that are subnormal while others are not.
  if (total > 1e-20 && total < 1e30) return total;
  total = 0.0;
  for (std::size_t c = 0; c < columns; ++c) total += static_cast<double>(row[c]) * static_cast<double>(row[c]);
  return total;
}

template <class Arch>
void normalize_rows(const float* from, std::size_t stride, std::size_t rows, std::size_t columns, double factor,
                    float* to) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const std::size_t whole = columns - columns % kW;
  for (std::size_t r = 0; r < rows; ++r, from += stride, to += stride) {
    const double norm = std::max(std::sqrt(sum_of_squares<Arch>(from, columns)), 1e-12);
    const double share = factor / norm;
    const auto narrow = static_cast<float>(share);
    // A factor that float32 cannot hold multiplies in float64; NaN takes either way.
    if (!(narrow > 1e-30F && narrow < 1e30F)) {
      for (std::size_t c = 0; c < columns; ++c) to[c] = static_cast<float>(share * static_cast<double>(from[c]));
      continue;
    }
    const auto f = simd::splat<Arch>(narrow);
    for (std::size_t c = 0; c < whole; c += kW) simd::store<Arch>(to + c, simd::load<Arch>(from + c) * f);
    for (std::size_t c = whole; c < columns; ++c) to[c] = from[c] * narrow;
  }
}

}  // namespace sdpa::kernels
