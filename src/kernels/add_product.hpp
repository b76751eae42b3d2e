// out += W X of a tile, lanes along the columns of X: the three products of the backward pass that end in a gradient.
//
//   out[r][c] += sum_j weights[r * kRowStep + j * kStep] * operand[j][c]
//
// weights is a score tile [key][row], read by splats along either of its sides, so nothing is transposed. out is
// [column block][kOutRows][2 vectors]. Register tile kMr rows x 2 vectors, as in pv_tile.hpp. The sum over j runs in
// order and continues what out holds.
#pragma once

#include <cstddef>

#include "kernels/mask.hpp"
#include "kernels/pv_tile.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

template <class Arch, std::size_t kRows, std::size_t kRowStep, std::size_t kStep>
SDPA_INLINE void add_register_tile(const float* weights, const float* operand, std::size_t stride, std::size_t n,
                                   float* out) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  using V = simd::Batch<Arch>;
  V acc[kRows][kNr];
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t c = 0; c < kNr; ++c) acc[r][c] = simd::load<Arch>(out + r * kColumnBlock<Arch> + c * kW);
  }
  SDPA_NO_UNROLL
  for (; n != 0; --n) {
    V x[kNr];
    for (std::size_t c = 0; c < kNr; ++c) x[c] = simd::load<Arch>(operand + c * kW);
    for (std::size_t r = 0; r < kRows; ++r) {
      const V w = simd::splat<Arch>(weights[r * kRowStep]);
      for (std::size_t c = 0; c < kNr; ++c) acc[r][c] = simd::madd<Arch>(w, x[c], acc[r][c]);
    }
    weights += kStep;
    operand += stride;
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t c = 0; c < kNr; ++c) simd::store<Arch>(out + r * kColumnBlock<Arch> + c * kW, acc[r][c]);
  }
}

template <class Arch, std::size_t kRowStep, std::size_t kStep>
SDPA_NOINLINE void add_rows(const float* weights, const float* operand, std::size_t stride, std::size_t n, float* out,
                            std::size_t rows) {
  with_constant<TileSize<Arch>::kMr>(rows, [&](auto constant) {
    add_register_tile<Arch, constant(), kRowStep, kStep>(weights, operand, stride, n, out);
  });
}

/// One row, terms whose weight is 0 left out: 0 times a NaN or an infinity that this row has nothing to do with is NaN.
template <class Arch>
void add_selected_row(const float* weights, std::size_t step, const ValueTile& operand, KeyRange terms, float* out,
                      std::size_t block_stride) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  for (std::size_t c = 0; c < operand.columns; c += kW) {
    const auto [from, stride] = operand.columns_from<Arch>(c);
    float* to = out + c / kColumnBlock<Arch> * block_stride + c % kColumnBlock<Arch>;
    auto acc = simd::load<Arch>(to);
    for (std::size_t j = terms.begin; j < terms.end; ++j) {
      const float w = weights[j * step];
      if (w != 0.0F) acc = simd::madd<Arch>(simd::splat<Arch>(w), simd::load<Arch>(from + j * stride), acc);
    }
    simd::store<Arch>(to, acc);
  }
}

/// A product of `rows` rows of out. `terms(first, n)`: the range of j that rows first ... first + n - 1 need, counted
/// from the operand's first row. `finite`: the operand holds no NaN and no infinity.
template <class Arch, std::size_t kRowStep, std::size_t kStep, std::size_t kOutRows, class Terms>
SDPA_INLINE void add_product(const float* weights, const ValueTile& operand, bool finite, std::size_t rows, float* out,
                             Terms&& terms) {
  constexpr std::size_t kColumns = kColumnBlock<Arch>;
  if (!finite) {
    for (std::size_t r = 0; r < rows; ++r) {
      add_selected_row<Arch>(weights + r * kRowStep, kStep, operand, terms(r, 1), out + r * kColumns,
                             kOutRows * kColumns);
    }
    return;
  }
  const RowTiles tiles = split_rows<TileSize<Arch>::kMr>(rows);
  for (std::size_t c = 0; c < operand.columns; c += kColumns) {
    const ValueTile::Columns columns = operand.columns_from<Arch>(c);
    for (std::size_t t = 0, first = 0; t < tiles.count(); first += tiles.rows_of(t), ++t) {
      const KeyRange range = terms(first, tiles.rows_of(t));
      if (range.empty()) continue;
      add_rows<Arch, kRowStep, kStep>(weights + first * kRowStep + range.begin * kStep,
                                      columns.data + range.begin * columns.stride, columns.stride, range.size(),
                                      out + c * kOutRows + first * kColumns, tiles.rows_of(t));
    }
  }
}

}  // namespace sdpa::kernels
