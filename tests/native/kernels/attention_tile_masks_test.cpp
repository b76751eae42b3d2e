// Masks whose tiles are skipped, taken as a whole, or looked at cell by cell: dense ones that happen to be so, and
// block masks.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/block_tiles.hpp"
#include "support/kernels.hpp"

namespace sdpa::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class AttentionTileMasks : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, AttentionTileMasks, ::testing::ValuesIn(every_kernel()), kernel_name);

// Masks made of whole panels and tiles: allowed, excluded, or excluded but for one cell. The kernel skips what is
// excluded as a whole; whatever lies there must not matter, and what it skips first must not be taken for a result.
TEST_P(AttentionTileMasks, DenseMasksOfWholePanelsAndTiles) {
  const std::size_t tile = table().keys_per_tile;
  const std::size_t panel = 2 * table().width;
  const std::size_t queries = 3 * table().rows_per_block / 2;
  const std::size_t keys = 4 * tile + 5;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Problem p = make_problem({queries, keys, 20, 12}, seed);
    p.mask.extents = {1, 1, queries, keys};
    p.mask.data.resize(queries * keys);
    std::vector<bool> seen(keys, false);
    for (std::size_t i = 0; i < queries; i += panel) {
      for (std::size_t j = 0; j < keys; j += tile) {
        const auto kind = static_cast<int>(random.uniform() * 3);
        for (std::size_t r = i; r < std::min(queries, i + panel); ++r) {
          for (std::size_t k = j; k < std::min(keys, j + tile); ++k) {
            const bool exception = kind == 2 && r == i + seed % 3 && k == j + 7 * seed % tile;
            p.mask.data[r * keys + k] = kind == 0 || exception ? 1 : 0;
          }
        }
      }
    }
    for (std::size_t n = 0; n < p.mask.data.size(); ++n) {
      if (p.mask.data[n] != 0) seen[n % keys] = true;
    }
    for (std::size_t k = 0; k < keys; ++k) {
      if (seen[k]) continue;
      std::fill_n(p.key.begin() + static_cast<long>(k * 20), 20, kNan);
      std::fill_n(p.value.begin() + static_cast<long>(k * 12), 12, kNan);
    }
    expect_matches_reference(p);
  }
}

// Keys and values that no row sees become NaN.
void poison_unseen_keys(Problem& p) {
  const std::size_t group = p.num_heads / p.num_kv_heads;
  for (std::size_t head = 0; head < p.batch * p.num_kv_heads; ++head) {
    const std::size_t b = head / p.num_kv_heads;
    const std::size_t g = head % p.num_kv_heads;
    for (std::size_t j = 0; j < p.seqlen_kv; ++j) {
      bool seen = false;
      for (std::size_t row = 0; row < group * p.seqlen_q && !seen; ++row)
        seen = p.allowed(b, g * group + row / p.seqlen_q, row % p.seqlen_q, j);
      if (seen) continue;
      const auto at = static_cast<long>(head * p.seqlen_kv + j);
      std::fill_n(p.key.begin() + at * static_cast<long>(p.head_dim), p.head_dim, kNan);
      std::fill_n(p.value.begin() + at * static_cast<long>(p.head_dim_v), p.head_dim_v, kNan);
    }
  }
}

TEST_P(AttentionTileMasks, BlockMasksOfEverySizeAroundTheirTile) {
  for (const std::size_t rows : {1, 2, 3, 63, 64, 65, 130}) {
    for (const std::size_t keys : {1, 63, 64, 65, 127, 128, 129, 200, 321}) {
      Random random(rows * 1000 + keys);
      Problem p = make_problem({.seqlen_q = rows, .seqlen_kv = keys, .head_dim = 7, .num_heads = 2, .num_kv_heads = 2});
      p.block_mask = random_block_mask(random, {1, 2, rows, keys});
      poison_unseen_keys(p);
      expect_matches_reference(p);
    }
  }
}

TEST_P(AttentionTileMasks, BlockMasksOfEveryBroadcastShape) {
  for (const std::size_t rows : {1, 4, 70}) {
    for (int shape = 0; shape < 4; ++shape) {
      Random random(static_cast<std::uint64_t>(shape));
      Problem p = make_problem(
          {.seqlen_q = rows, .seqlen_kv = 150, .head_dim = 9, .batch = 2, .num_heads = 6, .num_kv_heads = 2});
      p.block_mask = random_block_mask(random, {(shape & 1) != 0 ? 2U : 1U, (shape & 2) != 0 ? 6U : 1U, rows, 150});
      poison_unseen_keys(p);
      expect_matches_reference(p);
    }
  }
}

