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
/// The difference of a score and the maximum is multiplied, not the score: the difference is exact at the top, where
/// the weights are large, and has no overflow. Down the slope the error of the product grows slower than the weight
/// shrinks.
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
  float limit = 8.651F;  // from here on the quotient is exactly 1
  // n / d = x p(x^2) / q(x^2) for tanh(x / 2), minimax: 1.4e-8 of tanh(x).
  float p0 = 475.5F;
  float p1 = 13.4859734F;
  float p2 = 0.0365564562F;
  float p3 = -3.30910989e-05F;
  float q0 = 951.0F;
  float q1 = 106.221901F;
};
inline constexpr TanhTable kTanhTable{};

template <class Arch>
struct TanhConstants {
  using V = Batch<Arch>;
  V limit, minus_limit, p0, p1, p2, p3, q0, q1;

  SDPA_INLINE static TanhConstants load() {
    const TanhTable* t = opaque(&kTanhTable);
    return {V(t->limit), V(-t->limit), V(t->p0), V(t->p1), V(t->p2), V(t->p3), V(t->q0), V(t->q1)};
  }
};

/// factor * tanh(x) for a finite factor. tanh has a relative error of at most 3e-7 and is +-1 from +-8.651 on, also at
/// infinity; NaN for NaN.
///
/// By the half angle: with tanh(x / 2) = n / d, tanh(x) = 2 n d / (d^2 + n^2), which forgives errors of n / d the more
/// the nearer it comes to 1, and cannot exceed it.
template <class Arch>
SDPA_INLINE Batch<Arch> tanh_times(Batch<Arch> factor, Batch<Arch> x, const TanhConstants<Arch>& k) {
  const auto y = clamp_high<Arch>(clamp_low<Arch>(x, k.minus_limit), k.limit);
  const auto z = y * y;
  auto p = madd<Arch>(k.p3, z, k.p2);
  p = madd<Arch>(p, z, k.p1);
  p = madd<Arch>(p, z, k.p0);
  const auto d = madd<Arch>(z + k.q1, z, k.q0);
  const auto n = y * p;
  return factor * (((n + n) * d) / madd<Arch>(n, n, d * d));
}

}  // namespace sdpa::simd
