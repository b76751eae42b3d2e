// Rows of a tile where they lie: the runs of neighbours that they are in, one as a rule, a few in pages or at the seam
// of a ring. Whoever reads rows once, as decode does, goes from run to run and copies nothing.
#pragma once

#include <cstddef>

#include "kernels/key_rows.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

struct RowRuns {
  // Runs of a tile: pages of eight rows, the first cut. Shorter runs are better copied together.
  static constexpr std::size_t kMost = kBc / 8 + 1;

  struct Piece {
    const void* data;
    std::size_t rows;
  };

  Piece piece[kMost];
  std::size_t count = 0;
  std::size_t stride = 0;  // elements between the rows of a run

  /// Rows [first, first + rows); false where they are in too many pieces.
  bool find(const RowMap& map, const InputRows& source, std::size_t first, std::size_t rows, std::size_t columns) {
    count = 0;
    stride = source.stride;
    while (rows != 0) {
      if (count == kMost) return false;
      const Run run = locate(map, source, first, rows, columns);
      piece[count++] = {static_cast<const char*>(source.data) + run.element * size_of(source.dtype), run.rows};
      first += run.rows;
      rows -= run.rows;
    }
    return true;
  }
};

}  // namespace sdpa::kernels
