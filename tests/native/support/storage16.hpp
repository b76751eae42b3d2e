// The two 16-bit storage types, converted slowly from their definitions: value = (-1)^s 2^(e - bias) (1 + f), with
// subnormals, infinities and NaN as IEEE 754 has them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "sdpa/tensor_view.hpp"

namespace sdpa::testing {

inline float from_float16(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) {
    return fraction != 0 ? std::numeric_limits<float>::quiet_NaN() : sign * std::numeric_limits<float>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

// Nearest, ties to even; values past the largest become infinity.
inline std::uint16_t to_float16(float value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return 0x7e00;
  if (magnitude >= 65520.0F) return static_cast<std::uint16_t>(sign | 0x7c00);
  if (magnitude < 0x1p-14F) return static_cast<std::uint16_t>(sign + std::lrint(std::ldexp(magnitude, 24)));
  const int exponent = std::ilogb(magnitude);
  const long fraction = std::lrint(std::ldexp(magnitude, 10 - exponent)) - 1024;  // 1024 carries into the exponent
  return static_cast<std::uint16_t>(sign + ((exponent + 15) << 10) + fraction);
}

inline float from_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// Nearest, ties to even.
inline std::uint16_t to_bfloat16(float value) {
  if (std::isnan(value)) return 0x7fc0;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// Rounds every element to what the storage type holds, so that the reference sees the very numbers.
inline void round_to(std::vector<float>& values, DType dtype) {
  for (float& value : values) {
    if (dtype == DType::kFloat16) value = from_float16(to_float16(value));
    if (dtype == DType::kBFloat16) value = from_bfloat16(to_bfloat16(value));
  }
}

}  // namespace sdpa::testing
