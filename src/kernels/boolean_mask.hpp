// The boolean mask: bytes to bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

/// Bit k of the answer: byte k is not 0.
SDPA_INLINE std::uint32_t bits_of_bytes(const std::uint8_t* bytes) {
  std::uint64_t x;
  std::memcpy(&x, bytes, sizeof x);
  x |= x >> 4;
  x |= x >> 2;
  x |= x >> 1;
  x &= 0x0101010101010101U;
  return static_cast<std::uint32_t>((x * 0x0102040810204080U) >> 56);
}

/// Bits of keys [key, key + n), n <= 32, of one row of the mask.
inline std::uint32_t mask_word(const std::uint8_t* row, std::size_t column_stride, std::size_t key, std::size_t n) {
  std::uint32_t word = 0;
  std::size_t k = 0;
  if (column_stride == 1) {
    for (; k + 8 <= n; k += 8) word |= bits_of_bytes(row + key + k) << k;
  }
  for (; k < n; ++k) word |= static_cast<std::uint32_t>(row[(key + k) * column_stride] != 0) << k;
  return word;
}

}  // namespace sdpa::kernels
