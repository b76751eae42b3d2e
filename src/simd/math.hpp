// exp and tanh of the kernels, with their error bounds.
#pragma once

#include "simd/simd.hpp"

namespace sdpa::simd {

struct ExpTable {
  float low = -69.3F;         // from here down the weight is exactly 0
  float log2e = 1.44269504F;  // log2(e)
  float magic = 12583039.0F;  // 1.5 * 2^23 + 127: adding it rounds to an integer and biases the exponent
  float minus_ln2 = -0.693147182F;
  float minus_ln2_high = -0.693359375F;  // ln 2 in 10 bits, so that n * high is exact for |n| <= 100
  float minus_ln2_low = 2.12194440e-4F;  // and the rest
  float one = 1.0F;                      // p(0) and p'(0), exact: the largest score has weight exactly 1
  // Relative minimax of e^r = 1 + r + c2 r^2 + ... on |r| <= ln(2)/2: 4e-9, so that rounding is all that is left.
  float c2 = 0.4999999403953552F;
  float c3 = 0.1666652113199234F;
  float c4 = 0.04166838899254799F;
  float c5 = 0.00836871936917305F;
  float c6 = 0.0013814606936648488F;
};
inline constexpr ExpTable kExpTable{};

/// exp(x) with `offset` added in the last multiply-add; ExpTable::low <= x <= 0.
template <class Arch, class Constants>
SDPA_INLINE Batch<Arch> exp_step(Batch<Arch> x, const Constants& k, Batch<Arch> offset) {
  const auto shifted = madd<Arch>(x, k.log2e, k.magic);
  const auto n = shifted - k.magic;
  Batch<Arch> r;
  if constexpr (Arch::kFused) {
    r = madd<Arch>(n, k.minus_ln2, x);
  } else {
    // Two roundings would lose what the sum cancels: take off a product that is exact, then its small rest.
    r = madd<Arch>(n, k.minus_ln2_low, madd<Arch>(n, k.minus_ln2_high, x));
  }
  auto p = madd<Arch>(k.c6, r, k.c5);
  p = madd<Arch>(p, r, k.c4);
  p = madd<Arch>(p, r, k.c3);
  p = madd<Arch>(p, r, k.c2);
  p = madd<Arch>(p, r, k.one);
  p = madd<Arch>(p, r, k.one);
  // A product, not an integer add to p: the bits of a NaN must stay a NaN whatever its payload.
  return madd<Arch>(p, exponent_from_low_bits<Arch>(shifted), offset);
}

template <class Arch>
struct ExpConstants {
  using V = Batch<Arch>;
  V low, log2e, magic, minus_ln2, minus_ln2_high, minus_ln2_low, one, c2, c3, c4, c5, c6;
  V flush;  // -exp(low), by the very steps that compute it: what is subtracted leaves exactly 0 at the clamp

  SDPA_INLINE static ExpConstants load() {
    const ExpTable* t = opaque(&kExpTable);
    ExpConstants k{V(t->low),
                   V(t->log2e),
                   V(t->magic),
                   V(t->minus_ln2),
                   V(t->minus_ln2_high),
                   V(t->minus_ln2_low),
                   V(t->one),
                   V(t->c2),
                   V(t->c3),
                   V(t->c4),
                   V(t->c5),
                   V(t->c6),
                   V(0.0F)};
    k.flush = -exp_step<Arch>(k.low, k, V(0.0F));
    return k;
  }
};

/// exp(x) for x <= 0. Relative error at most 1.5e-7 where the result is above 2^-76; exactly 1 at 0; exactly 0 for
/// x <= -69.3 (2^-100) and for -infinity, so that no product with a value is subnormal; NaN for NaN.
///
/// The score is not scaled by log2(e) beforehand: s - m is exact at the top and for scores of any size, a prescaled one
/// rounds, and overflows at 3e38.
template <class Arch>
SDPA_INLINE Batch<Arch> exp_nonpositive(Batch<Arch> x, const ExpConstants<Arch>& k) {
  return exp_step<Arch>(clamp_low<Arch>(x, k.low), k, k.flush);
}

struct TanhTable {
  float switch_over = 0.625F;
  float minus_two = -2.0F;
  float one = 1.0F;
  // tanh(x) = x + x^3 q(x^2), relative minimax on |x| <= 0.625: 4.4e-9 before rounding of the coefficients, 8.6e-9
  // after.
  float q0 = -0.3333328068256378F;
  float q1 = 0.13331441581249237F;
  float q2 = -0.05373971536755562F;
  float q3 = 0.02063908614218235F;
  float q4 = -0.005704986862838268F;
};
inline constexpr TanhTable kTanhTable{};

template <class Arch>
struct TanhConstants {
  using V = Batch<Arch>;
  V switch_over, minus_two, one, q0, q1, q2, q3, q4;

  SDPA_INLINE static TanhConstants load() {
    const TanhTable* t = opaque(&kTanhTable);
    return {V(t->switch_over), V(t->minus_two), V(t->one), V(t->q0), V(t->q1), V(t->q2), V(t->q3), V(t->q4)};
  }
};

/// tanh(x), relative error at most 3e-7; +-1 at +-infinity; NaN for NaN.
/// Near 0 a polynomial, since (1 - e) / (1 + e) with e = exp(-2|x|) cancels there.
template <class Arch>
SDPA_INLINE Batch<Arch> tanh(Batch<Arch> x, const TanhConstants<Arch>& k, const ExpConstants<Arch>& exp_constants) {
  const auto magnitude = xsimd::abs(x);
  const auto z = x * x;
  auto q = madd<Arch>(k.q4, z, k.q3);
  q = madd<Arch>(q, z, k.q2);
  q = madd<Arch>(q, z, k.q1);
  q = madd<Arch>(q, z, k.q0);
  const auto near = madd<Arch>(x * z, q, x);
  const auto e = exp_nonpositive<Arch>(magnitude * k.minus_two, exp_constants);
  const auto far = xsimd::copysign((k.one - e) / (k.one + e), x);
  return xsimd::select(magnitude < k.switch_over, near, far);
}

}  // namespace sdpa::simd
