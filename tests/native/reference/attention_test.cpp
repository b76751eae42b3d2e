// The oracle against values worked out by hand: what everything else is compared with has to be right by itself.
#include "reference/attention.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace sdpa::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// L = 1, S = 2, D = Dv = 1, with q = 1: the scores are scale times the keys.
Problem two_keys(float first, float second) {
  Problem p;
  p.seqlen_kv = 2;
  p.query = {1};
  p.key = {first, second};
  p.value = {10, 20};
  return p;
}

TEST(Reference, TwoKeysShareTheirWeightAsTheLogisticFunctionSays) {
  const auto result = attention(two_keys(0, 1));
  const double second = 1 / (1 + std::exp(-1.0));
  EXPECT_DOUBLE_EQ(result.weights[1], second);
  EXPECT_DOUBLE_EQ(result.out[0], 10 + 10 * second);
  EXPECT_DOUBLE_EQ(result.lse[0], std::log(1 + std::exp(1.0)));
}

TEST(Reference, ScaleDefaultsToTheInverseRootOfTheQueryHeadSize) {
  Problem p;
  p.head_dim = 4;
  p.head_dim_v = 1;
  p.query = {1, 2, 3, 4};
  p.key = {1, 1, 1, 1};
  p.value = {1};
  EXPECT_DOUBLE_EQ(attention(p).scaled[0], 5.0);
}

TEST(Reference, SoftcapIsAppliedAfterTheScaleAndBeforeTheBias) {
  Problem p = two_keys(3, 0);
  p.scale = 2;
  p.softcap = 4;
  p.bias = {{1, 0}, {1, 1, 1, 2}};
  const auto result = attention(p);
  EXPECT_DOUBLE_EQ(result.scaled[0], 6.0);
  EXPECT_DOUBLE_EQ(result.capped[0], 4 * std::tanh(1.5));
  EXPECT_DOUBLE_EQ(result.biased[0], 4 * std::tanh(1.5) + 1);
}

TEST(Reference, AMaskedKeyTakesNoPartWhateverItHolds) {
  Problem p = two_keys(0, kNan);
  p.value[1] = kNan;
  p.mask = {{1, 0}, {1, 1, 1, 2}};
  const auto result = attention(p);
  EXPECT_EQ(result.out[0], 10.0);
  EXPECT_EQ(result.weights[1], 0.0);
  EXPECT_EQ(result.biased[1], -kInfinity);
}

TEST(Reference, ABiasOfMinusInfinityMasks) {
  Problem p = two_keys(kNan, 1);
  p.bias = {{-std::numeric_limits<float>::infinity(), 0}, {1, 1, 1, 2}};
  EXPECT_EQ(attention(p).out[0], 20.0);
}

TEST(Reference, ARowThatSeesNothingIsZero) {
  Problem p = two_keys(0, 1);
  p.mask = {{0}, {1, 1, 1, 1}};
  const auto result = attention(p);
  EXPECT_EQ(result.out[0], 0.0);
  EXPECT_EQ(result.lse[0], -kInfinity);
  EXPECT_EQ(result.weights[0], 0.0);
}

TEST(Reference, AnAttendedNanOrABiasOfPlusInfinityPoisonsTheRow) {
  EXPECT_TRUE(std::isnan(attention(two_keys(kNan, 0)).out[0]));
  EXPECT_TRUE(std::isnan(attention(two_keys(0, kNan)).out[0]));
  Problem p = two_keys(0, 1);
  p.bias = {{0, std::numeric_limits<float>::infinity()}, {1, 1, 1, 2}};
  EXPECT_TRUE(std::isnan(attention(p).out[0]));
}

// Which of the keys 0 ... 4 each of three queries sees, as digits.
std::string seen(const Problem& p) {
  std::string text;
  for (std::size_t i = 0; i < p.seqlen_q; ++i) {
    for (std::size_t j = 0; j < p.seqlen_kv; ++j) text += p.allowed(0, 0, i, j) ? '1' : '0';
    text += ' ';
  }
  return text;
}

Problem positional() {
  Problem p;
  p.seqlen_q = 3;
  p.seqlen_kv = 5;
  return p;
}

TEST(Reference, AlignSaysWhereTheCausalDiagonalLies) {
  Problem p = positional();
  p.causal = true;
  p.align = Align::kUpperLeft;
  EXPECT_EQ(seen(p), "10000 11000 11100 ");
  p.align = Align::kLowerRight;
  EXPECT_EQ(seen(p), "11100 11110 11111 ");
  p.align = Align::kOffset;
  p.query_offset = -1;
  EXPECT_EQ(seen(p), "00000 10000 11000 ");
  p.query_offsets = {1};
  EXPECT_EQ(seen(p), "11000 11100 11110 ");
}

TEST(Reference, WindowBoundsDoNotCountTheQueryItself) {
  Problem p = positional();
  p.align = Align::kUpperLeft;
  p.window_left = 1;
  EXPECT_EQ(seen(p), "11111 11111 01111 ");
  p.window_right = 0;
  EXPECT_EQ(seen(p), "10000 11000 01100 ");
  p.window_left = -1;
  p.window_right = 2;
  EXPECT_EQ(seen(p), "11100 11110 11111 ");
}

TEST(Reference, LengthsEndQueriesAndKeysAndMoveTheLowerRightCorner) {
  Problem p = positional();
  p.causal = true;
  p.align = Align::kLowerRight;
  p.kv_lengths = {4};
  EXPECT_EQ(seen(p), "11000 11100 11110 ");
  p.query_lengths = {1};
  EXPECT_EQ(seen(p), "11000 00000 00000 ");
}

TEST(Reference, QueryHeadsShareKeyValueHeadsInConsecutiveGroups) {
  Problem p;
  p.num_heads = 4;
  p.num_kv_heads = 2;
  p.query = {1, 1, 1, 1};
  p.key = {0, 0};
  p.value = {5, 7};
  EXPECT_EQ(attention(p).out, (std::vector<double>{5, 5, 7, 7}));
}

TEST(Reference, BroadcastRepeatsExtentsOfOne) {
  const Broadcast<float> bias{{1, 2}, {1, 2, 1, 1}};
  EXPECT_EQ(bias.at(3, 0, 4, 5), 1.0F);
  EXPECT_EQ(bias.at(3, 1, 4, 5), 2.0F);
}

TEST(Reference, PlainFloat32RoundsWhereDoubleDoesNot) {
  Problem p = two_keys(0, 1);
  const auto exact = attention(p);
  const auto plain = attention_float32(p);
  EXPECT_NE(static_cast<double>(plain.lse[0]), exact.lse[0]);
  EXPECT_NEAR(plain.lse[0], exact.lse[0], 1e-6);
}

}  // namespace
}  // namespace sdpa::reference
