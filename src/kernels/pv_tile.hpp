// O = alpha * O + P V of a few query rows, lanes along the columns of V.
//
//   out[i][c] = alpha[i] * out[i][c] + sum_j weights[j][i] * value[j][c]
//
// weights is [key][row] as QK left it, read by splats, so P is never transposed; value is read where it lies. Register
// tile kMr rows x 2 vectors, then one vector, then the packed tail. The sum over keys runs in order in every build of
// the tile: a row's bits do not depend on its neighbours, and a weight of 0 with a finite value changes nothing.
#pragma once

#include <cstddef>

#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

/// Columns of V as the tiles read them: whole vectors in place, the rest packed.
struct ValueTile {
  const float* data;
  std::size_t stride;
  std::size_t columns;  // head_dim_v
  const float* tail;    // [key][1 vector], used where columns is not a multiple of the vector
};

template <class Arch, std::size_t kRows, std::size_t kVectors>
inline void pv_register_tile(const float* weights, std::size_t weight_stride, const float* value,
                             std::size_t value_stride, std::size_t keys, const float* alpha, float* out,
                             std::size_t out_stride) {
  static_assert(kRows >= 1 && kRows <= TileSize<Arch>::kMr);
  constexpr std::size_t kW = simd::kWidth<Arch>;
  using V = simd::Batch<Arch>;
  V acc[kRows][kVectors];
  for (std::size_t r = 0; r < kRows; ++r) {
    const V a = simd::splat<Arch>(alpha[r]);
    for (std::size_t c = 0; c < kVectors; ++c) acc[r][c] = simd::load<Arch>(out + r * out_stride + c * kW) * a;
  }
  SDPA_NO_UNROLL
  for (std::size_t j = 0; j < keys; ++j) {
    V v[kVectors];
    for (std::size_t c = 0; c < kVectors; ++c) v[c] = simd::load<Arch>(value + c * kW);
    for (std::size_t r = 0; r < kRows; ++r) {
      const V p = simd::splat<Arch>(weights[r]);
      for (std::size_t c = 0; c < kVectors; ++c) acc[r][c] = simd::madd<Arch>(p, v[c], acc[r][c]);
    }
    weights += weight_stride;
    value += value_stride;
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t c = 0; c < kVectors; ++c) simd::store<Arch>(out + r * out_stride + c * kW, acc[r][c]);
  }
}

/// Keys [first, last) of the tile for rows that all may see what they weigh.
template <class Arch>
SDPA_NOINLINE void pv_rows(const float* weights, std::size_t weight_stride, const ValueTile& value, std::size_t first,
                           std::size_t last, const float* alpha, float* out, std::size_t out_stride, std::size_t rows) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const std::size_t keys = last - first;
  weights += first * weight_stride;
  with_constant<TileSize<Arch>::kMr>(rows, [&](auto constant) {
    constexpr std::size_t kRows = constant();
    const float* v = value.data + first * value.stride;
    std::size_t c = 0;
    for (; c + kNr * kW <= value.columns; c += kNr * kW) {
      pv_register_tile<Arch, kRows, kNr>(weights, weight_stride, v + c, value.stride, keys, alpha, out + c, out_stride);
    }
    for (; c + kW <= value.columns; c += kW) {
      pv_register_tile<Arch, kRows, 1>(weights, weight_stride, v + c, value.stride, keys, alpha, out + c, out_stride);
    }
    if (c < value.columns) {
      pv_register_tile<Arch, kRows, 1>(weights, weight_stride, value.tail + first * kW, kW, keys, alpha, out + c,
                                       out_stride);
    }
  });
}

/// The same for one row with a predicate per key: excluded keys are left out, not multiplied by 0, because 0 times the
/// NaN or infinity of a value that this row may not see is NaN. Same additions in the same order, hence the same bits.
template <class Arch, class Allowed>
void pv_selected_row(const float* weights, std::size_t weight_stride, const ValueTile& value, std::size_t first,
                     std::size_t last, float alpha, float* out, Allowed&& allowed) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  for (std::size_t c = 0; c < value.columns; c += kW) {
    const bool whole = c + kW <= value.columns;
    auto acc = simd::load<Arch>(out + c) * simd::splat<Arch>(alpha);
    for (std::size_t j = first; j < last; ++j) {
      if (!allowed(j)) continue;
      const auto v = simd::load<Arch>(whole ? value.data + j * value.stride + c : value.tail + j * kW);
      acc = simd::madd<Arch>(simd::splat<Arch>(weights[j * weight_stride]), v, acc);
    }
    simd::store<Arch>(out + c, acc);
  }
}

/// Whether keys [first, last) hold no NaN and no infinity: 0 times them sums to 0.
template <class Arch>
SDPA_NOINLINE bool values_are_finite(const ValueTile& value, std::size_t first, std::size_t last) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const auto zero = simd::splat<Arch>(0.0F);
  auto sum = zero;
  for (std::size_t j = first; j < last; ++j) {
    const float* v = value.data + j * value.stride;
    std::size_t c = 0;
    for (; c + kW <= value.columns; c += kW) sum = simd::madd<Arch>(zero, simd::load<Arch>(v + c), sum);
    if (c < value.columns) sum = simd::madd<Arch>(zero, simd::load<Arch>(value.tail + j * kW), sum);
  }
  float lanes[kW];
  simd::store<Arch>(lanes, sum);
  float total = 0.0F;
  for (std::size_t c = 0; c < kW; ++c) total += lanes[c];
  return total == 0.0F;
}

}  // namespace sdpa::kernels
