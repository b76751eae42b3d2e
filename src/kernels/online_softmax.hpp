// The online softmax of one panel of queries (Milakov & Gimelshein 2018), lanes across queries.
//
// Per row: m, the maximum of the scores so far, and l, the sum of exp(s - m) so far. A tile with a larger maximum m'
// rescales what came before by alpha = exp(m - m'), in l here and in O by whoever multiplies with V. No step is
// horizontal. The maximum is that of the very numbers that are exponentiated, so the largest weight is exactly 1.
//
// A row that has seen nothing has m = -infinity and l = 0; no finite number stands in for -infinity. A tile in which a
// row sees nothing leaves its m, l and (alpha = 1 exactly) O as they were, bit for bit.
#pragma once

#include <cstddef>

#include "kernels/mask.hpp"
#include "kernels/tile_size.hpp"
#include "simd/math.hpp"

namespace sdpa::kernels {

/// Turns scores [key][row] of keys [keys.begin, keys.end) into weights exp(s - m) in place, moves m and l, writes
/// alpha.
template <class Arch>
SDPA_NOINLINE void online_softmax(KeyRange keys, std::size_t vectors, float* scores, float* m, float* l, float* alpha) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const auto k = simd::ExpConstants<Arch>::load();
  const auto nothing = simd::splat<Arch>(kMasked);
  const auto zero = simd::splat<Arch>(0.0F);
  for (std::size_t v = 0; v < vectors; ++v) {
    float* const column = scores + v * kW;
    const auto m_before = simd::load<Arch>(m + v * kW);
    auto m_now = m_before;
    for (std::size_t j = keys.begin; j < keys.end; ++j) {
      m_now = simd::vmax<Arch>(m_now, simd::load<Arch>(column + j * kScoreStride<Arch>));
    }
    // -infinity minus -infinity would be NaN: subtract 0 there, and every weight of the row is exp(-infinity) = 0.
    const auto shift = xsimd::select(m_now == nothing, zero, m_now);
    const auto a = simd::exp_nonpositive<Arch>(m_before - shift, k);
    auto sum = zero;
    for (std::size_t j = keys.begin; j < keys.end; ++j) {
      float* s = column + j * kScoreStride<Arch>;
      const auto p = simd::exp_nonpositive<Arch>(simd::load<Arch>(s) - shift, k);
      simd::store<Arch>(s, p);
      sum = sum + p;
    }
    simd::store<Arch>(m + v * kW, m_now);
    simd::store<Arch>(l + v * kW, simd::madd<Arch>(simd::load<Arch>(l + v * kW), a, sum));
    simd::store<Arch>(alpha + v * kW, a);
  }
}

}  // namespace sdpa::kernels
