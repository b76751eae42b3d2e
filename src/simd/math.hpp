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

/// (2^r - 1) / r for |r| <= 1/2: the polynomial of 2^r without its 1, over r.
template <class Arch>
SDPA_INLINE Batch<Arch> exp2_slope(Batch<Arch> r, const ExpConstants<Arch>& k) {
  auto p = madd<Arch>(k.c6, r, k.c5);
  p = madd<Arch>(p, r, k.c4);
  p = madd<Arch>(p, r, k.c3);
  p = madd<Arch>(p, r, k.c2);
  return madd<Arch>(p, r, k.c1);
}

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
  const auto p = madd<Arch>(exp2_slope<Arch>(r, k), r, k.one);
  // A product, not an integer add to p: the bits of a NaN must stay a NaN whatever its payload.
  return madd<Arch>(p, exponent_from_low_bits<Arch>(shifted), k.flush);
}

struct TanhTable {
  float limit = 100.0F;  // of log2 of e^2|x|: from here on tanh is 1 and its slope 0
  float two = 2.0F;
  float flush = -0x1p-98F;  // what is left of the slope there, by the very steps of tanh_and_slope
};
inline constexpr TanhTable kTanhTable{};

/// Times which the argument of a tanh is handed to tanh_times().
inline constexpr double kTanhUnit = 2.8853900817779268;  // 2 log2(e)

template <class Arch>
struct TanhConstants {
  using V = Batch<Arch>;
  V limit, two, flush;
  ExpConstants<Arch> exp;

  SDPA_INLINE static TanhConstants load() {
    const TanhTable* t = opaque(&kTanhTable);
    return {V(t->limit), V(t->two), V(t->flush), ExpConstants<Arch>::load()};
  }
};

/// E = e^2|x| - 1 for t = 2 log2(e) x. With |t| = k + r it is 2^k (2^r - 1) + (2^k - 1), so that nothing is lost near
/// 0.
template <class Arch>
SDPA_INLINE Batch<Arch> exp_minus_one(Batch<Arch> t, const TanhConstants<Arch>& k) {
  const auto y = clamp_high<Arch>(xsimd::abs(t), k.limit);
  const auto shifted = y + k.exp.magic;
  const auto r = y - (shifted - k.exp.magic);
  const auto p = exp2_slope<Arch>(r, k.exp);
  const auto power = exponent_from_low_bits<Arch>(shifted);
  return madd<Arch>(p * r, power, power - k.exp.one);
}

template <class Arch>
struct TanhAndSlope {
  Batch<Arch> tanh;   // times a factor
  Batch<Arch> slope;  // 1 - tanh^2
};

/// factor * tanh(x) for t = 2 log2(e) x and a finite factor that is not negative: E / (E + 2) with the sign of x. tanh
/// has a relative error of at most 3e-7 and an absolute one of at most 1.2e-7, next to 1 half of that; it is odd, +-1
/// from +-9.02 on, also at infinity, and NaN for NaN.
///
/// The slope is (1 + tanh|x|) 2 / (E + 2): where tanh is next to 1, nothing is left of 1 - tanh^2 in float32. Relative
/// error at most 6e-7 + 1e-7 |x| for |x| <= 26, exactly 0 from 34.7 on.
template <class Arch>
SDPA_INLINE TanhAndSlope<Arch> tanh_and_slope(Batch<Arch> factor, Batch<Arch> t, const TanhConstants<Arch>& k) {
  const auto e = exp_minus_one<Arch>(t, k);
  const auto below = e + k.two;
  const auto size = e / below;
  return {(factor ^ xsimd::bitofsign(t)) * size, madd<Arch>(size + k.exp.one, k.two / below, k.flush)};
}

/// tanh_and_slope() without the slope.
template <class Arch>
SDPA_INLINE Batch<Arch> tanh_times(Batch<Arch> factor, Batch<Arch> t, const TanhConstants<Arch>& k) {
  return tanh_and_slope<Arch>(factor, t, k).tanh;
}

}  // namespace sdpa::simd
