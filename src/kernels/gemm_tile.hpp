// A few rows of A times panels of B, lanes along the columns of B.
//
//   c[r][n] = from[r][n] + sum_k a[r][k] * b[k][n]
//
// a is read where it lies, one splat load an element; b is packed, [panel][k][2 vectors]. Register tile kMr rows x 1
// panel; where there are but one or two rows, several panels, so that there are eight chains to hide the latency. The
// sum over k runs in order from 0 in every build of the tile and is added to `from` at the end: the bits of an element
// do not depend on its neighbours.
#pragma once

#include <cstddef>
#include <type_traits>

#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

/// Panels that a tile of so many rows goes along. Without vectors every lane is a chain of its own.
template <class Arch>
constexpr std::size_t panels_beside(std::size_t rows) {
  if (std::is_same_v<Arch, simd::Scalar>) return 1;
  return rows == 1 ? 4 : rows == 2 ? 2 : 1;
}

/// Rows `stride` floats apart.
struct MatrixOut {
  float* data;
  std::size_t stride;
};
struct MatrixIn {
  const float* data;
  std::size_t stride;
};

template <class Arch, std::size_t kRows, std::size_t kPanels>
SDPA_INLINE void gemm_register_tile(MatrixIn a, MatrixIn b, std::size_t inner, MatrixIn from, MatrixOut c) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  constexpr std::size_t kVectors = kPanels * kNr;
  using V = simd::Batch<Arch>;
  V acc[kRows][kVectors];
  const float* row[kRows];
  const float* panel[kPanels];
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) acc[r][v] = V(0.0F);
    row[r] = a.data + r * a.stride;
  }
  for (std::size_t p = 0; p < kPanels; ++p) panel[p] = b.data + p * b.stride;
  SDPA_NO_UNROLL
  for (; inner != 0; --inner) {
    V x[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) x[v] = simd::load<Arch>(panel[v / kNr] + v % kNr * kW);
    for (std::size_t r = 0; r < kRows; ++r) {
      const V s = simd::splat<Arch>(*row[r]);
      for (std::size_t v = 0; v < kVectors; ++v) acc[r][v] = simd::madd<Arch>(s, x[v], acc[r][v]);
    }
    for (std::size_t r = 0; r < kRows; ++r) ++row[r];
    for (std::size_t p = 0; p < kPanels; ++p) panel[p] += kNr * kW;
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      simd::store<Arch>(c.data + r * c.stride + v * kW,
                        simd::load<Arch>(from.data + r * from.stride + v * kW) + acc[r][v]);
    }
  }
}

/// `rows` rows (at most kMr) of the whole panels from `b` on; `b.stride` is from one panel to the next. How many panels
/// it went along: one, or panels_beside(rows) where `panels` are as many.
template <class Arch>
SDPA_NOINLINE std::size_t gemm_rows(MatrixIn a, MatrixIn b, std::size_t inner, MatrixIn from, MatrixOut c,
                                    std::size_t rows, std::size_t panels) {
  std::size_t done = 1;
  with_constant<TileSize<Arch>::kMr>(rows, [&](auto constant) {
    constexpr std::size_t kRows = constant();
    constexpr std::size_t kBeside = panels_beside<Arch>(kRows);
    if constexpr (kBeside > 1) {
      if (panels >= kBeside) {
        done = kBeside;
        return gemm_register_tile<Arch, kRows, kBeside>(a, b, inner, from, c);
      }
    }
    gemm_register_tile<Arch, kRows, 1>(a, b, inner, from, c);
  });
  return done;
}

}  // namespace sdpa::kernels
