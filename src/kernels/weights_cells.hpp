// Sums or maxima of the weights over cells of rows and keys.
//
// The keys of a tile that lie in one cell are added up in vectors of rows, then the block's rows that lie in one cell;
// both float32, at most kBc and one block long. Everything beyond is double. Where rows are cut into blocks is said by
// the caller, so that the order of additions is its choice.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/weights_tile.hpp"

namespace sdpa::kernels {

struct SumOfWeights {
  template <class V>
  SDPA_INLINE static V vectors(V a, V b) {
    return a + b;
  }
  static float floats(float a, float b) { return a + b; }
  static void add(double& a, float b) { a += static_cast<double>(b); }
};

/// NaN is larger than everything.
struct MaxOfWeights {
  template <class V>
  SDPA_INLINE static V vectors(V a, V b) {
    return xsimd::select((b > a) | (b != b), b, a);
  }
  static float floats(float a, float b) { return b > a || std::isnan(b) ? b : a; }
  static void add(double& a, float b) {
    if (static_cast<double>(b) > a || std::isnan(b)) a = static_cast<double>(b);
  }
};

/// What a tile has of the cells of keys: segment n is keys [begin[n], begin[n + 1]) of the tile, of cell first + n.
struct CellSegments {
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t begin[kBc + 1];

  CellSegments(const WeightsBlock& b, KeyRange tile, KeyRange seen) {
    const std::size_t key = tile.begin + seen.begin;
    const std::int32_t* starts = b.column_cells;
    first = starts == nullptr
                ? key
                : static_cast<std::size_t>(
                      std::upper_bound(starts, starts + b.num_column_cells, static_cast<std::int32_t>(key)) - starts) -
                      1;
    for (std::size_t at = seen.begin; at < seen.end;) {
      begin[count] = at;
      const std::size_t next =
          starts == nullptr ? key + count + 1 : static_cast<std::size_t>(starts[first + count + 1]);
      ++count;
      at = next - tile.begin;
    }
    begin[count] = seen.end;
  }
};

/// Reduces each segment's keys: scores [key][row] become [segment][row] in place, no segment being behind its own keys.
template <class Arch, class Op>
SDPA_NOINLINE void reduce_keys(const CellSegments& segments, KeyRange keys, std::size_t vectors, const float* lse,
                               float* scores) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  using V = simd::Batch<Arch>;
  const WeightOf<Arch> weight(0.0F);
  for (std::size_t v = 0; v < vectors; ++v) {
    const V shift = simd::load<Arch>(lse + v * kW);
    float* column = scores + v * kW;
    for (std::size_t n = 0; n < segments.count; ++n) {
      const KeyRange segment = intersect({segments.begin[n], segments.begin[n + 1]}, keys);
      V reduced = weight.zero;
      const float* s = column + segment.begin * kScoreStride<Arch>;
      SDPA_NO_UNROLL
      for (std::size_t k = segment.size(); k != 0; --k, s += kScoreStride<Arch>) {
        reduced = Op::vectors(reduced, weight(simd::load<Arch>(s), shift));
      }
      simd::store<Arch>(column + n * kScoreStride<Arch>, reduced);
    }
  }
}

/// Rows [begin, end) of a line: whole vectors first, then the rest.
template <class Arch, class Op>
float reduce_rows(const float* line, std::size_t begin, std::size_t end) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  float result = 0.0F;
  if (end - begin >= kW) {
    auto reduced = simd::load<Arch>(line + begin);
    for (begin += kW; begin + kW <= end; begin += kW) reduced = Op::vectors(reduced, simd::load<Arch>(line + begin));
    float lanes[kW];
    simd::store<Arch>(lanes, reduced);
    for (const float lane : lanes) result = Op::floats(result, lane);
  }
  for (; begin < end; ++begin) result = Op::floats(result, line[begin]);
  return result;
}

/// Adds the scores of cells.seen to b.cells.
template <class Arch, class Op>
SDPA_NOINLINE void add_to_cells(const WeightsBlock& b, KeyRange tile, const TileCells<Arch>& cells, const float* lse,
                                float* scores) {
  constexpr std::size_t kPanel = kNr * simd::kWidth<Arch>;
  const std::size_t rows = b.attention.rows;
  const CellSegments segments(b, tile, cells.seen);
  for (std::size_t first = 0, p = 0; first < rows; first += kPanel, ++p) {
    reduce_keys<Arch, Op>(segments, cells.keys[p], panel_at<Arch>(first, rows).vectors, lse + first, scores + first);
  }
  for (std::size_t begin = 0, k = 0; begin < rows; ++k) {
    const std::size_t end = std::min(rows, static_cast<std::size_t>(b.row_cells[k + 1]) - b.first_row);
    double* to = b.cells + k * b.num_column_cells + segments.first;
    for (std::size_t n = 0; n < segments.count; ++n) {
      Op::add(to[n], reduce_rows<Arch, Op>(scores + n * kScoreStride<Arch>, begin, end));
    }
    begin = end;
  }
}

}  // namespace sdpa::kernels
