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

struct PhiloxWords {
  std::uint32_t word[4];
};

SDPA_INLINE PhiloxWords philox_4x32_10(PhiloxWords c, std::uint32_t k0, std::uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53U} * c.word[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57U} * c.word[2];
    c = {{static_cast<std::uint32_t>(p1 >> 32) ^ c.word[1] ^ k0, static_cast<std::uint32_t>(p1),
          static_cast<std::uint32_t>(p0 >> 32) ^ c.word[3] ^ k1, static_cast<std::uint32_t>(p0)}};
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
  const DropoutCells& dropout = block.dropout;
  for (std::size_t r = 0; r < panel.rows; ++r) {
    const std::size_t row = panel.first + r;
    const std::uint32_t i = dropout.row + static_cast<std::uint32_t>(block.row_of(row));
    const std::uint32_t h = dropout.head + static_cast<std::uint32_t>(block.head_of(row));
    for (std::size_t j = keys.begin; j < keys.end;) {
      const std::size_t key = tile_begin + j;
      const PhiloxWords words = philox_4x32_10({{static_cast<std::uint32_t>(key / 4), i, h, dropout.batch}},
                                               dropout.seed_low, dropout.seed_high);
      for (std::size_t w = key % 4; w < 4 && j < keys.end; ++w, ++j) {
        if (words.word[w] < dropout.threshold) weights[j * kScoreStride<Arch> + r] = 0.0F;
      }
    }
  }
}

}  // namespace sdpa::kernels
