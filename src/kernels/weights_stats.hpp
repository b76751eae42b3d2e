// Largest weight of each row, its key, and the entropy -sum P ln P. The logarithm of a weight is there before the
// weight is: ln P = s - lse.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/weights_tile.hpp"

namespace sdpa::kernels {

template <class Arch>
struct RowStats {
  float best[kScoreStride<Arch>];
  std::int32_t key[kScoreStride<Arch>];
  double entropy[kScoreStride<Arch>];

  RowStats() {
    for (std::size_t r = 0; r < kScoreStride<Arch>; ++r) {
      best[r] = kNoWeight;
      key[r] = -1;
      entropy[r] = 0;
    }
  }
};

/// Adds `keys` of a tile. Sums of a tile are float32, those of tiles double.
template <class Arch>
SDPA_NOINLINE void add_stats(const Panel& panel, KeyRange keys, std::size_t tile_begin, const float* lse,
                             const float* scores, RowStats<Arch>& stats) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  using V = simd::Batch<Arch>;
  const WeightOf<Arch> weight(kNoWeight);
  const V zero = simd::splat<Arch>(0.0F);
  const V one = simd::splat<Arch>(1.0F);
  for (std::size_t v = 0; v < panel.vectors; ++v) {
    const std::size_t first = panel.first + v * kW;
    const V shift = simd::load<Arch>(lse + first);
    const float* s = scores + keys.begin * kScoreStride<Arch> + first;
    V best = simd::load<Arch>(stats.best + first);
    V at = simd::splat<Arch>(-1.0F);
    V sum = zero;
    V j = simd::splat<Arch>(static_cast<float>(keys.begin));
    SDPA_NO_UNROLL
    for (std::size_t n = keys.size(); n != 0; --n, s += kScoreStride<Arch>) {
      const V score = simd::load<Arch>(s);
      // A weight of 0 has a logarithm that counts for nothing, unless it is infinite.
      const V x = simd::clamp_low<Arch>(weight.logarithm(score, shift), weight.constants.low);
      const V p = simd::exp_nonpositive<Arch>(x, weight.constants);
      const auto out = score == weight.masked;
      sum = sum + xsimd::select(out, zero, p * x);
      const V q = xsimd::select(out, weight.excluded, p);
      at = xsimd::select(q > best, j, at);
      best = xsimd::select(q > best, q, best);
      j = j + one;
    }
    float found[kW];
    float sums[kW];
    simd::store<Arch>(stats.best + first, best);
    simd::store<Arch>(found, at);
    simd::store<Arch>(sums, sum);
    for (std::size_t r = 0; r < kW; ++r) {
      stats.entropy[first + r] -= static_cast<double>(sums[r]);
      if (found[r] >= 0)
        stats.key[first + r] = static_cast<std::int32_t>(tile_begin) + static_cast<std::int32_t>(found[r]);
    }
  }
}

template <class Arch>
void finish_stats(const WeightsBlock& b, const float* lse, const RowStats<Arch>& stats) {
  for (std::size_t r = 0; r < b.attention.rows; ++r) {
    const bool broken = std::isnan(lse[r]);
    const float best = stats.key[r] < 0 ? 0.0F : stats.best[r];
    b.values[r] = broken ? lse[r] : best;
    b.indices[r] = broken ? -1 : stats.key[r];
    // Adding 0 makes -0 the same 0.
    b.entropy[r] = broken ? lse[r] : static_cast<float>(stats.entropy[r] + 0.0);
  }
}

}  // namespace sdpa::kernels
