// What changes scores and weights beyond bias and softcap: ALiBi slopes, sinks, dropout.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "support/kernels.hpp"

namespace sdpa::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The rows of a block, a few that are stacked with those of other heads, and one alone.
constexpr std::size_t kRows[] = {70, 5, 1};

Problem problem(std::size_t rows) {
  return make_problem({.seqlen_q = rows,
                       .seqlen_kv = 211,
                       .head_dim = 18,
                       .head_dim_v = 11,
                       .batch = 2,
                       .num_heads = 4,
                       .num_kv_heads = rows == 1 ? 4U : 2U});
}

class AttentionAlibi : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, AttentionAlibi, ::testing::ValuesIn(every_kernel()), kernel_name);

TEST_P(AttentionAlibi, SlopesPerHeadAndPerHeadOfABatchRowWithEachAlignment) {
  for (const std::size_t rows : kRows) {
    for (const bool per_batch : {false, true}) {
      Random random(rows);
      Problem p = problem(rows);
      p.alibi_slopes = {random.normals(per_batch ? 8 : 4), per_batch};
      for (float& slope : p.alibi_slopes.data) slope = 0.3F * std::fabs(slope);
      for (const Align align : {Align::kLowerRight, Align::kUpperLeft, Align::kOffset}) {
        p.align = align;
        p.query_offset = 100;
        p.causal = false;
        expect_matches_reference(p);
        p.causal = true;
        expect_matches_reference(p);
      }
    }
  }
}

TEST_P(AttentionAlibi, SlopesOfZeroChangeNoBit) {
  for (const std::size_t rows : kRows) {
    Problem p = problem(rows);
    p.align = Align::kLowerRight;
    const Actual plain = run(p);
    p.alibi_slopes.data = {0, 0, 0, 0};
    EXPECT_TRUE(same_bits(run(p).out, plain.out)) << rows;
    EXPECT_TRUE(same_bits(run(p).lse, plain.lse)) << rows;
  }
}

TEST_P(AttentionAlibi, NegativeSlopesPreferWhatIsFar) {
  for (const std::size_t rows : kRows) {
    Problem p = problem(rows);
    p.align = Align::kLowerRight;
    p.alibi_slopes.data = {-0.5F, -0.01F, 2, 0};
    expect_matches_reference(p);
  }
}

TEST_P(AttentionAlibi, ComesAfterTheSoftcapAndBesideTheBias) {
  for (const std::size_t rows : kRows) {
    Random random(5);
    Problem p = problem(rows);
    p.softcap = 0.5F;
    p.scale = 1.0F;
    p.bias = random_bias(random, {1, 4, rows, 211});
    p.align = Align::kUpperLeft;
    p.alibi_slopes.data = {1, 0.5F, 0.25F, 0.125F};
    for (const ScoresStage stage : {ScoresStage::kCapped, ScoresStage::kBiased, ScoresStage::kWeights})
      expect_matches_reference(p, {.scores_stage = stage});
  }
}

TEST_P(AttentionAlibi, DistancesAreExactFarFromTheKeys) {
  // Rows far outside: every distance is large, and only their differences count.
  for (const std::int64_t offset : {-100000, 100000, 1 << 22}) {
    Problem p = make_problem({.seqlen_q = 5, .seqlen_kv = 130, .head_dim = 4});
    std::fill(p.query.begin(), p.query.end(), 0.0F);
    p.align = Align::kOffset;
    p.query_offset = offset;
    p.alibi_slopes.data = {0.5F};
    expect_matches_reference(p);
  }
}

TEST_P(AttentionAlibi, DoesNotLetExcludedKeysIn) {
  Problem p = make_causal({.seqlen_q = 60, .seqlen_kv = 150, .head_dim = 6});
  p.kv_lengths = {140};
  p.alibi_slopes.data = {-3};
  const Actual before = run(p);
  std::fill(p.key.begin() + 140 * 6, p.key.end(), kNan);
  std::fill(p.value.begin() + 140 * 6, p.value.end(), kNan);
  const Actual after = run(p);
  EXPECT_TRUE(same_bits(before.out, after.out));
  EXPECT_TRUE(same_bits(before.lse, after.lse));
}

class AttentionSinks : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, AttentionSinks, ::testing::ValuesIn(every_kernel()), kernel_name);

