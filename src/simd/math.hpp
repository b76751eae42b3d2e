// exp and tanh of the kernels, with their error bounds.
//
// Scores live in half-octaves: y = s * log2(e) / 2, so that exp(s) = 2^(2y). The factor below one keeps a score of 3e38
// finite in the scaled domain, where log2(e) alone would overflow, and rounding to a multiple of one half costs the same
// magic-number addition as rounding to an integer.
#pragma once

#include "simd/simd.hpp"

namespace sdpa::simd {

/// log2(e) / 2: natural units to half-octaves.
inline constexpr double kHalfOctavesPerNat = 0.72134752044448170367996234050095;
/// 2 ln 2: half-octaves to natural units.
inline constexpr double kNatsPerHalfOctave = 1.3862943611198906188344642429164;

struct ExpTable {
  float low = -50.0F;           // 2^(2 * -50) = 2^-100: from here down the weight is exactly 0
  float magic = 6291456.0F;     // 1.5 * 2^22: adding it rounds to a multiple of 0.5
  float flush = -7.888609e-31F; // -2^-100
  float one = 1.0F;             // p(0), exact, so that the largest score has weight exactly 1
  // Relative minimax of 2^(2f) on |f| <= 1/4 with p(0) = 1: 9.2e-8 before rounding.
  float c1 = 1.3862940073013306F;
  float c2 = 0.9608896970748901F;
  float c3 = 0.44405868649482727F;
  float c4 = 0.1547441929578781F;
  float c5 = 0.04244716465473175F;
  std::int32_t one_bits = 0x3f800000;
};
inline constexpr ExpTable kExpTable{};

template <class Arch>
struct ExpConstants {
  using V = Batch<Arch>;
  V low, magic, flush, one, c1, c2, c3, c4, c5;
  IntBatch<Arch> one_bits;

  SDPA_INLINE static ExpConstants load() {
    const ExpTable* t = opaque(&kExpTable);
    return {V(t->low), V(t->magic), V(t->flush), V(t->one), V(t->c1), V(t->c2), V(t->c3), V(t->c4), V(t->c5),
            IntBatch<Arch>(t->one_bits)};
  }
};

/// 2^(2x) for x <= 0. Relative error at most 3e-7 where the result is above 2^-76; exactly 1 at 0; exactly 0 for
/// x <= -50 and for -infinity, so that no product with a value is subnormal; NaN for NaN.
template <class Arch>
SDPA_INLINE Batch<Arch> exp2_twice(Batch<Arch> x, const ExpConstants<Arch>& k) {
  x = clamp_low<Arch>(x, k.low);
  const auto shifted = x + k.magic;
  const auto f = x - (shifted - k.magic);
  auto p = madd<Arch>(k.c5, f, k.c4);
  p = madd<Arch>(p, f, k.c3);
  p = madd<Arch>(p, f, k.c2);
  p = madd<Arch>(p, f, k.c1);
  p = madd<Arch>(p, f, k.one);
  // A product, not an integer add to p: the bits of a NaN must stay a NaN whatever its payload.
  return madd<Arch>(p, exponent_from_low_bits<Arch>(shifted, k.one_bits), k.flush);
}

struct TanhTable {
  float switch_over = 0.625F;
  float minus_log2e = -1.4426950408889634F;
  float one = 1.0F;
  // tanh(x) = x + x^3 q(x^2), relative minimax on |x| <= 0.625: 1.8e-8 before rounding.
  float q0 = -0.3332936465740204F;
  float q1 = 0.13275353610515594F;
  float q2 = -0.05078992620110512F;
  float q3 = 0.013878528960049152F;
};
inline constexpr TanhTable kTanhTable{};

template <class Arch>
struct TanhConstants {
  using V = Batch<Arch>;
  V switch_over, minus_log2e, one, q0, q1, q2, q3;

  SDPA_INLINE static TanhConstants load() {
    const TanhTable* t = opaque(&kTanhTable);
    return {V(t->switch_over), V(t->minus_log2e), V(t->one), V(t->q0), V(t->q1), V(t->q2), V(t->q3)};
  }
};

/// tanh(x), relative error at most 3e-7; +-1 at +-infinity; NaN for NaN.
/// Near 0 a polynomial, since (1 - e) / (1 + e) with e = exp(-2|x|) cancels there.
template <class Arch>
SDPA_INLINE Batch<Arch> tanh(Batch<Arch> x, const TanhConstants<Arch>& k, const ExpConstants<Arch>& exp_constants) {
  const auto magnitude = xsimd::abs(x);
  const auto z = x * x;
  auto q = madd<Arch>(k.q3, z, k.q2);
  q = madd<Arch>(q, z, k.q1);
  q = madd<Arch>(q, z, k.q0);
  const auto near = madd<Arch>(x * z, q, x);
  const auto e = exp2_twice<Arch>(magnitude * k.minus_log2e, exp_constants);
  const auto far = xsimd::copysign((k.one - e) / (k.one + e), x);
  return xsimd::select(magnitude < k.switch_over, near, far);
}

}  // namespace sdpa::simd
