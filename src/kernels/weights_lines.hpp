// Weights as they are: those of whole rows, and those of picked keys.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/weights_tile.hpp"

namespace sdpa::kernels {

/// Writes the weights [key][row] of `wanted` keys of a tile to to[row * row_stride + key - wanted.begin]. Cells that
/// take no part are left as they are.
template <class Arch>
SDPA_NOINLINE void write_weights(const AttentionBlock& block, const TileCells<Arch>& cells, KeyRange wanted,
                                 const float* lse, float* scores, float* to, std::size_t row_stride) {
  constexpr std::size_t kPanel = kNr * simd::kWidth<Arch>;
  for (std::size_t first = 0, p = 0; first < block.rows; first += kPanel, ++p) {
    const Panel panel = panel_at<Arch>(first, block.rows);
    const KeyRange keys = keys_of_panel(cells, p, wanted);
    if (keys.empty()) continue;
    weigh_scores<Arch>(keys, panel.vectors, lse + first, 0.0F, scores + first);
    for (std::size_t r = 0; r < panel.rows; ++r) {
      const float* from = scores + first + r;
      float* row = to + (first + r) * row_stride;
      for (std::size_t j = keys.begin; j < keys.end; ++j) row[j - wanted.begin] = from[j * kScoreStride<Arch>];
    }
  }
}

/// Calls f(keys, first pick) for each run of picked keys in a tile; keys count from the tile's first.
template <class F>
void for_each_run(const std::int32_t* picks, std::size_t count, KeyRange tile, F&& f) {
  const auto at = [&](std::size_t n) { return static_cast<std::size_t>(picks[n]); };
  const std::int32_t* low = std::lower_bound(picks, picks + count, static_cast<std::int32_t>(tile.begin));
  for (auto n = static_cast<std::size_t>(low - picks); n < count && at(n) < tile.end;) {
    std::size_t end = n + 1;
    while (end < count && at(end) == at(n) + (end - n) && at(end) < tile.end) ++end;
    f(KeyRange{at(n) - tile.begin, at(end - 1) + 1 - tile.begin}, n);
    n = end;
  }
}

}  // namespace sdpa::kernels
