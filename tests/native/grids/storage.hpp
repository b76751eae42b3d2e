// The 16-bit storage types as in support/storage16.hpp, which is slow and plain, but fast for numbers of ordinary size:
// a sweep converts thousands of millions of them. A test compares the two.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "support/storage16.hpp"

namespace sdpa::grids {

inline std::uint16_t to_bits(float value, DType dtype) {
  if (dtype == DType::kBFloat16) return testing::to_bfloat16(value);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t exponent = bits >> 23 & 255;
  if (exponent < 113 || exponent > 140) return testing::to_float16(value);  // below 2^-14, or from 2^14 on
  // 13 bits of the fraction go, rounded to even; a carry goes into the exponent.
  const std::uint32_t rounded = bits + 0xfff + (bits >> 13 & 1);
  return static_cast<std::uint16_t>((bits >> 16 & 0x8000) | ((rounded >> 13 & 0x3ffff) - (112U << 10)));
}

inline float from_bits(std::uint16_t bits, DType dtype) {
  if (dtype == DType::kBFloat16) return testing::from_bfloat16(bits);
  const std::uint32_t exponent = bits >> 10 & 31;
  if (exponent == 0 || exponent == 31) return testing::from_float16(bits);
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  return std::bit_cast<float>(sign | (((bits & 0x7fffU) << 13) + (112U << 23)));
}

inline void round_to(std::vector<float>& values, DType dtype) {
  if (dtype == DType::kFloat32) return;
  for (float& value : values) value = from_bits(to_bits(value, dtype), dtype);
}

}  // namespace sdpa::grids
