// Everything that excludes single cells, read into the bits of a panel before its product: a panel that sees nothing of
// a tile is skipped, one that sees the same keys in every row runs the dense code over them, and only what is left
// selects score by score.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/block_mask.hpp"
#include "kernels/boolean_mask.hpp"
#include "kernels/kernel_table.hpp"
#include "kernels/pack.hpp"
#include "kernels/panel_mask.hpp"

namespace sdpa::kernels {

/// Bit k of the answer: key k of the n <= 32 keys is of segment `id`.
inline std::uint32_t segment_word(const std::int32_t* keys, std::size_t n, std::int32_t id) {
  std::uint32_t word = 0;
  for (std::size_t k = 0; k < n; ++k) word |= static_cast<std::uint32_t>(keys[k] == id) << k;
  return word;
}

/// Keys of a tile that are of one segment. Rows that follow each other mostly ask for the same.
class SegmentWords {
 public:
  SegmentWords(const AttentionBlock& block, KeyRange tile) : block_(block), tile_(tile) {}

  std::uint32_t word(std::size_t row, std::size_t w) {
    const std::int32_t id = block_.query_segments[block_.row_of(row)];
    if (!known_ || id != id_) {
      for (std::size_t k = 0; k * kWordBits < tile_.size(); ++k) {
        const std::size_t first = tile_.begin + k * kWordBits;
        const std::size_t n = tile_.end - first < kWordBits ? tile_.end - first : kWordBits;
        words_[k] = segment_word(block_.key_segments + first, n, id);
      }
      id_ = id;
      known_ = true;
    }
    return words_[w];
  }

