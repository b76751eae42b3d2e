// O = alpha * O + P V of a few query rows, lanes along the columns of V.
//
//   out[i][c] = alpha[i] * out[i][c] + sum_j weights[j][i] * value[j][c]
//
// weights is a tile [key][row] as QK left it, read by splats, so P is never transposed; value is read where it lies,
// its last columns (fewer than two vectors) from a packed copy. out is [column block][row][2 vectors]. Register tile
// kMr rows x 2 vectors. The sum over keys runs in order in every build of the tile: a row's bits do not depend on its
// neighbours, and a weight of 0 with a finite value changes nothing.
#pragma once

#include <cstddef>

#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

/// Columns of V as the tiles read them: blocks of two vectors in place, the rest packed.
struct ValueTile {
  const float* data;
  std::size_t stride;
  std::size_t columns;      // head_dim_v
  const float* tail;        // [key][tail_stride]: the last columns % (2 vectors) of them, zeros behind
  std::size_t tail_stride;  // two vectors; 0 where there is no tail

  struct Columns {
    const float* data;
    std::size_t stride;
  };

  /// Where column c lies: with the rest of its block of two vectors, in place or in the tail.
  template <class Arch>
  Columns columns_from(std::size_t c) const {
    const std::size_t in_place = columns - columns % kColumnBlock<Arch>;
    return c < in_place ? Columns{data + c, stride} : Columns{tail + (c - in_place), tail_stride};
  }
};

/// `fresh`: out holds nothing yet and alpha does not count. Weights of neighbouring keys are kKeyStep apart.
template <class Arch, std::size_t kRows, std::size_t kVectors, std::size_t kKeyStep = kScoreStride<Arch>>
SDPA_INLINE void pv_register_tile(const float* weights, const float* value, std::size_t value_stride, std::size_t keys,
                                  bool fresh, const float* alpha, float* out) {
  static_assert(kRows >= 1 && kRows <= TileSize<Arch>::kMr);
  constexpr std::size_t kW = simd::kWidth<Arch>;
  using V = simd::Batch<Arch>;
  // Row r, vector c of an accumulator in column blocks of kNr vectors.
  const auto at = [](std::size_t r, std::size_t c) {
    return c / kNr * kScoreStride<Arch> * kColumnBlock<Arch> + r * kColumnBlock<Arch> + c % kNr * kW;
  };
  V acc[kRows][kVectors];
  if (fresh) {
    for (std::size_t r = 0; r < kRows; ++r) {
      for (std::size_t c = 0; c < kVectors; ++c) acc[r][c] = V(0.0F);
    }
  } else {
    for (std::size_t r = 0; r < kRows; ++r) {
      const V a = simd::splat<Arch>(alpha[r]);
      for (std::size_t c = 0; c < kVectors; ++c) acc[r][c] = simd::load<Arch>(out + at(r, c)) * a;
    }
  }
  SDPA_NO_UNROLL
  for (std::size_t j = 0; j < keys; ++j) {
    V v[kVectors];
    for (std::size_t c = 0; c < kVectors; ++c) v[c] = simd::load<Arch>(value + c * kW);
    for (std::size_t r = 0; r < kRows; ++r) {
      const V p = simd::splat<Arch>(weights[r]);
      for (std::size_t c = 0; c < kVectors; ++c) acc[r][c] = simd::madd<Arch>(p, v[c], acc[r][c]);
    }
    weights += kKeyStep;
    value += value_stride;
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t c = 0; c < kVectors; ++c) simd::store<Arch>(out + at(r, c), acc[r][c]);
  }
}

/// Keys [first, last) of one block of columns for `rows` rows (at most kMr) that may all see what they weigh.
template <class Arch>
SDPA_NOINLINE void pv_rows(const float* weights, const float* value, std::size_t value_stride, std::size_t keys,
                           bool fresh, const float* alpha, float* out, std::size_t rows) {
  with_constant<TileSize<Arch>::kMr>(rows, [&](auto constant) {
    pv_register_tile<Arch, constant(), kNr>(weights, value, value_stride, keys, fresh, alpha, out);
  });
}

/// The same for one row and all columns with a predicate per key: excluded keys are left out, not multiplied by 0,
/// because 0 times the NaN or infinity of a value that this row may not see is NaN. Same additions in the same order,
/// hence the same bits. `out` is the row in column block 0; blocks are `block_stride` floats apart.
template <class Arch, class Allowed>
void pv_selected_row(const float* weights, const ValueTile& value, std::size_t first, std::size_t last, bool fresh,
                     float alpha, float* out, std::size_t block_stride, Allowed&& allowed) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  for (std::size_t c = 0; c < value.columns; c += kW) {
    float* to = out + c / kColumnBlock<Arch> * block_stride + c % kColumnBlock<Arch>;
    const auto [from, stride] = value.columns_from<Arch>(c);
    auto acc = fresh ? simd::splat<Arch>(0.0F) : simd::load<Arch>(to) * simd::splat<Arch>(alpha);
    for (std::size_t j = first; j < last; ++j) {
      if (!allowed(j)) continue;
      const auto p = simd::splat<Arch>(weights[j * kScoreStride<Arch>]);
      acc = simd::madd<Arch>(p, simd::load<Arch>(from + j * stride), acc);
    }
    simd::store<Arch>(to, acc);
  }
}

/// Whether the first `keys` keys hold no NaN and no infinity: 0 times them sums to 0.
template <class Arch>
SDPA_NOINLINE bool values_are_finite(const ValueTile& value, std::size_t keys) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const std::size_t in_place = value.columns - value.columns % kColumnBlock<Arch>;
  const auto zero = simd::splat<Arch>(0.0F);
  static_assert(kNr == 2);
  simd::Batch<Arch> sum[4] = {zero, zero, zero, zero};  // a chain each, for the latency
  const auto add = [&](std::size_t chain, const float* v) {
    sum[chain] = simd::madd<Arch>(zero, simd::load<Arch>(v), sum[chain]);
  };
  for (std::size_t j = 0; j < keys; ++j) {
    const float* v = value.data + j * value.stride;
    std::size_t c = 0;
    for (; c + 4 * kW <= in_place; c += 4 * kW) {
      for (std::size_t k = 0; k < 4; ++k) add(k, v + c + k * kW);
    }
    for (; c < in_place; c += kNr * kW) {
      for (std::size_t k = 0; k < kNr; ++k) add(k, v + c + k * kW);
    }
    if (value.tail_stride == 0) continue;
    for (std::size_t k = 0; k < kNr; ++k) add(kNr + k, value.tail + j * value.tail_stride + k * kW);
  }
  float lanes[kW];
  simd::store<Arch>(lanes, (sum[0] + sum[1]) + (sum[2] + sum[3]));
  float total = 0.0F;
  for (std::size_t c = 0; c < kW; ++c) total += lanes[c];
  return total == 0.0F;
}

}  // namespace sdpa::kernels
