// What happens to a score between the product and the masks.
//
//   plain:    s = scale * (q.k)
//   softcap:  s = softcap * tanh(scale / softcap * (q.k))
//
// The factor in front of the product is split. A power of two from 2^-8 to 1 goes into the queries, where it rounds
// nothing and keeps a product from overflowing that the factor brings back into range (1/sqrt(d) for any d up to
// 65536); the rest multiplies the finished sum, one rounding a score instead of one a query element. A factor of 1 or
// more acts on the sum alone, since it could overflow a query whose scores are small. Beyond float32 the queries take
// what the sum cannot.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "kernels/mask.hpp"
#include "kernels/tile_size.hpp"
#include "simd/math.hpp"

namespace sdpa::kernels {

struct ScoreMod {
  double query_factor;  // a power of two (or 0), times which the queries are packed
  float score_factor;   // times which the product is stored; in the unit of tanh_times() where there is a softcap
  float cap;            // 0 = no softcap
};

inline ScoreMod make_score_mod(double scale, double softcap) {
  // A cap beyond float32 caps no float32 score.
  const bool capped = softcap != 0.0 && softcap <= std::numeric_limits<float>::max();
  const double factor = capped ? scale / softcap * simd::kTanhUnit : scale;
  const float cap = capped ? static_cast<float>(softcap) : 0.0F;
  // A cap below float32 leaves no difference between scores.
  if (factor == 0.0 || (capped && cap == 0.0F)) return {0.0, 1.0F, 0.0F};
  int exponent = 0;
  const double fraction = 2 * std::frexp(factor, &exponent);  // 1 <= |fraction| < 2
  exponent -= 1;
  constexpr int kMost = 126;  // of a float32's exponent, either way
  int of_query = std::clamp(exponent, -8, 0);
  const int of_sum = std::clamp(exponent - of_query, -kMost, kMost);
  of_query = exponent - of_sum;
  return {std::ldexp(1.0, of_query), static_cast<float>(std::ldexp(fraction, of_sum)), cap};
}

template <class Arch>
SDPA_NOINLINE void apply_softcap(float cap, KeyRange keys, std::size_t vectors, float* scores) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const auto k = simd::TanhConstants<Arch>::load();
  const auto c = simd::splat<Arch>(cap);
  for (std::size_t j = keys.begin; j < keys.end; ++j) {
    for (std::size_t v = 0; v < vectors; ++v) {
      float* s = scores + j * kScoreStride<Arch> + v * kW;
      simd::store<Arch>(s, simd::tanh_times<Arch>(c, simd::load<Arch>(s), k));
    }
  }
}

}  // namespace sdpa::kernels