TEST_P(AttentionSinks, PerHeadAndPerHeadOfABatchRow) {
  for (const std::size_t rows : kRows) {
    for (const bool per_batch : {false, true}) {
      for (const float shift : {-20.0F, 0.0F, 5.0F, 40.0F}) {
        Random random(rows);
        Problem p = problem(rows);
        p.sinks = {random.normals(per_batch ? 8 : 4), per_batch};
        for (float& sink : p.sinks.data) sink += shift;
        for (const ScoresStage stage : {ScoresStage::kNone, ScoresStage::kWeights})
          expect_matches_reference(p, {.scores_stage = stage});
      }
    }
  }
}

TEST_P(AttentionSinks, AreNeitherScaledNorCappedNorMasked) {
  for (const std::size_t rows : kRows) {
    Random random(9);
    Problem p = problem(rows);
    p.scale = 0.01F;
    p.softcap = 0.1F;
    p.mask = random_mask(random, {2, 1, rows, 211}, 0.1);
    p.sinks.data = {2, 1, 0, -1};
    expect_matches_reference(p);
  }
}

TEST_P(AttentionSinks, OfMinusInfinityAreNone) {
  for (const std::size_t rows : kRows) {
    Problem p = problem(rows);
    p.kv_lengths = {0, 100};
    const Actual plain = run(p);
    p.sinks.data = {-kInfinity, -kInfinity, -kInfinity, -kInfinity};
    const Actual with = run(p);
    EXPECT_TRUE(same_bits(with.out, plain.out)) << rows;
    EXPECT_TRUE(same_bits(with.lse, plain.lse)) << rows;
    p.sinks.data = {-kInfinity, 1, -kInfinity, 2};
    expect_matches_reference(p);
  }
}

TEST_P(AttentionSinks, AreTheLogSumExpOfRowsThatSeeNothing) {
  for (const std::size_t rows : kRows) {
    Problem p = problem(rows);
    p.kv_lengths = {0, 211};
    p.query_lengths = {static_cast<std::int32_t>(rows), 0};
    p.sinks.data = {2, -1, 0.5F, -kInfinity};
    const Actual actual = run(p);
    EXPECT_EQ(actual.out, std::vector<float>(actual.out.size(), 0.0F));
    for (std::size_t row = 0; row < actual.lse.size(); ++row)
      ASSERT_EQ(actual.lse[row], p.sinks.data[row / rows % 4]) << row;
    expect_matches_reference(p, {.scores_stage = ScoresStage::kWeights});
  }
}

TEST_P(AttentionSinks, OfCallsWithoutAnyKeyAreTheirLogSumExp) {
  Problem p = make_problem({.seqlen_q = 2, .seqlen_kv = 0, .head_dim = 4, .num_heads = 2, .num_kv_heads = 2});
  p.sinks.data = {3, -4};
  EXPECT_EQ(run(p).lse, (std::vector<float>{3, 3, -4, -4}));
  EXPECT_EQ(run(p).out, std::vector<float>(16, 0.0F));
}

TEST_P(AttentionSinks, ThatOutweighEveryKeyLeaveExactlyNothing) {
  for (const std::size_t rows : kRows) {
    Problem p = problem(rows);
    p.sinks.data = {1e30F, 1000, 300, 3.4e38F};
    const Actual actual = run(p);
    EXPECT_EQ(actual.out, std::vector<float>(actual.out.size(), 0.0F));
    for (std::size_t row = 0; row < actual.lse.size(); ++row)
      ASSERT_EQ(actual.lse[row], p.sinks.data[row / rows % 4]) << row;
  }
}

TEST_P(AttentionSinks, FarBelowEveryKeyChangeNoBit) {
  for (const std::size_t rows : kRows) {
    Problem p = problem(rows);
    const Actual plain = run(p);
    p.sinks.data = {-1e30F, -1000, -300, -3.4e38F};
    EXPECT_TRUE(same_bits(run(p).out, plain.out)) << rows;
    EXPECT_TRUE(same_bits(run(p).lse, plain.lse)) << rows;
  }
}