 private:
  const AttentionBlock& block_;
  KeyRange tile_;
  std::uint32_t words_[kMaskWords] = {};
  std::int32_t id_ = 0;
  bool known_ = false;
};

/// Keys [key, key + n) of `word` that the masks leave; `key` is a multiple of 32.
inline std::uint32_t unmasked_word(const AttentionBlock& block, std::size_t row, std::size_t key, std::size_t n,
                                   std::uint32_t word) {
  const auto& mask = block.mask;
  if (block.block_mask.tiles != nullptr && word != 0) word &= block_mask_word(block, row, key);
  if (mask.data != nullptr && word != 0) {
    const std::uint8_t* from = mask.data + block.row_offset(row, mask.head_stride, mask.row_stride);
    word &= mask_word(from, mask.column_stride, key, n);
  }
  return word;
}

/// The cells of a panel at `keys` of the tile, what the rows' intervals exclude included; `all` is what every row sees
/// by its interval. `keys` shrinks to what some row sees. `to` is for where the answer is kPartial.
template <class Arch>
SDPA_NOINLINE Coverage read_cells(const AttentionBlock& block, const Panel& panel, KeyRange tile, KeyRange all,
                                  KeyRange& keys, PanelMask<Arch>& to) {
  std::uint32_t some[kMaskWords] = {};
  std::uint32_t every[kMaskWords];
  for (auto& word : every) word = ~std::uint32_t{0};
  const KeyRange lost = within_tile({block.lost_begin, block.lost_end}, tile);
  const std::size_t words = (keys.end + kWordBits - 1) / kWordBits;
  SegmentWords segments(block, tile);
  // Mostly every row sees the same by its interval, and there is no hole.
  const bool alike = all.begin <= keys.begin && all.end >= keys.end && block.hole_begin == nullptr && lost.empty();
  std::uint32_t interval[kMaskWords];
  for (std::size_t w = 0; w < words; ++w) interval[w] = range_bits(keys, w);
  // Whole tiles of a block mask exclude the same to every row, and what is left of two of them has no gap, so that the
  // first row tells all and no word of the others is asked for.
  const bool one_tells =
      alike && panel_sees_whole_tiles(block, panel, {tile.begin + keys.begin, tile.begin + keys.end});
  static_assert(kBc <= kMaskTile + kWordBits);
  const std::size_t rows = one_tells ? 1 : panel.vectors * simd::kWidth<Arch>;
  for (std::size_t r = 0; r < rows; ++r) {
    // Lanes beyond the block repeat its last row and are never read.
    const std::size_t row = panel.first + (r < panel.rows ? r : panel.rows - 1);
    if (!alike) {
      const KeyRange seen = within_tile({block.key_begin[row], block.key_end[row]}, tile);
      const KeyRange hole =
          block.hole_begin == nullptr ? KeyRange{} : within_tile({block.hole_begin[row], block.hole_end[row]}, tile);
      for (std::size_t w = 0; w < words; ++w) {
        interval[w] = range_bits(seen, w) & ~range_bits(hole, w) & ~range_bits(lost, w);
      }
    }
    for (std::size_t w = keys.begin / kWordBits; w < words; ++w) {
      const std::size_t key = tile.begin + w * kWordBits;
      const std::size_t n = tile.end - key < kWordBits ? tile.end - key : kWordBits;
      std::uint32_t word = interval[w];
      if (block.query_segments != nullptr) word &= segments.word(row, w);
      word = unmasked_word(block, row, key, n, word);
      to.word[w][r] = word;
      some[w] |= word;
      every[w] &= word;
    }
  }
  KeyRange left{kBc, 0};
  for (std::size_t w = keys.begin / kWordBits; w < words; ++w) {
    if (some[w] == 0) continue;
    if (left.begin == kBc) left.begin = w * kWordBits + static_cast<std::size_t>(std::countr_zero(some[w]));
    left.end = (w + 1) * kWordBits - static_cast<std::size_t>(std::countl_zero(some[w]));
  }
  keys = left.end == 0 ? KeyRange{} : left;
  if (keys.empty()) return Coverage::kEmpty;
  for (std::size_t w = keys.begin / kWordBits; w * kWordBits < keys.end; ++w) {
    if (every[w] != range_bits(keys, w)) return Coverage::kPartial;
  }
  return Coverage::kFull;
}

/// Whether row `row` of the block may see key `key`, which lies in its interval.
inline bool is_allowed(const AttentionBlock& block, std::size_t row, std::size_t key) {
  if (block.hole_begin != nullptr && key >= block.hole_begin[row] && key < block.hole_end[row]) return false;
  if (key >= block.lost_begin && key < block.lost_end) return false;
  if (block.query_segments != nullptr && block.key_segments[key] != block.query_segments[block.row_of(row)]) {
    return false;
  }
  const std::size_t first = key / kWordBits * kWordBits;
  const std::uint32_t bit = std::uint32_t{1} << (key - first);
  if (unmasked_word(block, row, first, key - first + 1, bit) == 0) return false;
  const auto& bias = block.bias;
  return bias.data == nullptr ||
         read_element(bias.data, block.bias_dtype,
                      block.row_offset(row, bias.head_stride, bias.row_stride) + key * bias.column_stride) != kMasked;
}

/// Whether holes or the block mask leave nothing of a tile to any row of the block.
inline bool excludes_tile(const AttentionBlock& block, KeyRange tile, KeyRange common_hole) {
  if (tile.begin >= common_hole.begin && tile.end <= common_hole.end) return true;
  if (tile.begin >= block.lost_begin && tile.end <= block.lost_end) return true;
  return block.block_mask.tiles != nullptr && block_mask_is_empty(block, tile);
}

/// Whether a hole of the block's only row lies in the tile.
inline bool meets_hole(const AttentionBlock& block, KeyRange tile) {
  if (!intersect(tile, {block.lost_begin, block.lost_end}).empty()) return true;
  return block.hole_begin != nullptr && !intersect(tile, {block.hole_begin[0], block.hole_end[0]}).empty();
}

/// What the holes of all rows that see anything have in common.
inline KeyRange common_hole(const AttentionBlock& block) {
  KeyRange common{};
  if (block.hole_begin == nullptr) return common;
  bool first = true;
  for (std::size_t r = 0; r < block.rows; ++r) {
    if (block.key_begin[r] >= block.key_end[r]) continue;
    const KeyRange hole{block.hole_begin[r], block.hole_end[r]};
    common = first ? hole : intersect(common, hole);
    first = false;
  }
  return common;
}

}  // namespace sdpa::kernels
