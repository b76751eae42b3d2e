// Sizes of the register tiles and of the blocks, per instruction set.
//
// A register tile holds kMr rows (keys in QK, queries in PV) times kNr = 2 vectors. It needs kMr * 2 accumulators, two
// vectors of the streamed operand and one splat, and where multiply-add is two instructions one more for the product.
#pragma once

#include <cstddef>
#include <type_traits>

#include "kernels/kernel_table.hpp"
#include "simd/simd.hpp"

namespace sdpa::kernels {

inline constexpr std::size_t kNr = 2;  // vectors of a register tile

// Keys of a tile. Row results depend on it (the running maximum moves at tile borders), so it is one number for every
// call of a build: a row then has the same bits however the rows are split. 96 keys of 64 floats are 24 KiB, half of
// the first-level cache; anything from 32 to 256 measured equal.
inline constexpr std::size_t kBc = 96;

// Keys of a register tile whose panel is a single vector of queries: eight independent chains hide the latency.
inline constexpr std::size_t kMrSingle = 8;

// Steps of its inner loop at once: there registers are left.
template <class Arch>
inline constexpr std::size_t kSingleUnroll = 4;
template <>
inline constexpr std::size_t kSingleUnroll<simd::Scalar> = 1;

template <class Arch>
struct TileSize {
  static constexpr std::size_t kMr =
      Arch::kFused ? 6 : 4;               // V8 leaves 15 of 16 x86 registers: 12 + 2 + 1, or 8 + 2 + 1 + 1
  static constexpr std::size_t kBr = 64;  // room for a 7x7 window and a block mask's tile; K, V are read once per block
};

// Without vectors every lane is a register of its own.
template <>
struct TileSize<simd::Scalar> {
  static constexpr std::size_t kMr = 2;
  static constexpr std::size_t kBr = 64;
};

template <>
struct TileSize<simd::Avx512> {
  static constexpr std::size_t kMr = 12;  // 24 + 2 + 1 of 32 registers
  static constexpr std::size_t kBr = 128;
};

template <>
struct TileSize<simd::Neon64> {
  static constexpr std::size_t kMr = 8;  // 16 + 2 + 1 of 32 registers
  static constexpr std::size_t kBr = 64;
};

// Keys a multiple of 256 bytes apart would share a few sets of the first-level cache: a vector more spreads them.
constexpr std::size_t score_stride(std::size_t rows, std::size_t width) { return rows % 64 == 0 ? rows + width : rows; }

// Floats between two keys of a score tile [key][row]: a constant, so that a register tile stores with immediate
// offsets.
template <class Arch>
inline constexpr std::size_t kScoreStride = score_stride(round_up(TileSize<Arch>::kBr, kNr* simd::kWidth<Arch>),
                                                         simd::kWidth<Arch>);

// Columns of the accumulator that lie together, [column block][row][kColumnBlock], for the same reason.
template <class Arch>
inline constexpr std::size_t kColumnBlock = kNr* simd::kWidth<Arch>;

/// Floats of a row of the packed last columns of an operand; 0 where its columns are whole blocks.
template <class Arch>
constexpr std::size_t tail_stride(std::size_t columns) {
  return columns % kColumnBlock<Arch> == 0 ? 0 : kColumnBlock<Arch>;
}

/// Cuts a workspace into pieces that start at multiples of 64 bytes; without memory it only counts.
struct Pieces {
  float* base;
  std::size_t used = 0;  // floats

  float* take(std::size_t n) {
    float* piece = base == nullptr ? nullptr : base + used;
    used += round_up(n, 16);
    return piece;
  }
};

/// Rows that are computed side by side: two vectors of lanes, or one where no more are left.
struct Panel {
  std::size_t first;    // row of the block
  std::size_t rows;     // of them in use
  std::size_t vectors;  // 1 or 2
};

template <class Arch>
constexpr Panel panel_at(std::size_t first, std::size_t block_rows) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const std::size_t left = block_rows - first;
  return {first, left < kNr * kW ? left : kNr * kW, left <= kW ? std::size_t{1} : kNr};
}

/// n rows as `tall` register tiles of `rows` rows and then `low` tiles of one row less. A full set and a rest of one
/// row would waste most of the last tile.
struct RowTiles {
  std::size_t rows = 0;
  std::size_t tall = 0;
  std::size_t low = 0;

  constexpr std::size_t count() const { return tall + low; }
  constexpr std::size_t rows_of(std::size_t tile) const { return tile < tall ? rows : rows - 1; }
};

template <std::size_t kMax>
constexpr RowTiles split_rows(std::size_t n) {
  if (n == 0) return {};
  const std::size_t tiles = (n + kMax - 1) / kMax;
  const std::size_t base = n / tiles;
  const std::size_t larger = n % tiles;
  return larger == 0 ? RowTiles{base, tiles, 0} : RowTiles{base + 1, larger, tiles - larger};
}

/// Calls f(std::integral_constant<std::size_t, n>) for 1 <= n <= kMax.
template <std::size_t kMax, class F>
SDPA_INLINE void with_constant(std::size_t n, F&& f) {
  if constexpr (kMax > 1) {
    if (n < kMax) return with_constant<kMax - 1>(n, f);
  }
  f(std::integral_constant<std::size_t, kMax>{});
}

}  // namespace sdpa::kernels
