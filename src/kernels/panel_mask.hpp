// What is excluded of a panel's cells, a bit a cell, from whatever source: see cells.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/mask.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

enum class Coverage : std::uint8_t { kEmpty, kPartial, kFull };

inline constexpr std::size_t kWordBits = 32;
inline constexpr std::size_t kMaskWords = kBc / kWordBits;
static_assert(kBc % kWordBits == 0);

/// Bit k of word[w][r]: row r of the panel may see key 32 w + k of the tile.
template <class Arch>
struct PanelMask {
  std::uint32_t word[kMaskWords][kNr * simd::kWidth<Arch>];
};

/// Bit k of the answer: key 32 w + k of the tile lies in `keys`.
constexpr std::uint32_t range_bits(KeyRange keys, std::size_t w) {
  const std::size_t first = w * kWordBits;
  const std::size_t begin = keys.begin > first ? keys.begin - first : 0;
  const std::size_t end = keys.end > first ? keys.end - first : 0;
  if (begin >= end || begin >= kWordBits) return 0;
  const std::uint32_t below = end >= kWordBits ? ~std::uint32_t{0} : (std::uint32_t{1} << end) - 1;
  return below & (~std::uint32_t{0} << begin);
}

/// Writes -infinity over the scores [key][row] of keys that the mask excludes.
template <class Arch>
SDPA_NOINLINE void apply_panel_mask(const PanelMask<Arch>& mask, KeyRange keys, std::size_t vectors, float* scores) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const auto masked = simd::splat<Arch>(kMasked);
  for (std::size_t v = 0; v < vectors; ++v) {
    for (std::size_t j = keys.begin; j < keys.end;) {
      const std::size_t w = j / kWordBits;
      const std::size_t end = (w + 1) * kWordBits < keys.end ? (w + 1) * kWordBits : keys.end;
      auto bits = simd::load_bits<Arch>(mask.word[w] + v * kW) >> static_cast<int>(j % kWordBits);
      float* s = scores + j * kScoreStride<Arch> + v * kW;
      for (; j < end; ++j, s += kScoreStride<Arch>) {
        simd::store<Arch>(s, simd::select_by_lowest_bit<Arch>(bits, simd::load<Arch>(s), masked));
        bits = bits >> 1;
      }
    }
  }
}

}  // namespace sdpa::kernels
