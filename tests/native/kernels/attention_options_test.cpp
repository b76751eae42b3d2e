// Every option against the reference, on every kernel table.
#include <array>
#include <limits>

#include <gtest/gtest.h>

#include "support/kernels.hpp"

namespace sdpa::testing {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// More than one tile in each direction, nothing a multiple of anything.
constexpr Shape kShape{
    .seqlen_q = 53, .seqlen_kv = 107, .head_dim = 19, .head_dim_v = 13, .batch = 2, .num_heads = 3, .num_kv_heads = 3};

class AttentionOptionsTest : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, AttentionOptionsTest, ::testing::ValuesIn(every_kernel()), kernel_name);

TEST_P(AttentionOptionsTest, NoOption) { expect_matches_reference(make_problem(kShape)); }

TEST_P(AttentionOptionsTest, ScaleOfAnySignAndSize) {
  for (const float scale : {0.5F, 1.0F, 3.0F, -1.0F, -0.01F, 0.0F, 1e-4F, -100.0F}) {
    Problem p = make_problem(kShape);
    p.scale = scale;
    expect_matches_reference(p);
  }
}

TEST_P(AttentionOptionsTest, ScaleOfZeroGivesTheMeanOfTheAllowedValues) {
  Problem p = make_problem({.seqlen_q = 2, .seqlen_kv = 4, .head_dim = 3, .head_dim_v = 1});
  p.scale = 0.0F;
  p.value = {1, 2, 3, 100};
  p.mask = {{1, 1, 1, 0}, {1, 1, 1, 4}};
  const Actual actual = run(p);
  EXPECT_NEAR(actual.out[0], 2.0F, 1e-6);
  EXPECT_NEAR(actual.lse[0], std::log(3.0F), 1e-6);
}

TEST_P(AttentionOptionsTest, ScaleDefaultsToTheQueryHeadSizeNotTheValueHeadSize) {
  Problem given = make_problem({.seqlen_q = 5, .seqlen_kv = 9, .head_dim = 16, .head_dim_v = 4});
  given.scale = 0.25F;
  Problem absent = given;
  absent.scale.reset();
  EXPECT_TRUE(same_bits(run(given).out, run(absent).out));
}

TEST_P(AttentionOptionsTest, Softcap) {
  for (const float softcap : {0.25F, 1.0F, 15.0F, 50.0F, 1e4F}) {
    Problem p = make_problem(kShape);
    p.scale = 2.0F;
    p.softcap = softcap;
    expect_matches_reference(p);
  }
}

TEST_P(AttentionOptionsTest, SoftcapComesAfterTheScaleAndBeforeTheBias) {
  Random random(3);
  Problem p = make_problem(kShape);
  p.scale = 1.0F;
  p.softcap = 2.0F;
  p.bias = random_bias(random, {1, 3, 53, 107});
  for (float& cell : p.bias.data) cell *= 10;
  expect_matches_reference(p);
}

TEST_P(AttentionOptionsTest, MaskInEveryBroadcastShape) {
  for (int shape = 0; shape < 16; ++shape) {
    Random random(static_cast<std::uint64_t>(shape));
    Problem p = make_problem(kShape);
    const auto extent = [&](int bit, std::size_t full) { return (shape >> bit & 1) != 0 ? full : std::size_t{1}; };
    p.mask = random_mask(random, {extent(0, 2), extent(1, 3), extent(2, 53), extent(3, 107)}, 0.5);
    expect_matches_reference(p);
  }
}

TEST_P(AttentionOptionsTest, BiasInEveryBroadcastShape) {
  for (int shape = 0; shape < 16; ++shape) {
    Random random(static_cast<std::uint64_t>(shape));
    Problem p = make_problem(kShape);
    const auto extent = [&](int bit, std::size_t full) { return (shape >> bit & 1) != 0 ? full : std::size_t{1}; };
    p.bias = random_bias(random, {extent(0, 2), extent(1, 3), extent(2, 53), extent(3, 107)});
    expect_matches_reference(p);
  }
}

