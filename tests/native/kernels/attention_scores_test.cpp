// The stages of the scores.
#include <array>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "support/kernels.hpp"

namespace sdpa::testing {
namespace {

constexpr std::array kStages{ScoresStage::kScaled, ScoresStage::kCapped, ScoresStage::kBiased, ScoresStage::kWeights};

class AttentionScores : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, AttentionScores, ::testing::ValuesIn(every_kernel()), kernel_name);

TEST_P(AttentionScores, EveryStageWithEveryOption) {
  for (std::uint64_t seed = 301; seed <= 340; ++seed) {
    const Problem p = random_problem(seed);
    for (const ScoresStage stage : kStages) expect_matches_reference(p, {.scores_stage = stage});
    if (HasFailure()) break;
  }
}

TEST_P(AttentionScores, EveryStageAroundTheTile) {
  for (const std::size_t keys :
       {table().keys_per_tile - 1, table().keys_per_tile, table().keys_per_tile + 1, 2 * table().keys_per_tile}) {
    for (const std::size_t queries : {std::size_t{1}, table().rows_per_block, table().rows_per_block + 1}) {
      for (const ScoresStage stage : kStages) {
        expect_matches_reference(make_causal({.seqlen_q = queries, .seqlen_kv = keys, .head_dim = 6}),
                                 {.scores_stage = stage});
      }
    }
  }
}

TEST_P(AttentionScores, RawStagesCoverPairsThatTakeNoPart) {
  Problem p = make_causal({.seqlen_q = 3, .seqlen_kv = 3, .head_dim = 1});
  p.query = {1, 2, 3};
  p.key = {1, 10, 100};
  p.scale = 1.0F;
  const Actual actual = run(p, {.scores_stage = ScoresStage::kScaled});
  const std::vector<float> expected{1, 10, 100, 2, 20, 200, 3, 30, 300};
  ASSERT_EQ(actual.scores.size(), expected.size());
  for (std::size_t n = 0; n < 9; ++n) EXPECT_NEAR(actual.scores[n], expected[n], 1e-6 * expected[n]);
}

TEST_P(AttentionScores, CappedEqualsScaledWhereThereIsNoCap) {
  const Problem p = make_problem({.seqlen_q = 50, .seqlen_kv = 100, .head_dim = 8});
  EXPECT_TRUE(same_bits(run(p, {.scores_stage = ScoresStage::kScaled}).scores,
                        run(p, {.scores_stage = ScoresStage::kCapped}).scores));
}

TEST_P(AttentionScores, MaskedCellsAreMinusInfinityAndHaveNoWeight) {
  Random random(9);
  Problem p = make_problem({.seqlen_q = 50, .seqlen_kv = 100, .head_dim = 8});
  p.mask = random_mask(random, {1, 1, 50, 100}, 0.5);
  const std::vector<float> biased = run(p, {.scores_stage = ScoresStage::kBiased}).scores;
  const std::vector<float> weights = run(p, {.scores_stage = ScoresStage::kWeights}).scores;
  for (std::size_t n = 0; n < biased.size(); ++n) {
    EXPECT_EQ(biased[n] == -std::numeric_limits<float>::infinity(), p.mask.data[n] == 0);
    EXPECT_EQ(weights[n] == 0, p.mask.data[n] == 0);
  }
}

TEST_P(AttentionScores, NothingOfAnExcludedKeyReachesTheMaskedStages) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  Problem p = make_problem({.seqlen_q = 50, .seqlen_kv = 100, .head_dim = 8});
  p.kv_lengths = {70};
  for (const ScoresStage stage : {ScoresStage::kBiased, ScoresStage::kWeights}) {
    const Actual before = run(p, {.scores_stage = stage});
    Problem poisoned = p;
    std::fill(poisoned.key.begin() + 70 * 8, poisoned.key.end(), kNan);
    std::fill(poisoned.value.begin() + 70 * 8, poisoned.value.end(), kNan);
    const Actual after = run(poisoned, {.scores_stage = stage});
    EXPECT_TRUE(same_bits(before.scores, after.scores));
    EXPECT_TRUE(same_bits(before.out, after.out));
  }
}

TEST_P(AttentionScores, RawScoresOfGarbageDoNotReachTheOutput) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  Problem p = make_problem({.seqlen_q = 50, .seqlen_kv = 100, .head_dim = 8});
  p.kv_lengths = {70};
  const Actual before = run(p);
  std::fill(p.key.begin() + 70 * 8, p.key.end(), kNan);
  std::fill(p.value.begin() + 70 * 8, p.value.end(), kNan);
  for (const ScoresStage stage : {ScoresStage::kScaled, ScoresStage::kCapped}) {
    const Actual after = run(p, {.scores_stage = stage});
    EXPECT_TRUE(same_bits(before.out, after.out));
    EXPECT_TRUE(std::isnan(after.scores[99]));
  }
}

}  // namespace
}  // namespace sdpa::testing
