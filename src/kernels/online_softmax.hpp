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

#include "kernels/log.hpp"
#include "kernels/mask.hpp"
#include "kernels/tile_size.hpp"
#include "simd/math.hpp"

namespace sdpa::kernels {

/// The log-sum-exp m + ln l of a row, -infinity where it has seen nothing.
inline float log_sum_exp(float m, float l) { return static_cast<float>(static_cast<double>(m) + log_of(l)); }

/// The largest of the scores of keys [0, keys), kVectors vectors of rows, and of m: two chains a vector.
template <class Arch, std::size_t kVectors>
SDPA_INLINE void raise_maximum(const float* scores, std::size_t keys, simd::Batch<Arch> (&m)[kVectors]) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  simd::Batch<Arch> other[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) other[v] = m[v];
  if (keys % 2 != 0) {
    for (std::size_t v = 0; v < kVectors; ++v) m[v] = simd::vmax<Arch>(m[v], simd::load<Arch>(scores + v * kW));
    scores += kScoreStride<Arch>;
  }
  SDPA_NO_UNROLL
  for (std::size_t n = keys / 2; n != 0; --n) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      m[v] = simd::vmax<Arch>(m[v], simd::load<Arch>(scores + v * kW));
      other[v] = simd::vmax<Arch>(other[v], simd::load<Arch>(scores + kScoreStride<Arch> + v * kW));
    }
    scores += 2 * kScoreStride<Arch>;
  }
  for (std::size_t v = 0; v < kVectors; ++v) m[v] = simd::vmax<Arch>(m[v], other[v]);
}

template <class Arch, std::size_t kVectors>
SDPA_INLINE void softmax_vectors(KeyRange keys, float* scores, float* m, float* l, float* alpha) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  using V = simd::Batch<Arch>;
  scores += keys.begin * kScoreStride<Arch>;
  V m_now[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) m_now[v] = simd::load<Arch>(m + v * kW);
  raise_maximum<Arch, kVectors>(scores, keys.size(), m_now);
  const auto k = simd::ExpConstants<Arch>::load();
  const V nothing = simd::splat<Arch>(kMasked);
  const V zero = simd::splat<Arch>(0.0F);
  for (std::size_t v = 0; v < kVectors; ++v) {
    const V m_before = simd::load<Arch>(m + v * kW);
    // -infinity minus -infinity would be NaN: subtract 0 there, and every weight of the row is exp(-infinity) = 0.
    const V shift = xsimd::select(m_now[v] == nothing, zero, m_now[v]);
    const V a = simd::exp_nonpositive<Arch>(m_before - shift, k);
    V sum = zero;
    float* s = scores + v * kW;
    SDPA_NO_UNROLL
    for (std::size_t n = keys.size(); n != 0; --n) {
      const V p = simd::exp_nonpositive<Arch>(simd::load<Arch>(s) - shift, k);
      simd::store<Arch>(s, p);
      sum = sum + p;
      s += kScoreStride<Arch>;
    }
    simd::store<Arch>(m + v * kW, m_now[v]);
    simd::store<Arch>(l + v * kW, simd::madd<Arch>(simd::load<Arch>(l + v * kW), a, sum));
    simd::store<Arch>(alpha + v * kW, a);
  }
}

/// Turns scores [key][row] of keys [keys.begin, keys.end) into weights exp(s - m) in place, moves m and l,
/// writes alpha.
template <class Arch>
SDPA_NOINLINE void online_softmax(KeyRange keys, std::size_t vectors, float* scores, float* m, float* l, float* alpha) {
  if (vectors == 1) {
    softmax_vectors<Arch, 1>(keys, scores, m, l, alpha);
  } else {
    softmax_vectors<Arch, kNr>(keys, scores, m, l, alpha);
  }
}

/// The same for one row whose scores lie side by side, lanes across keys; `scores` is padded to whole vectors with
/// -infinity. Same additions in the same order, hence the same bits.
template <class Arch>
SDPA_NOINLINE void online_softmax_row(std::size_t keys, float* scores, float* m, float* l, float* alpha) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  using V = simd::Batch<Arch>;
  float lanes[kW];
  V top = simd::splat<Arch>(*m);
  for (std::size_t j = 0; j < keys; j += kW) top = simd::vmax<Arch>(top, simd::load<Arch>(scores + j));
  simd::store<Arch>(lanes, top);
  float m_now = lanes[0];
  for (std::size_t k = 1; k < kW; ++k) m_now = lanes[k] > m_now ? lanes[k] : m_now;
  const float shift = m_now == kMasked ? 0.0F : m_now;
  const auto k = simd::ExpConstants<Arch>::load();
  const V by = simd::splat<Arch>(shift);
  for (std::size_t j = 0; j < keys; j += kW) {
    simd::store<Arch>(scores + j, simd::exp_nonpositive<Arch>(simd::load<Arch>(scores + j) - by, k));
  }
  float sum = 0.0F;
  for (std::size_t j = 0; j < keys; ++j) sum += scores[j];
  const V a = simd::exp_nonpositive<Arch>(simd::splat<Arch>(*m) - by, k);
  simd::store<Arch>(lanes, simd::madd<Arch>(simd::splat<Arch>(*l), a, simd::splat<Arch>(sum)));
  *l = lanes[0];
  simd::store<Arch>(lanes, a);
  *alpha = lanes[0];
  *m = m_now;
}

}  // namespace sdpa::kernels
