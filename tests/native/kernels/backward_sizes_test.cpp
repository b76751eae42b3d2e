// Gradients at every size that is the border of something, in every layout and storage type, and of random problems.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "support/gradients.hpp"
#include "support/storage16.hpp"

namespace sdpa::testing {
namespace {

class BackwardSizes : public KernelTest {
 protected:
  void expect_match(const Problem& p, const RunOptions& options = {}) const {
    expect_gradients_match(table(), p, random_upstream(p), options);
  }
  void expect_zeros(const std::vector<float>& values, std::size_t count) const {
    ASSERT_EQ(values.size(), count);
    for (const float value : values) ASSERT_EQ(value, 0.0F);
  }
};
INSTANTIATE_TEST_SUITE_P(, BackwardSizes, ::testing::ValuesIn(every_kernel()), kernel_name);

// 1 and the numbers around multiples of `tile`.
std::vector<std::size_t> around(std::size_t tile) { return {1, tile - 1, tile, tile + 1, 2 * tile, 2 * tile + 1}; }

TEST_P(BackwardSizes, LengthsOfQueriesAroundPanelsAndBlocks) {
  const std::size_t panel = 2 * table().width;
  for (const std::size_t tile : {panel, table().rows_per_block}) {
    for (const std::size_t rows : around(tile)) {
      expect_match(make_problem({.seqlen_q = rows, .seqlen_kv = 41, .head_dim = 6}));
      expect_match(make_causal({.seqlen_q = rows, .seqlen_kv = 41, .head_dim = 6}));
    }
  }
}

TEST_P(BackwardSizes, LengthsOfKeysAroundRegisterTilesAndTiles) {
  for (const std::size_t tile : {std::size_t{6}, table().keys_per_tile}) {
    for (const std::size_t keys : around(tile)) {
      expect_match(make_problem({.seqlen_q = 19, .seqlen_kv = keys, .head_dim = 6}));
      expect_match(make_causal({.seqlen_q = 19, .seqlen_kv = keys, .head_dim = 6}));
    }
  }
}

TEST_P(BackwardSizes, HeadSizesAroundVectorsAndUnlikeHeadSizes) {
  const std::size_t block = 2 * table().width;
  for (const std::size_t head_dim :
       {std::size_t{1}, std::size_t{2}, std::size_t{3}, table().width - 1, table().width, table().width + 1, block - 1,
        block, block + 1, std::size_t{64}, std::size_t{80}}) {
    for (const std::size_t head_dim_v : {head_dim, std::size_t{1}, block + 3}) {
      if (head_dim == 0) continue;
      expect_match(
          make_causal({.seqlen_q = 21, .seqlen_kv = 37, .head_dim = head_dim, .head_dim_v = head_dim_v, .batch = 2}));
    }
  }
}

TEST_P(BackwardSizes, HeadsThatShareKeysAddUpInTheKeysGradient) {
  for (const auto& [heads, kv_heads] : {std::pair{2, 1}, {6, 2}, {8, 8}, {3, 3}, {7, 1}}) {
    expect_match(make_causal({.seqlen_q = 60,
                              .seqlen_kv = 130,
                              .head_dim = 16,
                              .head_dim_v = 24,
                              .batch = 2,
                              .num_heads = static_cast<std::size_t>(heads),
                              .num_kv_heads = static_cast<std::size_t>(kv_heads)}));
  }
}

TEST_P(BackwardSizes, NoKeysGiveZeros) {
  Problem p = make_problem({.seqlen_q = 3, .seqlen_kv = 0, .head_dim = 4, .num_heads = 2, .num_kv_heads = 1});
  p.sinks.data = {1, 2};
  const Gradients<float> gradients = run_backward(table(), p, random_upstream(p));
  expect_zeros(gradients.query, 24);
  EXPECT_TRUE(gradients.key.empty());
  EXPECT_EQ(gradients.scale, 0.0F);
  expect_match(p);
}

TEST_P(BackwardSizes, NoQueriesGiveZeros) {
  Problem p = make_problem({.seqlen_q = 0, .seqlen_kv = 100, .head_dim = 4, .num_heads = 2, .num_kv_heads = 1});
  Random random(1);
  p.bias = random_bias(random, {1, 1, 1, 100});
  const Gradients<float> gradients = run_backward(table(), p, random_upstream(p));
  expect_zeros(gradients.key, 400);
  expect_zeros(gradients.value, 400);
  expect_zeros(gradients.bias, 100);
}

TEST_P(BackwardSizes, NoBatchOrNoHeadsLeaveNothingUnwritten) {
  Random random(1);
  Problem no_batch = make_problem({.seqlen_q = 3, .seqlen_kv = 5, .head_dim = 4, .batch = 0});
  no_batch.bias = random_bias(random, {1, 1, 3, 5});
  expect_zeros(run_backward(table(), no_batch, random_upstream(no_batch)).bias, 15);
  const Problem no_query_heads =
      make_problem({.seqlen_q = 3, .seqlen_kv = 5, .head_dim = 4, .num_heads = 0, .num_kv_heads = 2});
  expect_zeros(run_backward(table(), no_query_heads, random_upstream(no_query_heads)).key, 40);
  Problem no_heads = make_problem({.seqlen_q = 3, .seqlen_kv = 5, .head_dim = 4, .num_heads = 0, .num_kv_heads = 0});
  no_heads.bias = random_bias(random, {1, 1, 1, 5});
  expect_zeros(run_backward(table(), no_heads, random_upstream(no_heads)).bias, 5);
}

TEST_P(BackwardSizes, RandomProblemsInEveryLayoutAndStorageType) {
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    Problem p = random_problem(seed);
    Random random(seed);
    RunOptions options;
    options.placement = random.choose({Placement::kBhld, Placement::kBlhd, Placement::kScattered});
    const auto dtype = [&] { return random.choose({DType::kFloat32, DType::kFloat16, DType::kBFloat16}); };
    options.query_dtype = dtype();
    options.key_dtype = dtype();
    options.value_dtype = dtype();
    options.bias_dtype = dtype();
    round_to(p.query, options.query_dtype);
    round_to(p.key, options.key_dtype);
    round_to(p.value, options.value_dtype);
    round_to(p.bias.data, options.bias_dtype);
    expect_match(p, options);
    if (HasFailure()) break;
  }
}

TEST_P(BackwardSizes, ALongSequenceStaysAsExactAsAPlainComputation) {
  Problem p = make_causal({.seqlen_q = 300, .seqlen_kv = 1500, .head_dim = 64});
  expect_match(p);
}

}  // namespace
}  // namespace sdpa::testing
