// exp and tanh of the kernels, with their error bounds.
#pragma once

#include "simd/simd.hpp"

namespace sdpa::simd {

struct ExpTable {
  float low = -100.0F;  // of log2 of a weight: from here down the weight is exactly 0
  float log2e = 1.44269504F;
  float magic = 12583039.0F;  // 1.5 * 2^23 + 127: adding it rounds to an integer and biases the exponent
  float flush = -0x1p-100F;   // what is left at the clamp, by the very steps of exp_nonpositive
  float one = 1.0F;           // p(0), exact: the largest score has weight exactly 1
  // Relative minimax of 2^r = 1 + c1 r + c2 r^2 + ... on |r| <= 1/2: 4e-9, so that rounding is all that is left.
  float c1 = 0.6931471824645996F;
  float c2 = 0.24022647738456726F;
  float c3 = 0.05550362542271614F;
  float c4 = 0.009618526324629784F;
  float c5 = 0.0013390176463872194F;
  float c6 = 0.0001532114838482812F;
};
inline constexpr ExpTable kExpTable{};

template <class Arch>
struct ExpConstants {
  using V = Batch<Arch>;
  V low, log2e, magic, flush, one, c1, c2, c3, c4, c5, c6;

  SDPA_INLINE static ExpConstants load() {
    const ExpTable* t = opaque(&kExpTable);
    return {V(t->low), V(t->log2e), V(t->magic), V(t->flush), V(t->one), V(t->c1),
            V(t->c2),  V(t->c3),    V(t->c4),    V(t->c5),    V(t->c6)};
  }
};

/// exp(x) for x <= 0. Relative error at most 1.5e-7 + 1e-7 |x| where the result is above 2^-76; exactly 1 at 0; exactly
/// 0 for x <= -69.3 (2^-100) and for -infinity, so that no product with a value is subnormal; NaN for NaN.
///
/// The difference of a score and the maximum is multiplied, not the score: the difference is exact at the top, where the
/// weights are large, and has no overflow. Down the slope the error of the product grows slower than the weight shrinks.
template <class Arch>
SDPA_INLINE Batch<Arch> exp_nonpositive(Batch<Arch> x, const ExpConstants<Arch>& k) {
  const auto t = clamp_low<Arch>(x * k.log2e, k.low);
  const auto shifted = t + k.magic;
  const auto r = t - (shifted - k.magic);
  auto p = madd<Arch>(k.c6, r, k.c5);
  p = madd<Arch>(p, r, k.c4);
  p = madd<Arch>(p, r, k.c3);
  p = madd<Arch>(p, r, k.c2);
  p = madd<Arch>(p, r, k.c1);
  p = madd<Arch>(p, r, k.one);
  // A product, not an integer add to p: the bits of a NaN must stay a NaN whatever its payload.
  return madd<Arch>(p, exponent_from_low_bits<Arch>(shifted), k.flush);
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
