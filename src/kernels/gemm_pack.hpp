// Packs the right operand of a matrix product: pieces of kGemmInner rows, each as panels [panel][k][2 vectors], zeros
// behind the last column. The inner loop then reads it front to back whatever form it comes in.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/kernel_table.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

/// Terms of a sum that is kept in registers: a piece of the inner dimension.
inline constexpr std::size_t kGemmInner = 256;

/// Columns of a panel.
template <class Arch>
inline constexpr std::size_t kPanel = kNr* simd::kWidth<Arch>;

/// Where the panels of the piece that begins at row `first` lie, in floats, and how far apart.
struct PackedPiece {
  std::size_t at;
  std::size_t panel_stride;
};

template <class Arch>
constexpr PackedPiece packed_piece(std::size_t inner, std::size_t columns, std::size_t first) {
  return {first * round_up(columns, kPanel<Arch>), std::min(kGemmInner, inner - first) * kPanel<Arch>};
}

/// to[c][r] = from[r][c].
template <class Arch>
SDPA_NOINLINE void transpose_block(const float* from, std::size_t from_stride, std::size_t rows, std::size_t columns,
                                   float* to, std::size_t to_stride) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const std::size_t whole_rows = rows - rows % kW;
  const std::size_t whole_columns = columns - columns % kW;
  for (std::size_t r = 0; r < whole_rows; r += kW) {
    for (std::size_t c = 0; c < whole_columns; c += kW) {
      simd::Batch<Arch> square[kW];
      for (std::size_t i = 0; i < kW; ++i) square[i] = simd::load<Arch>(from + (r + i) * from_stride + c);
      simd::transpose<Arch>(square);
      for (std::size_t i = 0; i < kW; ++i) simd::store<Arch>(to + (c + i) * to_stride + r, square[i]);
    }
  }
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c) {
      to[c * to_stride + r] = from[r * from_stride + c];
    }
  }
}

/// The piece of b (all_inner, columns) that has `inner` rows from `first` on.
template <class Arch>
SDPA_NOINLINE void pack_piece(const Matrix& b, std::size_t all_inner, std::size_t columns, std::size_t first,
                              std::size_t inner, float* to) {
  constexpr std::size_t kColumns = kPanel<Arch>;
  static_assert(kGemmInner % kColumns == 0);
  for (std::size_t n = 0; n < columns; n += kColumns, to += inner * kColumns) {
    const std::size_t width = std::min(kColumns, columns - n);
    if (width < kColumns) std::fill_n(to, inner * kColumns, 0.0F);
    switch (b.form) {
      case MatrixForm::kRows:
        for (std::size_t k = 0; k < inner; ++k) {
          std::copy_n(b.data + (first + k) * b.stride + n, width, to + k * kColumns);
        }
        break;
      case MatrixForm::kColumns:
        transpose_block<Arch>(b.data + n * b.stride + first, b.stride, width, inner, to, kColumns);
        break;
      case MatrixForm::kPacked: {
        const PackedPiece piece = packed_piece<Arch>(all_inner, columns, first);
        std::copy_n(b.data + piece.at + n / kColumns * piece.panel_stride, inner * kColumns, to);
        break;
      }
      case MatrixForm::kPackedColumns: {
        // The packed matrix is (columns, all_inner): the rows of its panels are columns of b.
        const std::size_t begin = n - n % kGemmInner;
        const PackedPiece piece = packed_piece<Arch>(columns, all_inner, begin);
        for (std::size_t k = 0; k < inner; k += kColumns) {
          transpose_block<Arch>(
              b.data + piece.at + (first + k) / kColumns * piece.panel_stride + (n - begin) * kColumns, kColumns, width,
              std::min(kColumns, inner - k), to + k * kColumns, kColumns);
        }
        break;
      }
    }
  }
}

template <class Arch>
void gemm_pack(const Matrix& b, std::size_t inner, std::size_t columns, float* to) {
  for (std::size_t first = 0; first < inner; first += kGemmInner) {
    pack_piece<Arch>(b, inner, columns, first, std::min(kGemmInner, inner - first),
                     to + packed_piece<Arch>(inner, columns, first).at);
  }
}

}  // namespace sdpa::kernels