TEST_P(AttentionOptionsTest, MaskAndBiasOfDifferentShapesTogether) {
  Random random(7);
  Problem p = make_problem(kShape);
  p.mask = random_mask(random, {2, 1, 1, 107}, 0.6);
  p.bias = random_bias(random, {1, 3, 53, 1});
  expect_matches_reference(p);
}

TEST_P(AttentionOptionsTest, ABiasOfMinusInfinityEqualsAMask) {
  Random random(5);
  Problem masked = make_problem(kShape);
  masked.mask = random_mask(random, {1, 3, 53, 107}, 0.4);
  Problem biased = make_problem(kShape);
  biased.bias.extents = masked.mask.extents;
  for (const std::uint8_t cell : masked.mask.data) biased.bias.data.push_back(cell != 0 ? 0 : kMinusInfinity);
  expect_matches_reference(biased);
  const Actual a = run(masked);
  const Actual b = run(biased);
  EXPECT_TRUE(same_bits(a.out, b.out));
  EXPECT_TRUE(same_bits(a.lse, b.lse));
}

TEST_P(AttentionOptionsTest, CausalForEveryAlignmentAndEitherLengthLonger) {
  for (const auto& [queries, keys] : {std::pair{53, 107}, {107, 53}, {64, 64}, {1, 239}, {239, 1}, {97, 97}}) {
    for (const Align align : {Align::kLowerRight, Align::kUpperLeft, Align::kOffset}) {
      Problem p = make_problem(
          {.seqlen_q = static_cast<std::size_t>(queries), .seqlen_kv = static_cast<std::size_t>(keys), .head_dim = 11});
      p.causal = true;
      p.align = align;
      p.query_offset = 17;
      expect_matches_reference(p);
    }
  }
}

TEST_P(AttentionOptionsTest, CausalNeedsNoAlignmentWhereTheLengthsAreEqual) {
  Problem p = make_problem({.seqlen_q = 50, .seqlen_kv = 50, .head_dim = 8});
  p.causal = true;
  expect_matches_reference(p);
}

TEST_P(AttentionOptionsTest, OffsetsFarOutsideTheKeys) {
  for (const std::int64_t offset : {-1000000, -54, -53, -52, 106, 107, 1000000, 2147483647}) {
    Problem p = make_problem(kShape);
    p.causal = true;
    p.window_left = 9;
    p.align = Align::kOffset;
    p.query_offset = offset;
    expect_matches_reference(p);
  }
}

TEST_P(AttentionOptionsTest, OffsetsOfTheirOwnForEachBatchRow) {
  Problem p = make_problem(kShape);
  p.causal = true;
  p.align = Align::kOffset;
  p.query_offset = 1000;
  p.query_offsets = {-20, 60};
  expect_matches_reference(p);
}

TEST_P(AttentionOptionsTest, WindowsOfEverySort) {
  for (const auto& [left, right] :
       {std::pair{0, 0}, {3, 0}, {0, 3}, {-1, 0}, {-1, 5}, {5, -1}, {10, 20}, {95, 0}, {96, 1}, {300, 300}}) {
    for (const Align align : {Align::kLowerRight, Align::kUpperLeft}) {
      Problem p = make_problem(kShape);
      p.window_left = left;
      p.window_right = right;
      p.align = align;
      expect_matches_reference(p);
    }
  }
}

TEST_P(AttentionOptionsTest, CausalWithAWindowToTheRightIsStillCausal) {
  Problem p = make_causal({.seqlen_q = 40, .seqlen_kv = 70, .head_dim = 9});
  p.window_left = 12;
  p.window_right = 30;
  expect_matches_reference(p);
}

