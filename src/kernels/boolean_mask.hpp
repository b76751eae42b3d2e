// The boolean mask of a panel, a bit a cell.
//
// Read once per panel and tile, before the product: a panel whose cells are all excluded is skipped, one whose cells
// are all allowed runs the dense code, and only what is left selects score by score.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/kernel_table.hpp"
#include "kernels/mask.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

enum class Coverage : std::uint8_t { kEmpty, kPartial, kFull };

inline constexpr std::size_t kWordBits = 32;
inline constexpr std::size_t kMaskWords = kBc / kWordBits;
static_assert(kBc % kWordBits == 0);

/// Bit k of word[w][r]: row r of the panel may see key 32 w + k, counted from the first key that was asked for.
template <class Arch>
struct PanelMask {
  std::uint32_t word[kMaskWords][kNr * simd::kWidth<Arch>];
};

/// Bit k of the answer: byte k is not 0.
SDPA_INLINE std::uint32_t bits_of_bytes(const std::uint8_t* bytes) {
  std::uint64_t x;
  std::memcpy(&x, bytes, sizeof x);
  x |= x >> 4;
  x |= x >> 2;
  x |= x >> 1;
  x &= 0x0101010101010101U;
  return static_cast<std::uint32_t>((x * 0x0102040810204080U) >> 56);
}

/// Bits of keys [key, key + n), n <= 32, of one row of the mask.
inline std::uint32_t mask_word(const std::uint8_t* row, std::size_t column_stride, std::size_t key, std::size_t n) {
  std::uint32_t word = 0;
  std::size_t k = 0;
  if (column_stride == 1) {
    for (; k + 8 <= n; k += 8) word |= bits_of_bytes(row + key + k) << k;
  }
  for (; k < n; ++k) word |= static_cast<std::uint32_t>(row[(key + k) * column_stride] != 0) << k;
  return word;
}

/// The mask at keys [tile_begin + keys.begin, tile_begin + keys.end).
template <class Arch>
SDPA_NOINLINE Coverage read_panel_mask(const AttentionBlock& block, const Panel& panel, std::size_t tile_begin,
                                       KeyRange keys, PanelMask<Arch>& to) {
  const auto& mask = block.mask;
  std::uint32_t some = 0;
  std::uint32_t missing = 0;
  for (std::size_t r = 0; r < kNr * simd::kWidth<Arch>; ++r) {
    // Lanes beyond the block repeat its last row and are never read.
    const std::size_t row = panel.first + (r < panel.rows ? r : panel.rows - 1);
    const std::uint8_t* from = mask.data + block.row_offset(row, mask.head_stride, mask.row_stride);
    for (std::size_t w = 0, done = 0; done < keys.size(); ++w, done += kWordBits) {
      const std::size_t n = keys.size() - done < kWordBits ? keys.size() - done : kWordBits;
      const std::uint32_t word = mask_word(from, mask.column_stride, tile_begin + keys.begin + done, n);
      some |= word;
      missing |= word ^ (~std::uint32_t{0} >> (kWordBits - n));
      to.word[w][r] = word;
    }
  }
  return some == 0 ? Coverage::kEmpty : missing == 0 ? Coverage::kFull : Coverage::kPartial;
}

/// Writes -infinity over the scores [key][row] that the mask excludes.
template <class Arch>
SDPA_NOINLINE void apply_panel_mask(const PanelMask<Arch>& mask, KeyRange keys, std::size_t vectors, float* scores) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const auto masked = simd::splat<Arch>(kMasked);
  for (std::size_t v = 0; v < vectors; ++v) {
    float* s = scores + keys.begin * kScoreStride<Arch> + v * kW;
    for (std::size_t w = 0, left = keys.size(); left != 0; ++w) {
      const std::size_t n = left < kWordBits ? left : kWordBits;
      left -= n;
      auto bits = simd::load_bits<Arch>(mask.word[w] + v * kW);
      for (std::size_t k = 0; k < n; ++k, s += kScoreStride<Arch>) {
        simd::store<Arch>(s, simd::select_by_lowest_bit<Arch>(bits, simd::load<Arch>(s), masked));
        bits = bits >> 1;
      }
    }
  }
}

}  // namespace sdpa::kernels
