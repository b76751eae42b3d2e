// Which keys take part: intervals per row (everything that follows from positions and lengths) and an explicit tile
// (boolean mask and bias). Masking selects, it never adds: whatever stands behind an excluded cell cannot reach the
// result.
//
// A tile is skipped (no row sees a key of it: never read), full (no mask code runs) or partial. Within a partial tile
// only the keys at which the rows of a panel differ are touched.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

#include "kernels/kernel_table.hpp"
#include "kernels/pack.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

inline constexpr float kMasked = -std::numeric_limits<float>::infinity();

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

/// Writes -infinity over the scores of keys [keys.begin, keys.end) of a tile that a row of the panel does not see.
/// scores is [key][row]; the tile's key 0 is key `tile_begin` of the operand.
template <class Arch>
SDPA_NOINLINE void mask_outside(const std::size_t* key_begin, const std::size_t* key_end, std::size_t rows,
                                std::size_t tile_begin, KeyRange keys, float* scores) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  constexpr std::size_t kPanel = kNr * kW;
  // Bounds relative to the tile are small integers, exact as float32.
  float low[kPanel];
  float high[kPanel];
  for (std::size_t r = 0; r < kPanel; ++r) {
    const KeyRange row = r < rows ? KeyRange{key_begin[r], key_end[r]} : KeyRange{tile_begin, tile_begin + kBc};
    const auto relative = [&](std::size_t key) {
      return static_cast<float>(key <= tile_begin ? 0 : (key - tile_begin < kBc ? key - tile_begin : kBc));
    };
    low[r] = row.empty() ? static_cast<float>(kBc) : relative(row.begin);
    high[r] = row.empty() ? 0.0F : relative(row.end);
  }
  const auto masked = simd::splat<Arch>(kMasked);
  for (std::size_t v = 0; v < kNr; ++v) {
    const auto lo = simd::load<Arch>(low + v * kW);
    const auto hi = simd::load<Arch>(high + v * kW);
    float* s = scores + keys.begin * kScoreStride<Arch> + v * kW;
    for (std::size_t j = keys.begin; j < keys.end; ++j, s += kScoreStride<Arch>) {
      const auto key = simd::splat<Arch>(static_cast<float>(j));
      simd::store<Arch>(s, xsimd::select((key >= lo) & (key < hi), simd::load<Arch>(s), masked));
    }
  }
}

/// The explicit tile [key][row] of keys [tile_begin + keys.begin, tile_begin + keys.end): the bias, -infinity where the
/// mask excludes the key. Rows beyond the block up to a whole panel are 0.
template <class Arch>
SDPA_NOINLINE void build_explicit_tile(const AttentionBlock& block, std::size_t tile_begin, KeyRange keys,
                                       float* tile) {
  constexpr std::size_t kStride = kScoreStride<Arch>;
  const auto& mask = block.mask;
  const auto& bias = block.bias;
  for (std::size_t r = 0; r < kStride; ++r) {
    float* to = tile + keys.begin * kStride + r;
    if (r >= block.rows) {
      for (std::size_t j = keys.begin; j < keys.end; ++j, to += kStride) *to = 0.0F;
      continue;
    }
    std::size_t bias_index = r * bias.row_stride + (tile_begin + keys.begin) * bias.column_stride;
    std::size_t mask_index = r * mask.row_stride + (tile_begin + keys.begin) * mask.column_stride;
    for (std::size_t j = keys.begin; j < keys.end; ++j, to += kStride) {
      float x = 0.0F;
      if (bias.data != nullptr) x = read_element(bias.data, block.bias_dtype, bias_index);
      if (mask.data != nullptr && mask.data[mask_index] == 0) x = kMasked;
      *to = x;
      bias_index += bias.column_stride;
      mask_index += mask.column_stride;
    }
  }
}

/// scores = scores + tile, and -infinity where the tile is -infinity whatever the score.
template <class Arch>
SDPA_NOINLINE void apply_explicit_tile(const float* tile, KeyRange keys, float* scores) {
  constexpr std::size_t kStride = kScoreStride<Arch>;
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const auto masked = simd::splat<Arch>(kMasked);
  for (std::size_t j = keys.begin; j < keys.end; ++j) {
    for (std::size_t v = 0; v < kNr; ++v) {
      const auto x = simd::load<Arch>(tile + j * kStride + v * kW);
      float* s = scores + j * kStride + v * kW;
      simd::store<Arch>(s, xsimd::select(x == masked, masked, simd::load<Arch>(s) + x));
    }
  }
}

}  // namespace sdpa::kernels
