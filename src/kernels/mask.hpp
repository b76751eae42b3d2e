// Which keys take part, as intervals per row: everything that follows from positions and lengths. Masking selects, it
// never adds: whatever stands behind an excluded cell cannot reach the result.
//
// A tile is skipped (no row sees a key of it: never read), full (no mask code runs) or partial. Within a partial tile
// only the keys at which the rows of a panel differ are touched.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

#include "kernels/kernel_table.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

inline constexpr float kMasked = -std::numeric_limits<float>::infinity();

/// What exp(score - lse) subtracts in a row that sees something; +infinity, which makes every weight 0, in the others.
inline float shift_of(float lse) { return lse == kMasked ? std::numeric_limits<float>::infinity() : lse; }

/// Half-open range of keys.
struct KeyRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  constexpr bool empty() const { return begin >= end; }
  constexpr std::size_t size() const { return empty() ? 0 : end - begin; }
};

constexpr KeyRange intersect(KeyRange a, KeyRange b) {
  return {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

/// The tile that begins with key `begin`, a multiple of kBc.
constexpr KeyRange tile_at(std::size_t begin, std::size_t num_keys) {
  return {begin, begin + kBc < num_keys ? begin + kBc : num_keys};
}

/// `range` (keys of the operand) cut to a tile and counted from its first key; {0, 0} where nothing is left.
constexpr KeyRange within_tile(KeyRange range, KeyRange tile) {
  const KeyRange cut = intersect(range, tile);
  return cut.empty() ? KeyRange{0, 0} : KeyRange{cut.begin - tile.begin, cut.end - tile.begin};
}

/// What some (`any`) and what all (`all`) of the rows may see.
struct RowsRange {
  KeyRange any;
  KeyRange all;
};

/// `key_begin`, `key_end` of `rows` rows; a row that sees nothing counts for `all` and not for `any`.
template <class Arch>
RowsRange range_of_rows(const std::size_t* key_begin, const std::size_t* key_end, std::size_t rows) {
  RowsRange range{{std::numeric_limits<std::size_t>::max(), 0}, {0, std::numeric_limits<std::size_t>::max()}};
  for (std::size_t r = 0; r < rows; ++r) {
    const KeyRange row{key_begin[r], key_end[r]};
    range.all = intersect(range.all, row);
    if (row.empty()) continue;
    range.any.begin = row.begin < range.any.begin ? row.begin : range.any.begin;
    range.any.end = row.end > range.any.end ? row.end : range.any.end;
  }
  if (range.any.empty()) range.any = {0, 0};
  return range;
}

/// Whether all rows see the same keys, as they do in a dense call.
inline bool rows_are_alike(const std::size_t* key_begin, const std::size_t* key_end, std::size_t rows) {
  std::size_t differences = 0;
  for (std::size_t r = 1; r < rows; ++r) differences |= (key_begin[r] ^ key_begin[0]) | (key_end[r] ^ key_end[0]);
  return differences == 0;
}

/// Writes -infinity over the scores of keys [keys.begin, keys.end) of a tile that a row of the panel does not see.
/// scores is [key][row]; the tile's key 0 is key `tile_begin` of the operand.
template <class Arch>
SDPA_NOINLINE void mask_outside(const std::size_t* key_begin, const std::size_t* key_end, const Panel& panel,
                                std::size_t tile_begin, KeyRange keys, float* scores) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  constexpr std::size_t kPanel = kNr * kW;
  // Bounds relative to the tile are small integers, exact as float32.
  float low[kPanel];
  float high[kPanel];
  for (std::size_t r = 0; r < kPanel; ++r) {
    const KeyRange row = r < panel.rows ? KeyRange{key_begin[panel.first + r], key_end[panel.first + r]}
                                        : KeyRange{tile_begin, tile_begin + kBc};
    const auto relative = [&](std::size_t key) {
      return static_cast<float>(key <= tile_begin ? 0 : (key - tile_begin < kBc ? key - tile_begin : kBc));
    };
    low[r] = row.empty() ? static_cast<float>(kBc) : relative(row.begin);
    high[r] = row.empty() ? 0.0F : relative(row.end);
  }
  const auto masked = simd::splat<Arch>(kMasked);
  for (std::size_t v = 0; v < panel.vectors; ++v) {
    const auto lo = simd::load<Arch>(low + v * kW);
    const auto hi = simd::load<Arch>(high + v * kW);
    float* s = scores + keys.begin * kScoreStride<Arch> + v * kW;
    for (std::size_t j = keys.begin; j < keys.end; ++j, s += kScoreStride<Arch>) {
      const auto key = simd::splat<Arch>(static_cast<float>(j));
      simd::store<Arch>(s, xsimd::select((key >= lo) & (key < hi), simd::load<Arch>(s), masked));
    }
  }
}

}  // namespace sdpa::kernels