TEST_P(AttentionSinks, KeepNanOfTheirRow) {
  for (const std::size_t rows : kRows) {
    Problem p = problem(rows);
    p.sinks.data = {1, 1000, -1000, 0};
    for (std::size_t head = 0; head < 2 * p.num_kv_heads; ++head) p.key[(head * 211 + 150) * 18] = kNan;
    const Actual actual = run(p);
    EXPECT_TRUE(std::all_of(actual.out.begin(), actual.out.end(), [](float x) { return std::isnan(x); }));
    EXPECT_TRUE(std::all_of(actual.lse.begin(), actual.lse.end(), [](float x) { return std::isnan(x); }));
  }
}

class AttentionDropout : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, AttentionDropout, ::testing::ValuesIn(every_kernel()), kernel_name);

TEST_P(AttentionDropout, OfAnyProbabilityAndSeed) {
  for (const std::size_t rows : kRows) {
    for (const double probability : {0.0, 1e-9, 0.1, 0.5, 0.9, 1.0}) {
      for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, (std::uint64_t{1} << 53) - 1}) {
        Problem p = problem(rows);
        p.dropout = {probability, seed};
        expect_matches_reference(p);
      }
    }
  }
}

TEST_P(AttentionDropout, LeavesTheLogSumExpAndTheWeightsAsTheyAre) {
  for (const std::size_t rows : kRows) {
    for (const ScoresStage stage : {ScoresStage::kBiased, ScoresStage::kWeights}) {
      Problem p = problem(rows);
      const Actual plain = run(p, {.scores_stage = stage});
      p.dropout = {0.4, 11};
      const Actual dropped = run(p, {.scores_stage = stage});
      EXPECT_TRUE(same_bits(dropped.lse, plain.lse)) << rows;
      EXPECT_TRUE(same_bits(dropped.scores, plain.scores)) << rows;
      EXPECT_FALSE(same_bits(dropped.out, plain.out)) << rows;
    }
  }
}

TEST_P(AttentionDropout, OfEverythingLeavesExactlyNothing) {
  for (const std::size_t rows : kRows) {
    Problem p = problem(rows);
    p.dropout = {1, 3};
    const Actual actual = run(p);
    EXPECT_EQ(actual.out, std::vector<float>(actual.out.size(), 0.0F));
  }
}

TEST_P(AttentionDropout, CountsCellsFromTheOrigin) {
  for (const std::size_t rows : kRows) {
    Problem p = problem(rows);
    p.dropout = {0.5, 4};
    p.origin = {3, 40, 1000000};
    expect_matches_reference(p);
    p.origin = {4000000000, 4000000001, 4000000002};
    expect_matches_reference(p);
  }
}

TEST_P(AttentionDropout, DropsTheSameCellsWhateverElseExcludes) {
  // With equal scores the output tells which cells are left: value j is 2^j.
  Problem p = make_problem({.seqlen_q = 40, .seqlen_kv = 20, .head_dim = 3, .head_dim_v = 1});
  std::fill(p.query.begin(), p.query.end(), 0.0F);
  for (std::size_t j = 0; j < 20; ++j) p.value[j] = std::ldexp(1.0F, static_cast<int>(j));
  p.dropout = {0.5, 21};
  const auto left = [&](const Problem& q, std::size_t i, std::size_t keys) {
    return static_cast<std::uint32_t>(std::lrint(double{run(q).out[i]} * static_cast<double>(keys) / 2));
  };
  Problem half = p;
  half.kv_lengths = {10};
  for (std::size_t i = 0; i < 40; ++i) {
    std::uint32_t expected = 0;
    for (std::size_t j = 0; j < 20; ++j) expected |= p.dropped(0, 0, i, j) ? 0 : std::uint32_t{1} << j;
    EXPECT_EQ(left(p, i, 20), expected) << i;
    EXPECT_EQ(left(half, i, 10), expected & 1023) << i;
  }
}

TEST_P(AttentionDropout, OfFiniteNumbersStaysFinite) {
  for (const std::size_t rows : kRows) {
    Problem p = problem(rows);
    for (float& x : p.query) x *= 1e15F;
    for (float& x : p.value) x *= 1e30F;
    p.sinks.data = {1e30F, 0, -1e30F, 100};
    for (const double probability : {0.1, 0.999, 1.0}) {
      p.dropout = {probability, 8};
      const Actual actual = run(p);
      EXPECT_TRUE(std::all_of(actual.out.begin(), actual.out.end(), [](float x) { return std::isfinite(x); }));
    }
  }
}

}  // namespace
}  // namespace sdpa::testing
