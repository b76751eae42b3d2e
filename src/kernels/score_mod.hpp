// What happens to a score between the product and the masks.
//
// Scale and softcap are one pair of factors: queries are packed times `query_factor`, and with a softcap the product x
// becomes softcap * tanh(x). Plain scores need no pass at all.
//   plain:    query_factor = scale             s = x
//   softcap:  query_factor = scale / softcap   s = softcap * tanh(x)
#pragma once

#include <cstddef>

#include "kernels/mask.hpp"
#include "kernels/tile_size.hpp"
#include "simd/math.hpp"

namespace sdpa::kernels {

struct ScoreMod {
  double query_factor;
  float cap;  // 0 = no softcap
};

constexpr ScoreMod make_score_mod(double scale, double softcap) {
  if (softcap == 0.0) return {scale, 0.0F};
  return {scale / softcap, static_cast<float>(softcap)};
}

template <class Arch>
SDPA_NOINLINE void apply_softcap(float cap, KeyRange keys, float* scores, std::size_t stride) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const auto exp_constants = simd::ExpConstants<Arch>::load();
  const auto tanh_constants = simd::TanhConstants<Arch>::load();
  const auto c = simd::splat<Arch>(cap);
  for (std::size_t j = keys.begin; j < keys.end; ++j) {
    for (std::size_t v = 0; v < kNr; ++v) {
      float* s = scores + j * stride + v * kW;
      simd::store<Arch>(s, c * simd::tanh<Arch>(simd::load<Arch>(s), tanh_constants, exp_constants));
    }
  }
}

}  // namespace sdpa::kernels
