// What happens to a score between the product and the masks.
//
//   plain:    s = scale * (q.k)
//   softcap:  s = softcap * tanh(scale / softcap * (q.k))
//
// The factor in front of the product is split: its power of two goes into the queries, where it rounds nothing and
// keeps the product from overflowing before it is scaled down; the rest, 1 <= |rest| < 2, multiplies the finished sum,
// one rounding a score instead of one a query element.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

#include "kernels/mask.hpp"
#include "kernels/tile_size.hpp"
#include "simd/math.hpp"

namespace sdpa::kernels {

struct ScoreMod {
  double query_factor;  // a power of two (or 0), times which the queries are packed
  float score_factor;   // times which the product is stored
  float cap;            // 0 = no softcap
};

inline ScoreMod make_score_mod(double scale, double softcap) {
  // A cap beyond float32 caps no float32 score.
  const bool capped = softcap != 0.0 && softcap <= std::numeric_limits<float>::max();
  const double factor = capped ? scale / softcap : scale;
  const float cap = capped ? static_cast<float>(softcap) : 0.0F;
  if (factor == 0.0) return {0.0, 1.0F, cap};
  int exponent = 0;
  const double fraction = std::frexp(factor, &exponent);  // 1/2 <= |fraction| < 1
  return {std::ldexp(1.0, exponent - 1), static_cast<float>(2 * fraction), cap};
}

template <class Arch>
SDPA_NOINLINE void apply_softcap(float cap, KeyRange keys, std::size_t vectors, float* scores) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const auto exp_constants = simd::ExpConstants<Arch>::load();
  const auto tanh_constants = simd::TanhConstants<Arch>::load();
  const auto c = simd::splat<Arch>(cap);
  for (std::size_t j = keys.begin; j < keys.end; ++j) {
    for (std::size_t v = 0; v < vectors; ++v) {
      float* s = scores + j * kScoreStride<Arch> + v * kW;
      simd::store<Arch>(s, c * simd::tanh<Arch>(simd::load<Arch>(s), tanh_constants, exp_constants));
    }
  }
}

}  // namespace sdpa::kernels
