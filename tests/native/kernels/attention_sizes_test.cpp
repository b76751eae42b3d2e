// Sizes: each dimension around the bounds of vectors, register tiles and blocks, and small sizes without a gap.
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "support/kernels.hpp"

namespace sdpa::testing {
namespace {

class AttentionSizes : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, AttentionSizes, ::testing::ValuesIn(every_kernel()), kernel_name);

// 1, tile - 1, tile, tile + 1, 2 * tile.
std::set<std::size_t> around(std::size_t tile) { return {1, tile - 1, tile, tile + 1, 2 * tile}; }

TEST_P(AttentionSizes, QueriesAndKeysAroundTheTile) {
  for (const std::size_t queries : around(table().rows_per_block)) {
    for (const std::size_t keys : around(table().keys_per_tile)) {
      expect_matches_reference(make_problem({.seqlen_q = queries, .seqlen_kv = keys, .head_dim = 8}));
      expect_matches_reference(make_causal({.seqlen_q = queries, .seqlen_kv = keys, .head_dim = 8}));
    }
  }
}

TEST_P(AttentionSizes, QueriesAroundOneAndTwoVectors) {
  for (const std::size_t tile : {table().width, 2 * table().width}) {
    for (const std::size_t queries : around(tile)) {
      for (const std::size_t head_dim : around(table().width)) {
        expect_matches_reference(make_problem({.seqlen_q = queries, .seqlen_kv = 37, .head_dim = head_dim}));
      }
    }
  }
}

TEST_P(AttentionSizes, HeadSizesAroundVectorsApartForKeysAndValues) {
  std::set<std::size_t> sizes = around(table().width);
  sizes.merge(around(2 * table().width));
  for (const std::size_t head_dim : sizes) {
    for (const std::size_t head_dim_v : sizes) {
      expect_matches_reference(
          make_problem({.seqlen_q = 9, .seqlen_kv = 21, .head_dim = head_dim, .head_dim_v = head_dim_v}));
    }
  }
}

TEST_P(AttentionSizes, HeadSizesOfTheField) {
  for (const std::size_t head_dim : {32, 40, 59, 64, 80, 96, 111, 128, 160, 192, 203, 224, 256, 512}) {
    expect_matches_reference(make_causal({.seqlen_q = 50, .seqlen_kv = 99, .head_dim = head_dim}));
  }
}

TEST_P(AttentionSizes, LengthPairsOfTheField) {
  for (const auto& [queries, keys] : {std::pair{1, 239},
                                      {3, 799},
                                      {113, 203},
                                      {128, 217},
                                      {113, 211},
                                      {108, 256},
                                      {256, 512},
                                      {127, 513},
                                      {255, 256}}) {
    const auto q = static_cast<std::size_t>(queries);
    const auto k = static_cast<std::size_t>(keys);
    expect_matches_reference(make_causal({.seqlen_q = q, .seqlen_kv = k, .head_dim = 24}));
    expect_matches_reference(make_causal({.seqlen_q = k, .seqlen_kv = q, .head_dim = 24}));
  }
}

TEST_P(AttentionSizes, EveryHeadSizeTo40WithEveryKeyCountTo130) {
  for (std::size_t head_dim = 1; head_dim <= 40; ++head_dim) {
    for (std::size_t keys = 0; keys <= 130; ++keys) {
      const std::size_t queries = 1 + (head_dim + keys) % 7;
      expect_matches_reference(make_problem({.seqlen_q = queries, .seqlen_kv = keys, .head_dim = head_dim}));
    }
    if (HasFailure()) break;
  }
}

TEST_P(AttentionSizes, EveryQueryCountTo130) {
  for (std::size_t queries = 0; queries <= 130; ++queries) {
    expect_matches_reference(make_causal({.seqlen_q = queries, .seqlen_kv = 35, .head_dim = 5}));
  }
}

TEST_P(AttentionSizes, EveryValueHeadSizeTo40) {
  for (std::size_t head_dim_v = 1; head_dim_v <= 40; ++head_dim_v) {
    expect_matches_reference(make_problem({.seqlen_q = 7, .seqlen_kv = 35, .head_dim = 5, .head_dim_v = head_dim_v}));
  }
}

TEST_P(AttentionSizes, VeryLargeHeadSizes) {
  expect_matches_reference(make_problem({.seqlen_q = 2, .seqlen_kv = 3, .head_dim = 16384, .head_dim_v = 1}));
  expect_matches_reference(make_problem({.seqlen_q = 2, .seqlen_kv = 3, .head_dim = 1, .head_dim_v = 16384}));
}

TEST_P(AttentionSizes, ManyBatchesAndHeads) {
  expect_matches_reference(
      make_problem({.seqlen_q = 2, .seqlen_kv = 3, .head_dim = 2, .batch = 65, .num_heads = 9, .num_kv_heads = 3}));
}

}  // namespace
}  // namespace sdpa::testing
