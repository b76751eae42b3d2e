// The vector vocabulary of the kernels, over xsimd. This folder is the only place that includes xsimd.
//
// An Arch is a tag: the xsimd architecture and whether multiply-add rounds once. Everything here is a template over it,
// so that translation units compiled for different instruction sets share no inline function.
//
// Two rules of NaN decide the order of operands below: `vmax` may lose a NaN (the exponential of the same score brings
// it back), `clamp_low` must keep it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <xsimd/xsimd.hpp>

#if defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

// One step of the innermost loops already fills the registers; an unrolled loop keeps more operands alive than there
// are registers, and V8 spills them.
#if defined(__clang__)
#define SDPA_NO_UNROLL _Pragma("clang loop unroll(disable) vectorize(disable)")
#else
#define SDPA_NO_UNROLL
#endif

#define SDPA_INLINE [[gnu::always_inline]] inline
#define SDPA_INLINE_LAMBDA __attribute__((always_inline))
// Steps of a block are functions of their own: inlined into one, they are half of the module's bytes twice over, and an
// engine's optimiser has to allocate registers for all of them at once.
#define SDPA_NOINLINE [[gnu::noinline]]

namespace sdpa::simd {

template <class XsimdArch, bool kIsFused>
struct ArchTag {
  using Xsimd = XsimdArch;
  static constexpr bool kFused = kIsFused;
};

struct Scalar;
#if XSIMD_WITH_EMULATED
struct Scalar : ArchTag<xsimd::emulated<128>, false> {};
#endif
struct Sse42 : ArchTag<xsimd::sse4_2, false> {};
struct Avx2Fma : ArchTag<xsimd::fma3<xsimd::avx2>, true> {};
struct Avx512 : ArchTag<xsimd::avx512dq, true> {};
struct Neon64 : ArchTag<xsimd::neon64, true> {};
struct WasmSimd : ArchTag<xsimd::wasm, false> {};
struct WasmRelaxed : ArchTag<xsimd::wasm, true> {};

template <class Arch>
using Batch = xsimd::batch<float, typename Arch::Xsimd>;

template <class Arch>
inline constexpr std::size_t kWidth = Batch<Arch>::size;

template <class Arch>
SDPA_INLINE Batch<Arch> load(const float* p) {
  return Batch<Arch>::load_unaligned(p);
}

template <class Arch>
SDPA_INLINE void store(float* p, Batch<Arch> x) {
  x.store_unaligned(p);
}

template <class Arch>
SDPA_INLINE Batch<Arch> splat(float x) {
  return Batch<Arch>(x);
}

/// a * b + c. Rounds once where Arch says so; twice, always, where it does not (contraction is off).
template <class Arch>
SDPA_INLINE Batch<Arch> madd(Batch<Arch> a, Batch<Arch> b, Batch<Arch> c) {
#if defined(__wasm_relaxed_simd__)
  // The intrinsic, not a * b + c under fast-math: clang 21 miscompiles the latter for relaxed SIMD.
  if constexpr (Arch::kFused) return Batch<Arch>(wasm_f32x4_relaxed_madd(a, b, c));
#endif
  if constexpr (Arch::kFused) {
    return xsimd::fma(a, b, c);
  } else {
    return a * b + c;
  }
}

/// The larger of a and b; where one is NaN, either.
template <class Arch>
SDPA_INLINE Batch<Arch> vmax(Batch<Arch> a, Batch<Arch> b) {
  return xsimd::max(a, b);
}

/// x, or `low` where x < low; NaN stays NaN.
template <class Arch>
SDPA_INLINE Batch<Arch> clamp_low(Batch<Arch> x, Batch<Arch> low) {
  if constexpr (std::is_same_v<Arch, Scalar> || std::is_same_v<Arch, Neon64>) {
    return xsimd::select(x < low, low, x);
  } else {
#if defined(__wasm_simd128__)
    // pmax(a, b) is a < b ? b : a: one instruction that keeps a NaN in its first operand.
    return Batch<Arch>(wasm_f32x4_pmax(x, low));
#else
    // maxps answers its second operand where one is NaN, and xsimd passes the first operand second.
    return xsimd::max(x, low);
#endif
  }
}

/// x, or `high` where x > high; NaN stays NaN.
template <class Arch>
SDPA_INLINE Batch<Arch> clamp_high(Batch<Arch> x, Batch<Arch> high) {
#if defined(__wasm_simd128__)
  if constexpr (!std::is_same_v<Arch, Scalar>) return Batch<Arch>(wasm_f32x4_pmin(x, high));
#endif
  return xsimd::select(high < x, high, x);
}

/// The float whose exponent field is the lowest bits of x's mantissa: 2^(n - 127) where they hold n of 1 ... 254.
template <class Arch>
SDPA_INLINE Batch<Arch> exponent_from_low_bits(Batch<Arch> x) {
  return xsimd::bitwise_cast<float>(xsimd::bitwise_cast<std::int32_t>(x) << 23);
}

/// A word of bits a lane.
template <class Arch>
using Bits = xsimd::batch<std::int32_t, typename Arch::Xsimd>;

template <class Arch>
SDPA_INLINE Bits<Arch> load_bits(const std::uint32_t* p) {
  return Bits<Arch>::load_unaligned(reinterpret_cast<const std::int32_t*>(p));
}

template <class Arch>
struct WideProduct {
  Bits<Arch> high;
  Bits<Arch> low;
};

/// The 64 bits of x times `factor`, both unsigned.
template <class Arch>
SDPA_INLINE WideProduct<Arch> multiply_wide(Bits<Arch> x, std::uint32_t factor) {
#if defined(__wasm_simd128__)
  if constexpr (!std::is_same_v<Arch, Scalar>) {
    const v128_t f = wasm_i32x4_splat(static_cast<std::int32_t>(factor));
    const v128_t a = wasm_u64x2_extmul_low_u32x4(x, f);
    const v128_t b = wasm_u64x2_extmul_high_u32x4(x, f);
    return {Bits<Arch>(wasm_i32x4_shuffle(a, b, 1, 3, 5, 7)), Bits<Arch>(wasm_i32x4_shuffle(a, b, 0, 2, 4, 6))};
  }
#endif
  std::int32_t lanes[kWidth<Arch>];
  std::int32_t high[kWidth<Arch>];
  x.store_unaligned(lanes);
  for (std::size_t l = 0; l < kWidth<Arch>; ++l) {
    const std::uint64_t product = std::uint64_t{factor} * static_cast<std::uint32_t>(lanes[l]);
    high[l] = static_cast<std::int32_t>(product >> 32);
    lanes[l] = static_cast<std::int32_t>(product);
  }
  return {Bits<Arch>::load_unaligned(high), Bits<Arch>::load_unaligned(lanes)};
}

/// x, or 0 in the lanes whose bits are, as unsigned numbers, below `limit`.
template <class Arch>
SDPA_INLINE Batch<Arch> zero_below(Batch<Arch> x, Bits<Arch> bits, std::uint32_t limit) {
  // Signed comparison of both with the highest bit turned over.
  const Bits<Arch> turn(static_cast<std::int32_t>(0x80000000U));
  const auto keep = (bits ^ turn) >= (Bits<Arch>(static_cast<std::int32_t>(limit)) ^ turn);
  return xsimd::select(xsimd::batch_bool_cast<float>(keep), x, Batch<Arch>(0.0F));
}

/// `yes` in the lanes whose lowest bit is set, `no` in the others.
template <class Arch>
SDPA_INLINE Batch<Arch> select_by_lowest_bit(Bits<Arch> bits, Batch<Arch> yes, Batch<Arch> no) {
  const auto keep = xsimd::bitwise_cast<float>((bits << 31) >> 31);
  return (yes & keep) | xsimd::bitwise_andnot(no, keep);
}

/// Transposes a square of vectors in place.
template <class Arch>
SDPA_INLINE void transpose(Batch<Arch> (&square)[kWidth<Arch>]) {
  xsimd::transpose(square, square + kWidth<Arch>);
}

/// A pointer the compiler knows nothing about. Constants read through it stay loads before the loop; V8 13.6 to 15.0
/// rebuilds a vector constant that is written in the code at every use.
template <class T>
SDPA_INLINE const T* opaque(const T* p) {
  asm volatile("" : "+r"(p));
  return p;
}

/// Brings the line at `p` into the cache. WebAssembly has no prefetch: a load does, whose result nobody waits for.
SDPA_INLINE void touch(const float* p) {
#if defined(__wasm__)
  std::uint32_t word;
  std::memcpy(&word, p, sizeof word);
  asm volatile("" : : "r"(word));
#else
  __builtin_prefetch(p);
#endif
}

}  // namespace sdpa::simd
