// Numbers of 8 and 16 bits, widened in registers on their way into a product. WebAssembly alone: other instruction sets
// have their rows widened in memory first.
//
// Widening as such costs as much as the product, so what is a power of two is left to the other factor, which it rounds
// nothing of:
//
//   a float16 in the places of a float32 is 2^-112 of its value        sign-extend, shift, and
//   a byte in the highest places of a word is 2^24 of its value        shift, and, convert
//
// Squares of keys are transposed as words of 32 bits, before they are widened: two or four columns at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simd/simd.hpp"
#include "simd/widen.hpp"

namespace sdpa::simd {

/// Whether rows of this instruction set are widened in registers.
template <class Arch>
inline constexpr bool kWidensInRegisters = kHasWasmVectors<Arch>;

#if defined(__wasm_simd128__)

struct NarrowTable {
  std::uint32_t float16_places[4] = {0x8fffe000U, 0x8fffe000U, 0x8fffe000U, 0x8fffe000U};
  std::uint32_t highest_byte[4] = {0xff000000U, 0xff000000U, 0xff000000U, 0xff000000U};
};
inline constexpr NarrowTable kNarrowTable{};

/// Rows of four 32-bit words to columns.
SDPA_INLINE void transpose_words(v128_t (&w)[4]) {
  const v128_t a = wasm_i32x4_shuffle(w[0], w[1], 0, 4, 1, 5);
  const v128_t b = wasm_i32x4_shuffle(w[2], w[3], 0, 4, 1, 5);
  const v128_t c = wasm_i32x4_shuffle(w[0], w[1], 2, 6, 3, 7);
  const v128_t d = wasm_i32x4_shuffle(w[2], w[3], 2, 6, 3, 7);
  w[0] = wasm_i64x2_shuffle(a, b, 0, 2);
  w[1] = wasm_i64x2_shuffle(a, b, 1, 3);
  w[2] = wasm_i64x2_shuffle(c, d, 0, 2);
  w[3] = wasm_i64x2_shuffle(c, d, 1, 3);
}

template <class Arch, class Element>
struct Narrow;

template <class Arch>
struct Narrow<Arch, std::uint16_t> {
  static constexpr std::size_t kPerWord = 2;
  static constexpr float kBefore = 0x1p112F;  // times which the other factor of a product with column() or pair() goes
  static constexpr float kAfter = 1.0F;       // times which a sum of products with column() is
  static constexpr float kLargest = 0x1p14F;  // magnitude of the other factor that leaves room for kBefore

  v128_t places = wasm_v128_load(opaque(&kNarrowTable)->float16_places);
  v128_t largest = wasm_i32x4_splat(0);  // of twice each, the sign shifted out

  /// Infinities and NaNs, which the shift to other places turns into numbers, are noticed.
  SDPA_INLINE void notice(v128_t halves) { largest = wasm_u16x8_max(largest, wasm_i16x8_add(halves, halves)); }
  bool all_finite() const {
    return !wasm_v128_any_true(wasm_u16x8_gt(largest, wasm_i16x8_splat(static_cast<std::int16_t>(0xf7ffU))));
  }

  /// Column kPlace of the two that words of pairs hold, for four keys.
  template <std::size_t kPlace>
  SDPA_INLINE Batch<Arch> column(v128_t words) const {
    const v128_t high = kPlace == 0 ? wasm_i32x4_shl(words, 16) : words;
    return Batch<Arch>(wasm_v128_and(wasm_i32x4_shr(high, 3), places));
  }

  /// Eight numbers that lie side by side.
  SDPA_INLINE void pair(const std::uint16_t* from, Batch<Arch> (&to)[2]) {
    const v128_t halves = wasm_v128_load(from);
    notice(halves);
    to[0] = Batch<Arch>(wasm_v128_and(wasm_i32x4_shl(wasm_i32x4_extend_low_i16x8(halves), 13), places));
    to[1] = Batch<Arch>(wasm_v128_and(wasm_i32x4_shl(wasm_i32x4_extend_high_i16x8(halves), 13), places));
  }
};

template <class Arch>
struct Narrow<Arch, std::int8_t> {
  static constexpr std::size_t kPerWord = 4;
  static constexpr float kBefore = 1.0F;
  static constexpr float kAfter = 0x1p-24F;
  static constexpr float kLargest = 0x1p64F;

  v128_t highest = wasm_v128_load(opaque(&kNarrowTable)->highest_byte);

  SDPA_INLINE void notice(v128_t) {}
  bool all_finite() const { return true; }

  template <std::size_t kPlace>
  SDPA_INLINE Batch<Arch> column(v128_t words) const {
    const v128_t high = kPlace == 3 ? words : wasm_i32x4_shl(words, 24 - 8 * kPlace);
    return Batch<Arch>(wasm_f32x4_convert_i32x4(kPlace == 0 ? high : wasm_v128_and(high, highest)));
  }

  SDPA_INLINE void pair(const std::int8_t* from, Batch<Arch> (&to)[2]) {
    const v128_t words = wasm_i16x8_load8x8(from);
    to[0] = Batch<Arch>(wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(words)));
    to[1] = Batch<Arch>(wasm_f32x4_convert_i32x4(wasm_i32x4_extend_high_i16x8(words)));
  }
};

/// 16 bytes of each of four rows, as the columns of words that they are.
template <class Arch, class Element>
SDPA_INLINE void load_columns(Narrow<Arch, Element>& narrow, const Element* const (&rows)[4], std::size_t first,
                              v128_t (&words)[4]) {
  for (std::size_t k = 0; k < 4; ++k) {
    words[k] = wasm_v128_load(rows[k] + first);
    narrow.notice(words[k]);
  }
  transpose_words(words);
}

#endif

}  // namespace sdpa::simd
