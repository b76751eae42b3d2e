// Philox 4x32-10, the counter-based generator of Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as
// 1, 2, 3" (SC 2011): ten rounds of two multiplications that mix a counter under a key. Equal counters and keys give
// equal numbers, and nothing else does anything to them.
#pragma once

#include <array>
#include <cstdint>

namespace sdpa::reference {

inline std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    if (round > 0) {
      key[0] += 0x9E3779B9;  // the golden ratio
      key[1] += 0xBB67AE85;  // the root of 3, less 1
    }
    const std::uint64_t first = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57} * counter[2];
    const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
    const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
    counter = {high(second) ^ counter[1] ^ key[0], low(second), high(first) ^ counter[3] ^ key[1], low(first)};
  }
  return counter;
}

}  // namespace sdpa::reference
