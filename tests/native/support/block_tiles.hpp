// A dense mask as the library takes it: tiles of 64 x 64 cells, classified, and the bits of the partial ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sdpa/options.hpp"
#include "support/problems.hpp"

namespace sdpa::testing {

struct BlockTiles {
  std::vector<std::uint32_t> tiles;  // (batch, heads, row tiles, column tiles): 0 empty, 1 full, n + 2 partial tile n
  std::vector<std::uint32_t> bits;   // (partial tiles, 64, 2)
};

inline BlockTiles block_tiles(const Broadcast<std::uint8_t>& mask) {
  const auto [batch, heads, rows, columns] = mask.extents;
  BlockTiles result;
  for (std::size_t plane = 0; plane < batch * heads; ++plane) {
    const std::uint8_t* cells = mask.data.data() + plane * rows * columns;
    for (std::size_t i = 0; i < rows; i += kBlockMaskTile) {
      for (std::size_t j = 0; j < columns; j += kBlockMaskTile) {
        std::vector<std::uint32_t> words(2 * kBlockMaskTile, 0);
        std::size_t allowed = 0;
        std::size_t existing = 0;
        for (std::size_t r = 0; r < kBlockMaskTile && i + r < rows; ++r) {
          for (std::size_t k = 0; k < kBlockMaskTile && j + k < columns; ++k) {
            ++existing;
            if (cells[(i + r) * columns + j + k] == 0) continue;
            ++allowed;
            words[2 * r + k / 32] |= std::uint32_t{1} << (k % 32);
          }
        }
        if (allowed == 0 || allowed == existing) {
          result.tiles.push_back(allowed == 0 ? 0 : 1);
          continue;
        }
        result.tiles.push_back(static_cast<std::uint32_t>(result.bits.size() / words.size() + 2));
        result.bits.insert(result.bits.end(), words.begin(), words.end());
      }
    }
  }
  return result;
}

}  // namespace sdpa::testing
