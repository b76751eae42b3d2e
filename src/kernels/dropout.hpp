// Dropout of the softmax's weights (Srivastava et al. 2014), with a counter-based generator: Philox 4x32-10 of Salmon,
// Moraes, Dror & Shaw (2011), numbered by the cell, so that the same seed drops the same cells whatever the tiling, the
// thread or the pass.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.hpp"
#include "kernels/mask.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

/// Four words for each lane.
template <class Arch>
struct PhiloxWords {
  simd::Bits<Arch> word[4];
};

template <class Arch>
SDPA_INLINE PhiloxWords<Arch> philox_4x32_10(PhiloxWords<Arch> c, std::uint32_t k0, std::uint32_t k1) {
  using Bits = simd::Bits<Arch>;
  for (int round = 0; round < 10; ++round) {
    const auto p0 = simd::multiply_wide<Arch>(c.word[0], 0xD2511F53U);
    const auto p1 = simd::multiply_wide<Arch>(c.word[2], 0xCD9E8D57U);
    c = {{p1.high ^ c.word[1] ^ Bits(static_cast<std::int32_t>(k0)), p1.low,
          p0.high ^ c.word[3] ^ Bits(static_cast<std::int32_t>(k1)), p0.low}};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return c;
}

/// Sets the weights [key][row] of dropped cells at `keys` of the tile to 0. The factor of the kept ones is one of the
/// whole row and waits for its end.
template <class Arch>
SDPA_NOINLINE void apply_dropout(const AttentionBlock& block, const Panel& panel, std::size_t tile_begin, KeyRange keys,
                                 float* weights) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  using Bits = simd::Bits<Arch>;
  const DropoutCells& dropout = block.dropout;
  // A threshold of 2^32 drops everything, which no word is below as 32 bits.
  const bool all = dropout.threshold > 0xFFFFFFFFU;
  const auto threshold = static_cast<std::uint32_t>(dropout.threshold);
  for (std::size_t v = 0; v < panel.vectors; ++v) {
    std::uint32_t row[kW];
    std::uint32_t head[kW];
    for (std::size_t l = 0; l < kW; ++l) {
      const std::size_t r = panel.first + v * kW + l;
      row[l] = dropout.row + static_cast<std::uint32_t>(block.row_of(r));
      head[l] = dropout.head + static_cast<std::uint32_t>(block.head_of(r));
    }
    const Bits rows = simd::load_bits<Arch>(row);
    const Bits heads = simd::load_bits<Arch>(head);
    const Bits batch(static_cast<std::int32_t>(dropout.batch));
    float* at = weights + keys.begin * kScoreStride<Arch> + v * kW;
    for (std::size_t j = keys.begin; j < keys.end;) {
      const std::size_t key = tile_begin + j;
      const Bits group(static_cast<std::int32_t>(key / 4));
      const auto words = philox_4x32_10<Arch>({{group, rows, heads, batch}}, dropout.seed_low, dropout.seed_high);
      for (std::size_t w = key % 4; w < 4 && j < keys.end; ++w, ++j, at += kScoreStride<Arch>) {
        const auto weight = simd::load<Arch>(at);
        simd::store<Arch>(at, all ? simd::splat<Arch>(0.0F) : simd::zero_below<Arch>(weight, words.word[w], threshold));
      }
    }
  }
}

}  // namespace sdpa::kernels
