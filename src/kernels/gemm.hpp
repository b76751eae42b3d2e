// c = a b + bias, or c += a b: the matrix product of the layers around attention, blocked as by Goto & van de Geijn
// (2008).
//
//   c (rows, columns), a (rows, inner), b (inner, columns), bias (columns)
//
// The inner dimension goes by pieces of kGemmInner; within a piece a block of rows meets every panel of b. A panel's
// piece (8 KiB at 8 columns) stays in the first-level cache while the block's rows pass, the block's piece of a in that
// or the next, and the panels of a piece in the next or the one behind it. Each piece is summed from 0 and then added
// to what c holds. Pieces begin at multiples of a constant, so that a row's bits do not depend on the rows beside it;
// and the error grows with the length of a piece and the number of pieces instead of their product.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/gemm_pack.hpp"
#include "kernels/gemm_tile.hpp"
#include "kernels/kernel_table.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

// Rows of a block: what a piece of b is read from its cache for. A multiple of every kMr.
inline constexpr std::size_t kGemmRows = 48;

/// Parts of the workspace, in this order.
template <class Arch>
struct GemmWorkspace {
  std::size_t panels = 0;                                                   // a piece of b, where it is not packed
  std::size_t block = 0;                                                    // a block of a, where it lies in columns
  std::size_t bias = 0;                                                     // bias, zeros where there is none
  static constexpr std::size_t kTail = TileSize<Arch>::kMr * kPanel<Arch>;  // a tile of the last columns

  explicit GemmWorkspace(const GemmCall& g) {
    const std::size_t inner = std::min(g.inner, kGemmInner);
    const std::size_t columns = round_up(g.columns, kPanel<Arch>);
    if (g.b.form != MatrixForm::kPacked) panels = inner * columns;
    if (g.a.form == MatrixForm::kColumns) block = std::min(g.rows, kGemmRows) * inner;
    bias = columns;
  }

  static std::size_t floats(const GemmCall& g) {
    const GemmWorkspace w(g);
    return w.panels + w.block + w.bias + kTail;
  }
};

/// The last columns of a row tile, fewer than a panel, by way of a tile of their own.
template <class Arch>
SDPA_NOINLINE void gemm_last_columns(MatrixIn a, const float* panel, std::size_t inner, MatrixIn from, MatrixOut c,
                                     std::size_t rows, std::size_t columns, float* tile) {
  constexpr std::size_t kColumns = kPanel<Arch>;
  if (from.stride != 0) {
    for (std::size_t r = 0; r < rows; ++r) std::copy_n(from.data + r * from.stride, columns, tile + r * kColumns);
    from = {tile, kColumns};
  }
  gemm_rows<Arch>(a, {panel, 0}, inner, from, {tile, kColumns}, rows, 1);
  for (std::size_t r = 0; r < rows; ++r) std::copy_n(tile + r * kColumns, columns, c.data + r * c.stride);
}

/// `rows` rows of a piece against all panels. `from` is the bias (stride 0) or c.
template <class Arch>
SDPA_NOINLINE void gemm_block(MatrixIn a, MatrixIn b, std::size_t inner, MatrixIn from, MatrixOut c, std::size_t rows,
                              std::size_t columns, float* tail) {
  constexpr std::size_t kColumns = kPanel<Arch>;
  const RowTiles tiles = split_rows<TileSize<Arch>::kMr>(rows);
  const std::size_t whole = columns / kColumns;
  for (std::size_t p = 0; p <= whole;) {
    const std::size_t last = p < whole ? 0 : columns % kColumns;
    if (p == whole && last == 0) break;
    std::size_t beside = 1;
    for (std::size_t t = 0, r = 0; t < tiles.count(); r += tiles.rows_of(t), ++t) {
      const std::size_t n = tiles.rows_of(t);
      const MatrixIn rows_of_a{a.data + r * a.stride, a.stride};
      const MatrixIn before{from.data + r * from.stride + p * kColumns, from.stride};
      const MatrixOut target{c.data + r * c.stride + p * kColumns, c.stride};
      const float* panel = b.data + p * b.stride;
      if (last != 0) {
        gemm_last_columns<Arch>(rows_of_a, panel, inner, before, target, n, last, tail);
      } else {
        // More than one tile of rows goes one panel at a time.
        const std::size_t panels = tiles.count() == 1 ? whole - p : 1;
        beside = gemm_rows<Arch>(rows_of_a, {panel, b.stride}, inner, before, target, n, panels);
      }
    }
    p += beside;
  }
}

template <class Arch>
void gemm(const GemmCall& g, float* workspace) {
  constexpr std::size_t kColumns = kPanel<Arch>;
  const GemmWorkspace<Arch> sizes(g);
  float* panels = workspace;
  float* block = panels + sizes.panels;
  float* bias = block + sizes.block;
  float* tail = bias + sizes.bias;
  std::fill_n(bias, sizes.bias, 0.0F);
  if (g.bias != nullptr) std::copy_n(g.bias, g.columns, bias);
  const RowTiles blocks = split_rows<kGemmRows>(g.rows);
  std::size_t first = 0;
  do {
    const std::size_t inner = std::min(g.inner - first, kGemmInner);
    MatrixIn b{panels, inner * kColumns};
    if (g.b.form == MatrixForm::kPacked) {
      const PackedPiece piece = packed_piece<Arch>(g.inner, g.columns, first);
      b = {g.b.data + piece.at, piece.panel_stride};
    } else {
      pack_piece<Arch>(g.b, g.inner, g.columns, first, inner, panels);
    }
    for (std::size_t t = 0, m = 0; t < blocks.count(); m += blocks.rows_of(t), ++t) {
      const std::size_t rows = blocks.rows_of(t);
      MatrixIn a{g.a.data + m * g.a.stride + first, g.a.stride};
      if (g.a.form == MatrixForm::kColumns) {
        transpose_block<Arch>(g.a.data + first * g.a.stride + m, g.a.stride, inner, rows, block, inner);
        a = {block, inner};
      }
      const MatrixOut c{g.c + m * g.c_stride, g.c_stride};
      const MatrixIn from = first == 0 && !g.accumulate ? MatrixIn{bias, 0} : MatrixIn{c.data, c.stride};
      gemm_block<Arch>(a, b, inner, from, c, rows, g.columns, tail);
    }
    first += inner;
  } while (first < g.inner);
}

}  // namespace sdpa::kernels
