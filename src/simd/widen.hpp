// Loads of narrow numbers, widened to float32.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "simd/simd.hpp"

namespace sdpa::simd {

#if defined(__wasm_simd128__)
template <class Arch>
inline constexpr bool kHasWasmVectors = !std::is_same_v<Arch, Scalar>;
#else
template <class Arch>
inline constexpr bool kHasWasmVectors = false;
#endif

/// Numbers of a step.
template <class Arch>
inline constexpr std::size_t kInt8Step = 16;
template <class Arch>
inline constexpr std::size_t kFloat16Step = 8;

/// to[k] = from[k] of a step.
template <class Arch>
SDPA_INLINE void widen_int8(const std::int8_t* from, float* to) {
#if defined(__wasm_simd128__)
  if constexpr (kHasWasmVectors<Arch>) {
    const v128_t bytes = wasm_v128_load(from);
    const auto four = [&](v128_t words, float* at)
                          SDPA_INLINE_LAMBDA { wasm_v128_store(at, wasm_f32x4_convert_i32x4(words)); };
    const v128_t low = wasm_i16x8_extend_low_i8x16(bytes);
    const v128_t high = wasm_i16x8_extend_high_i8x16(bytes);
    four(wasm_i32x4_extend_low_i16x8(low), to);
    four(wasm_i32x4_extend_high_i16x8(low), to + 4);
    four(wasm_i32x4_extend_low_i16x8(high), to + 8);
    four(wasm_i32x4_extend_high_i16x8(high), to + 12);
    return;
  }
#endif
  for (std::size_t k = 0; k < kInt8Step<Arch>; ++k) to[k] = static_cast<float>(from[k]);
}

struct Float16Table {
  std::uint32_t exponent[4] = {0x7c007c00U, 0x7c007c00U, 0x7c007c00U, 0x7c007c00U};
  std::uint32_t places[4] = {0x8fffe000U, 0x8fffe000U, 0x8fffe000U, 0x8fffe000U};
  float factor[4] = {0x1p112F, 0x1p112F, 0x1p112F, 0x1p112F};
};
inline constexpr Float16Table kFloat16Table{};

/// to[k] = from[k], k < n, a multiple of kFloat16Step; false, and nothing of use in `to`, where one is infinite or NaN.
/// A float16 widened with its sign and shifted to the places of a float32 has an exponent that is 112 too small: a
/// multiplication, which handles subnormals by itself.
template <class Arch>
SDPA_INLINE bool widen_finite_float16(const std::uint16_t* from, std::size_t n, float* to) {
#if defined(__wasm_simd128__)
  if constexpr (kHasWasmVectors<Arch>) {
    const Float16Table* table = opaque(&kFloat16Table);
    const v128_t exponent = wasm_v128_load(table->exponent);
    const v128_t places = wasm_v128_load(table->places);
    const v128_t factor = wasm_v128_load(table->factor);
    v128_t special = wasm_i32x4_splat(0);
    const auto four = [&](v128_t words, float* at) SDPA_INLINE_LAMBDA {
      wasm_v128_store(at, wasm_f32x4_mul(wasm_v128_and(wasm_i32x4_shl(words, 13), places), factor));
    };
    SDPA_NO_UNROLL
    for (; n != 0; n -= kFloat16Step<Arch>) {
      const v128_t halves = wasm_v128_load(from);
      special = wasm_v128_or(special, wasm_i16x8_eq(wasm_v128_and(halves, exponent), exponent));
      four(wasm_i32x4_extend_low_i16x8(halves), to);
      four(wasm_i32x4_extend_high_i16x8(halves), to + 4);
      from += kFloat16Step<Arch>;
      to += kFloat16Step<Arch>;
    }
    return !wasm_v128_any_true(special);
  }
#endif
  std::uint32_t special = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const std::uint32_t half = from[k];
    special |= static_cast<std::uint32_t>((half & 0x7c00U) == 0x7c00U);
    const auto magnitude = std::bit_cast<float>((half & 0x7fffU) << 13) * 0x1p112F;
    to[k] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | (half & 0x8000U) << 16);
  }
  return special == 0;
}

}  // namespace sdpa::simd
