// Numbers at the ends of their range.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "support/kernels.hpp"

namespace sdpa::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();

class AttentionExtremes : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, AttentionExtremes, ::testing::ValuesIn(every_kernel()), kernel_name);

// L = 1, D = Dv = 1, q = 1, scale 1: the scores are the keys, the values 1, 2, 3 ...
Problem scores(const std::vector<float>& keys) {
  Problem p = make_problem({.seqlen_kv = keys.size(), .head_dim = 1});
  p.scale = 1.0F;
  p.query = {1};
  p.key = keys;
  for (std::size_t j = 0; j < keys.size(); ++j) p.value[j] = static_cast<float>(j + 1);
  return p;
}

TEST_P(AttentionExtremes, AllScoresAtMinus200ShareEqually) {
  for (const std::size_t keys : {1, 2, 3, 12, 67, 96, 97, 128}) {
    const Problem p = scores(std::vector<float>(keys, -200.0F));
    EXPECT_NEAR(run(p).out[0], static_cast<double>(keys + 1) / 2, 1e-6 * static_cast<double>(keys)) << keys;
    EXPECT_NEAR(run(p).lse[0], -200 + std::log(static_cast<double>(keys)), 2e-5);
  }
}

TEST_P(AttentionExtremes, ScoresThatRiseOrFallAllTheWay) {
  // Many queries, none a round number: with exact products a plain computation would have no error to compare with.
  for (const float step : {0.01F, 1.0F, 5.0F, 60.0F, 1000.0F}) {
    Problem p = make_problem({.seqlen_q = 60, .seqlen_kv = 300, .head_dim = 1});
    p.scale = 1.0F;
    for (std::size_t i = 0; i < 60; ++i) p.query[i] = 0.7131F + 0.0173F * static_cast<float>(i);
    for (std::size_t j = 0; j < 300; ++j) p.key[j] = step * (static_cast<float>(j) - 150.37F);
    expect_matches_reference(p);
    for (float& x : p.query) x = -x;
    expect_matches_reference(p);
  }
}

TEST_P(AttentionExtremes, LargeScoresThatAreExactStayExact) {
  // Whole numbers far from 0: a change of units before the maximum is taken off would round them.
  for (const float start : {-3000.0F, 0.0F, 1000.0F, 100000.0F}) {
    std::vector<float> keys;
    for (int j = 0; j < 300; ++j) keys.push_back(start + static_cast<float>(j));
    const Problem p = scores(keys);
    const double truth = reference::attention(p).out[0];
    EXPECT_NEAR(run(p).out[0], truth, 1e-6 * truth) << start;
  }
}

TEST_P(AttentionExtremes, TheLargestScoreAtAnyPlace) {
  for (const std::size_t place : {0, 1, 15, 16, 95, 96, 97, 191, 192, 249}) {
    Random random(place);
    std::vector<float> keys = random.normals(250);
    keys[place] = 40;
    expect_matches_reference(scores(keys));
    EXPECT_NEAR(run(scores(keys)).out[0], static_cast<float>(place + 1), 1e-4);
  }
}

TEST_P(AttentionExtremes, EqualScoresOf3e38ShareExactly) {
  for (const float huge : {3e38F, -3e38F, kLargest, -kLargest}) {
    for (const std::size_t keys : {1, 2, 4, 64, 128}) {
      Problem p = scores(std::vector<float>(keys, huge));
      EXPECT_EQ(run(p).out[0], static_cast<float>(keys + 1) / 2) << huge << ' ' << keys;
    }
  }
}

TEST_P(AttentionExtremes, OneScoreOf3e38AmongSmallerOnesTakesAll) {
  for (const std::size_t place : {0, 5, 95, 96, 149}) {
    std::vector<float> keys(150, 1e30F);
    keys[place] = 3e38F;
    EXPECT_EQ(run(scores(keys)).out[0], static_cast<float>(place + 1));
    std::fill(keys.begin(), keys.end(), -3e38F);
    keys[place] = 1;
    EXPECT_EQ(run(scores(keys)).out[0], static_cast<float>(place + 1));
    EXPECT_EQ(run(scores(keys)).lse[0], 1.0F);
  }
}

TEST_P(AttentionExtremes, HugeEqualLogitsOfManyDimensionsShareEqually) {
  Problem p = make_problem({.seqlen_q = 3, .seqlen_kv = 8, .head_dim = 64});
  std::fill(p.query.begin(), p.query.end(), 1e18F);
  std::fill(p.key.begin(), p.key.end(), 1e18F);
  std::fill(p.value.begin(), p.value.end(), 3.0F);
  const Actual actual = run(p);
  for (const float x : actual.out) EXPECT_EQ(x, 3.0F);
}

TEST_P(AttentionExtremes, TheScaleIsAppliedBeforeAProductCanOverflow) {
  Problem p = scores({1e20F, 2e20F, -1e20F});
  p.query = {1e20F};
  p.scale = 1e-40F;
  expect_matches_reference(p);
}

TEST_P(AttentionExtremes, InputsLargerThanUsual) {
  // Queries times 5, keys and values times 3.
  for (const std::size_t length : {1, 2, 5, 17, 128}) {
    Problem p = make_problem(
        {.seqlen_q = length, .seqlen_kv = length, .head_dim = 64, .batch = 2, .num_heads = 5, .num_kv_heads = 5});
    for (float& x : p.query) x *= 5;
    for (float& x : p.key) x *= 3;
    for (float& x : p.value) x *= 3;
    expect_matches_reference(p);
  }
}