TEST_P(AttentionTileMasks, ABlockMaskGivesTheBitsOfTheSameMaskWrittenOut) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Random random(seed);
    Problem blocks = make_problem({.seqlen_q = 150, .seqlen_kv = 400, .head_dim = 16}, seed);
    blocks.block_mask = random_block_mask(random, {1, 1, 150, 400});
    Problem dense = blocks;
    std::swap(dense.mask, dense.block_mask);
    const Actual a = run(blocks);
    const Actual b = run(dense);
    EXPECT_TRUE(same_bits(a.out, b.out)) << seed;
    EXPECT_TRUE(same_bits(a.lse, b.lse)) << seed;
  }
}

TEST_P(AttentionTileMasks, ABlockMaskOfFullTilesChangesNoBit) {
  for (const std::size_t rows : {1, 5, 130}) {
    Problem p = make_causal({.seqlen_q = rows, .seqlen_kv = 200, .head_dim = 11});
    const std::vector<float> plain = run(p).out;
    p.block_mask = {std::vector<std::uint8_t>(rows * 200, 1), {1, 1, rows, 200}};
    EXPECT_TRUE(same_bits(run(p).out, plain)) << rows;
  }
}

TEST_P(AttentionTileMasks, ABlockMaskOfEmptyTilesLeavesNothing) {
  for (const std::size_t rows : {1, 5, 130}) {
    Problem p = make_problem({.seqlen_q = rows, .seqlen_kv = 200, .head_dim = 11});
    p.block_mask = {std::vector<std::uint8_t>(rows * 200, 0), {1, 1, rows, 200}};
    std::fill(p.key.begin(), p.key.end(), kNan);
    std::fill(p.value.begin(), p.value.end(), kNan);
    expect_matches_reference(p);
  }
}

TEST_P(AttentionTileMasks, SingleBitsOfAPartialTileAreTheCellsThatTheySay) {
  // Each row sees exactly one key, so its output is that key's value.
  constexpr std::size_t kRows = 70;
  constexpr std::size_t kKeys = 131;
  Problem p = make_problem({.seqlen_q = kRows, .seqlen_kv = kKeys, .head_dim = 5, .head_dim_v = 1});
  for (std::size_t j = 0; j < kKeys; ++j) p.value[j] = static_cast<float>(j + 1);
  p.block_mask = {std::vector<std::uint8_t>(kRows * kKeys, 0), {1, 1, kRows, kKeys}};
  for (std::size_t i = 0; i < kRows; ++i) p.block_mask.data[i * kKeys + i * 37 % kKeys] = 1;
  const std::vector<float> out = run(p).out;
  for (std::size_t i = 0; i < kRows; ++i) EXPECT_EQ(out[i], static_cast<float>(i * 37 % kKeys + 1)) << i;
}

TEST_P(AttentionTileMasks, SharedPartialTilesMayStandInManyPlaces) {
  // The library may be given one set of bits for equal tiles: all diagonal tiles of a causal mask.
  constexpr std::size_t kLength = 192;
  Problem p = make_problem({.seqlen_q = kLength, .seqlen_kv = kLength, .head_dim = 8});
  p.causal = true;
  const Actual causal = run(p);
  p.causal = false;
  Arguments arguments(p, {});
  std::vector<std::uint32_t> bits;
  for (std::size_t r = 0; r < kBlockMaskTile; ++r) {
    const std::uint64_t row = r == 63 ? ~std::uint64_t{0} : (std::uint64_t{2} << r) - 1;
    bits.push_back(static_cast<std::uint32_t>(row));
    bits.push_back(static_cast<std::uint32_t>(row >> 32));
  }
  const std::vector<std::uint32_t> tiles{2, 0, 0, 1, 2, 0, 1, 1, 2};
  arguments.options.block_mask = {tiles.data(), bits.data(), 1, 1, kLength};
  ASSERT_TRUE(status_of(table(), arguments).ok());
  EXPECT_TRUE(same_bits(arguments.out(), causal.out));
  EXPECT_TRUE(same_bits(arguments.lse(), causal.lse));
}

TEST_P(AttentionTileMasks, BlockMasksComposeWithWhatElseExcludes) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Random random(seed);
    Problem p = make_causal(
        {.seqlen_q = 90, .seqlen_kv = 260, .head_dim = 12, .batch = 2, .num_heads = 2, .num_kv_heads = 1}, seed);
    p.block_mask = random_block_mask(random, {2, 2, 90, 260});
    p.kv_lengths = {250, 130};
    if (seed % 2 == 0) p.mask = random_mask(random, {1, 2, 90, 260}, 0.7);
    if (seed % 3 == 0) p.window_left = 100;
    if (seed % 4 == 0) p.global_keys = 70;
    poison_unseen_keys(p);
    expect_matches_reference(p);
  }
}

}  // namespace
}  // namespace sdpa::testing
