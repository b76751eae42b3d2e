// From scores and d_out . value to the weights and the gradients of the scores, element by element.
//
//   P = exp(s - lse),  dS = P (dP - delta),  dP = d_out . value
//
// P is computed again from the log-sum-exp of its row instead of being kept. A cell that takes no part has P = dS = 0
// exactly, whatever stands behind it.
#pragma once

#include <cmath>
#include <cstddef>

#include "kernels/dropout.hpp"
#include "kernels/kernel_table.hpp"
#include "kernels/mask.hpp"
#include "kernels/tile_size.hpp"
#include "simd/math.hpp"

namespace sdpa::kernels {

/// apply_softcap() that also writes the slopes of cap tanh(x / cap).
template <class Arch>
SDPA_NOINLINE void apply_softcap_with_slopes(float cap, KeyRange keys, std::size_t vectors, float* scores,
                                             float* slopes) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const auto k = simd::TanhConstants<Arch>::load();
  const auto c = simd::splat<Arch>(cap);
  for (std::size_t j = keys.begin; j < keys.end; ++j) {
    for (std::size_t v = 0; v < vectors; ++v) {
      const std::size_t at = j * kScoreStride<Arch> + v * kW;
      const auto capped = simd::tanh_and_slope<Arch>(c, simd::load<Arch>(scores + at), k);
      simd::store<Arch>(scores + at, capped.tanh);
      simd::store<Arch>(slopes + at, capped.slope);
    }
  }
}

/// Scores to weights in place. `shift` is lse, or +infinity in rows that see nothing. kSelect: some scores are
/// -infinity, whose weight is 0 in a row whose lse is NaN, too.
template <class Arch, bool kSelect>
SDPA_NOINLINE void weights_from_lse(KeyRange keys, std::size_t vectors, const float* shift, float* scores) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const auto k = simd::ExpConstants<Arch>::load();
  for (std::size_t v = 0; v < vectors; ++v) {
    const auto lse = simd::load<Arch>(shift + v * kW);
    float* s = scores + keys.begin * kScoreStride<Arch> + v * kW;
    SDPA_NO_UNROLL
    for (std::size_t n = keys.size(); n != 0; --n, s += kScoreStride<Arch>) {
      const auto score = simd::load<Arch>(s);
      auto weight = simd::exp_nonpositive<Arch>(score - lse, k);
      if constexpr (kSelect) {
        weight = xsimd::select(score == simd::splat<Arch>(kMasked), simd::splat<Arch>(0.0F), weight);
      }
      simd::store<Arch>(s, weight);
    }
  }
}

/// Gradients of the scores, in place of dP.
template <class Arch>
SDPA_NOINLINE void score_gradients(KeyRange keys, std::size_t vectors, const float* weights, const float* delta,
                                   float* d_scores) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const auto zero = simd::splat<Arch>(0.0F);
  for (std::size_t v = 0; v < vectors; ++v) {
    const auto d = simd::load<Arch>(delta + v * kW);
    const float* w = weights + keys.begin * kScoreStride<Arch> + v * kW;
    float* s = d_scores + keys.begin * kScoreStride<Arch> + v * kW;
    SDPA_NO_UNROLL
    for (std::size_t n = keys.size(); n != 0; --n, w += kScoreStride<Arch>, s += kScoreStride<Arch>) {
      const auto p = simd::load<Arch>(w);
      simd::store<Arch>(s, xsimd::select(p == zero, zero, p * (simd::load<Arch>(s) - d)));
    }
  }
}

/// d_scores times the slopes of the softcap; where a gradient is 0 it stays so.
template <class Arch>
SDPA_NOINLINE void apply_slopes(KeyRange keys, std::size_t vectors, const float* slopes, float* d_scores) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const auto zero = simd::splat<Arch>(0.0F);
  for (std::size_t j = keys.begin; j < keys.end; ++j) {
    for (std::size_t v = 0; v < vectors; ++v) {
      const std::size_t at = j * kScoreStride<Arch> + v * kW;
      const auto d = simd::load<Arch>(d_scores + at);
      simd::store<Arch>(d_scores + at, xsimd::select(d == zero, zero, d * simd::load<Arch>(slopes + at)));
    }
  }
}

/// Dropout of one panel: dropped cells have dP = 0, kept ones factor times dP.
template <class Arch>
SDPA_NOINLINE void drop_gradients(const AttentionBlock& block, const Panel& panel, std::size_t tile_begin,
                                  KeyRange keys, float* d_scores) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const auto factor = simd::splat<Arch>(block.dropout.factor);
  for (std::size_t j = keys.begin; j < keys.end; ++j) {
    for (std::size_t v = 0; v < panel.vectors; ++v) {
      float* s = d_scores + j * kScoreStride<Arch> + v * kW;
      simd::store<Arch>(s, simd::load<Arch>(s) * factor);
    }
  }
  apply_dropout<Arch>(block, panel, tile_begin, keys, d_scores);
}

/// Adds the gradients of the scores to that of the bias, whose repeated dimensions sum: rows in order, then keys.
template <class Arch>
SDPA_NOINLINE void add_bias_gradient(const BackwardBlock& b, const Panel& panel, std::size_t tile_begin, KeyRange keys,
                                     const float* d_scores) {
  for (std::size_t r = 0; r < panel.rows; ++r) {
    float* to = b.d_bias + (panel.first + r) * b.d_bias_row_stride + tile_begin * b.d_bias_column_stride;
    for (std::size_t j = keys.begin; j < keys.end; ++j) {
      to[j * b.d_bias_column_stride] += d_scores[j * kScoreStride<Arch> + r];
    }
  }
}

/// Sum of dS |p - j| over the panel's cells.
template <class Arch>
SDPA_NOINLINE double alibi_gradient(const AttentionBlock& block, const Panel& panel, std::size_t tile_begin,
                                    KeyRange keys, const float* d_scores) {
  double sum = 0;
  for (std::size_t r = 0; r < panel.rows; ++r) {
    const auto distance = static_cast<double>(block.position[panel.first + r]) - static_cast<double>(tile_begin);
    for (std::size_t j = keys.begin; j < keys.end; ++j) {
      sum += static_cast<double>(d_scores[j * kScoreStride<Arch> + r]) * std::abs(distance - static_cast<double>(j));
    }
  }
  return sum;
}

}  // namespace sdpa::kernels