TEST_P(AttentionExtremes, SubnormalValuesComeThroughExactly) {
  for (const float tiny : {1e-45F, -1e-45F, 1e-40F, 1.1754942e-38F, 1.17549435e-38F}) {
    Problem p = scores({0});
    p.value = {tiny};
    EXPECT_EQ(run(p).out[0], tiny);
    Problem two = scores({0, -200});
    two.value = {tiny, tiny};
    EXPECT_EQ(run(two).out[0], tiny);
  }
}

TEST_P(AttentionExtremes, SubnormalQueriesAndKeysCount) {
  // A subnormal times 2^127 is an ordinary score; flushed to zero it would be 0.
  Problem keys = scores({0x1p-127F, 0x1.8p-127F, -0x1.4p-128F});
  keys.query = {0x1p127F};
  Problem queries = scores({0x1p127F, 0x1.8p127F, -0x1.4p126F});
  queries.query = {0x1p-127F};
  for (const Problem& p : {keys, queries}) {
    const Actual actual = run(p, {.scores_stage = ScoresStage::kScaled});
    ASSERT_EQ(actual.scores.size(), 3U);
    // A subnormal has fewer bits: 22 of them here.
    EXPECT_NEAR(actual.scores[0], 1.0F, 1e-6);
    EXPECT_NEAR(actual.scores[1], 1.5F, 1e-6);
    EXPECT_NEAR(actual.scores[2], -0.625F, 1e-6);
    EXPECT_NEAR(actual.out[0], reference::attention(p).out[0], 2e-6);
  }
}

TEST_P(AttentionExtremes, SubnormalSoftmaxWeightsDoNotDisturbTheResult) {
  // Most keys 90 to 103 below the largest: their weights would be subnormal.
  std::vector<float> keys;
  for (int j = 0; j < 400; ++j) keys.push_back(-90.0F - static_cast<float>(j % 14));
  keys[200] = 0;
  expect_matches_reference(scores(keys));
}

TEST_P(AttentionExtremes, LargeFiniteNegativeBiasIsAnOrdinaryRow) {
  for (const float bias : {-1e4F, -65504.0F, -1e9F, -3.4028234e38F}) {
    Problem p = make_problem({.seqlen_q = 5, .seqlen_kv = 130, .head_dim = 8});
    p.bias = {std::vector<float>(5 * 130, 0.0F), {1, 1, 5, 130}};
    // Row 0 wholly, row 1 in its first half, row 2 in all but one, the others not at all.
    for (std::size_t j = 0; j < 130; ++j) {
      p.bias.data[j] = bias;
      if (j < 65) p.bias.data[130 + j] = bias;
      if (j != 77) p.bias.data[260 + j] = bias;
    }
    const Actual actual = run(p);
    expect_close(p, expected(p), actual, ScoresStage::kNone);
    EXPECT_GT(actual.lse[0], -kInfinity);
    for (std::size_t d = 0; d < 8; ++d) EXPECT_EQ(actual.out[2 * 8 + d], p.value[77 * 8 + d]);
  }
}

TEST_P(AttentionExtremes, AFiniteSentinelIsNotAMask) {
  // A row of nothing but the lowest float is a row of equal weights, not an empty one.
  Problem p = make_problem({.seqlen_q = 1, .seqlen_kv = 4, .head_dim = 2, .head_dim_v = 1});
  p.bias = {std::vector<float>(4, -kLargest), {1, 1, 1, 4}};
  p.value = {1, 2, 3, 6};
  EXPECT_NEAR(run(p).out[0], 3.0F, 1e-6);
}

TEST_P(AttentionExtremes, SoftcapOfHugeScoresIsTheCap) {
  Problem p = scores({3e38F, 3e38F, -3e38F});
  p.softcap = 2;
  const double low = std::exp(-4.0);
  EXPECT_NEAR(run(p).out[0], (1 + 2 + 3 * low) / (2 + low), 1e-6);
  expect_matches_reference(p);
}

TEST_P(AttentionExtremes, TinyScoresUnderAHugeCapKeepTheirDifferences) {
  Problem p = make_problem({.seqlen_q = 9, .seqlen_kv = 50, .head_dim = 8});
  p.softcap = 1e6F;
  expect_matches_reference(p, {.scores_stage = ScoresStage::kCapped});
}

TEST_P(AttentionExtremes, SubnormalAndHugeScales) {
  for (const float scale : {1e-45F, 1e-40F, 1e-30F, 1e30F, -1e30F}) {
    Problem p = make_problem({.seqlen_q = 9, .seqlen_kv = 100, .head_dim = 4});
    p.scale = scale;
    const Actual actual = run(p);
    // Past 1e30 nearly every row is one-hot: the largest score takes all.
    expect_close(p, expected(p), actual, ScoresStage::kNone);
  }
}

TEST_P(AttentionExtremes, ValuesWhoseSumIsNearTheLargestFloatGiveTheirMean) {
  Random random(3);
  Problem p = make_problem({.seqlen_q = 5, .seqlen_kv = 100, .head_dim = 4, .head_dim_v = 16});
  for (float& x : p.value) x = 3e36F * static_cast<float>(random.uniform());
  for (const float x : run(p).out) EXPECT_LT(x, 3e36F);
  expect_matches_reference(p);
}

}  // namespace
}  // namespace sdpa::testing
