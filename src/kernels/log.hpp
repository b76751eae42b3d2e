// The natural logarithm of a row's sum: x = 2^k u with u in [sqrt(1/2), sqrt(2)), and
//
//   ln x = k ln 2 + 2 artanh(s),   s = (u - 1) / (u + 1),   artanh(s) = s + s^3 / 3 + s^5 / 5 + ...
//
// |s| is at most 0.1716, so what is left out after s^15 is below 2^-44 of the result: a float32 beside it does not tell
// it from the exact one. The C library's logarithm brings a table of 4 KB, a tenth of a packed build.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace sdpa::kernels {

/// ln x of a float32, relative error at most 2^-43; -infinity for 0, NaN for what is negative or NaN.
inline double log_of(float x) {
  if (x == 0.0F) return -std::numeric_limits<double>::infinity();
  if (!(x > 0.0F)) return std::numeric_limits<double>::quiet_NaN();
  if (x == std::numeric_limits<float>::infinity()) return std::numeric_limits<double>::infinity();
  // As a float64 every float32 is normal. Subtracting the bits of sqrt(1/2) borrows from the exponent where the
  // fraction is smaller.
  constexpr std::uint64_t kOne = 0x3ff0000000000000;
  constexpr std::uint64_t kRootOfHalf = 0x3fe6a09e667f3bcd;
  constexpr int kFractionBits = 52;
  const auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(x));
  const std::uint64_t power = (bits + (kOne - kRootOfHalf)) >> kFractionBits;  // k + 1023
  const double u = std::bit_cast<double>(bits + kOne - (power << kFractionBits));
  const double s = (u - 1.0) / (u + 1.0);
  const double z = s * s;
  // Two chains side by side.
  const double w = z * z;
  const double a = ((w * (1.0 / 15) + 1.0 / 11) * w + 1.0 / 7) * w + 1.0 / 3;
  const double b = (w * (1.0 / 13) + 1.0 / 9) * w + 1.0 / 5;
  const double artanh = s + s * z * (a + b * z);
  return (static_cast<double>(static_cast<int>(power)) - 1023.0) * 0.6931471805599453 + 2.0 * artanh;
}

}  // namespace sdpa::kernels