TEST_P(AttentionOptionsTest, KeyLengths) {
  for (const auto& lengths : {std::vector<std::int32_t>{0, 107}, {1, 106}, {95, 96}, {97, 48}}) {
    Problem p = make_problem(kShape);
    p.kv_lengths = lengths;
    expect_matches_reference(p);
    p.causal = true;
    p.align = Align::kLowerRight;
    expect_matches_reference(p);
  }
}

TEST_P(AttentionOptionsTest, QueryLengths) {
  for (const auto& lengths : {std::vector<std::int32_t>{0, 53}, {1, 52}, {47, 48}}) {
    Problem p = make_problem(kShape);
    p.query_lengths = lengths;
    expect_matches_reference(p);
  }
}

TEST_P(AttentionOptionsTest, GroupedAndMultiQueryHeads) {
  for (const auto& [heads, kv_heads] : {std::pair{6, 6}, {6, 3}, {6, 2}, {6, 1}, {8, 4}, {5, 1}}) {
    Shape shape = kShape;
    shape.num_heads = static_cast<std::size_t>(heads);
    shape.num_kv_heads = static_cast<std::size_t>(kv_heads);
    for (const std::size_t rows : {1, 3, 53}) {
      shape.seqlen_q = rows;
      expect_matches_reference(make_problem(shape));
      expect_matches_reference(make_causal(shape));
    }
  }
}

TEST_P(AttentionOptionsTest, GroupedHeadsKeepTheirOwnMaskAndBias) {
  Random random(11);
  Problem p =
      make_problem({.seqlen_q = 5, .seqlen_kv = 33, .head_dim = 8, .batch = 2, .num_heads = 6, .num_kv_heads = 2});
  p.mask = random_mask(random, {2, 6, 5, 33});
  p.bias = random_bias(random, {1, 6, 1, 33});
  expect_matches_reference(p);
}

TEST_P(AttentionOptionsTest, RowsThatSeeNothingAreZero) {
  Random random(13);
  Problem p = make_problem(kShape);
  p.mask = random_mask(random, {2, 3, 53, 107}, 0.5);
  for (std::size_t row = 0; row < 2 * 3 * 53; row += 4)
    std::fill_n(p.mask.data.begin() + static_cast<long>(row * 107), 107, std::uint8_t{0});
  expect_matches_reference(p);
}

TEST_P(AttentionOptionsTest, EmptyTensorsGiveEmptyOrZeroResults) {
  Problem no_keys = make_problem({.seqlen_q = 3, .seqlen_kv = 0, .head_dim = 4});
  EXPECT_EQ(run(no_keys).out, std::vector<float>(12, 0.0F));
  EXPECT_EQ(run(no_keys).lse, std::vector<float>(3, kMinusInfinity));
  no_keys.causal = true;
  no_keys.align = Align::kLowerRight;
  EXPECT_EQ(run(no_keys).out, std::vector<float>(12, 0.0F));
  EXPECT_TRUE(run(make_problem({.seqlen_q = 0, .seqlen_kv = 3, .head_dim = 4})).out.empty());
  EXPECT_TRUE(run(make_problem({.seqlen_q = 2, .seqlen_kv = 3, .head_dim = 4, .batch = 0})).out.empty());
}

TEST_P(AttentionOptionsTest, TheLogSumExpMayBeLeftOut) {
  const Problem p = make_problem(kShape);
  EXPECT_TRUE(same_bits(run(p, {.lse = false}).out, run(p).out));
}

TEST_P(AttentionOptionsTest, AnyMixOfOptionsSizesAndPlacements) {
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    Random random(seed * 7919);
    RunOptions options;
    options.placement = random.choose({Placement::kBhld, Placement::kBlhd, Placement::kScattered});
    options.scores_stage = random.choose({ScoresStage::kNone, ScoresStage::kNone, ScoresStage::kScaled,
                                          ScoresStage::kCapped, ScoresStage::kBiased, ScoresStage::kWeights});
    SCOPED_TRACE(seed);
    expect_matches_reference(random_problem(seed), options);
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace sdpa::testing
