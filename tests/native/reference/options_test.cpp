// The oracle's options that say who sees whom, and those that change weights, against values worked out by hand.
#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "reference/attention.hpp"
#include "reference/philox.hpp"

namespace sdpa::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Which keys each query sees, as digits, a word a query.
std::string seen(const Problem& p, std::size_t b = 0, std::size_t h = 0) {
  std::string text;
  for (std::size_t i = 0; i < p.seqlen_q; ++i) {
    for (std::size_t j = 0; j < p.seqlen_kv; ++j) text += p.allowed(b, h, i, j) ? '1' : '0';
    text += ' ';
  }
  return text;
}

Problem sized(std::size_t queries, std::size_t keys) {
  Problem p;
  p.seqlen_q = queries;
  p.seqlen_kv = keys;
  return p;
}

// L = 1, S keys of scores 0, D = Dv = 1.
Problem equal_keys(std::vector<float> values) {
  Problem p = sized(1, values.size());
  p.query = {0};
  p.key.assign(values.size(), 1);
  p.value = std::move(values);
  return p;
}

TEST(ReferenceChunk, KeysAndQueriesOfOneChunkSeeEachOther) {
  Problem p = sized(5, 5);
  p.chunk = 2;
  EXPECT_EQ(seen(p), "11000 11000 00110 00110 00001 ");
  p.causal = true;
  EXPECT_EQ(seen(p), "10000 11000 00100 00110 00001 ");
}

TEST(ReferenceChunk, CountsFromPositionsAndRoundsDownBelowZero) {
  Problem p = sized(4, 4);
  p.chunk = 3;
  p.align = Align::kOffset;
  p.query_offset = -2;  // positions -2, -1, 0, 1
  EXPECT_EQ(seen(p), "0000 0000 1110 1110 ");
  p.query_offset = 2;  // positions 2, 3, 4, 5
  EXPECT_EQ(seen(p), "1110 0001 0001 0001 ");
}

TEST(ReferenceGlobalKeys, StayUnderAWindowAndUnderAChunkButNotUnderCausal) {
  Problem p = sized(5, 5);
  p.global_keys = 1;
  EXPECT_EQ(seen(p), "11111 11111 11111 11111 11111 ");
  p.window_left = 1;
  EXPECT_EQ(seen(p), "11111 11111 11111 10111 10011 ");
  p.window_right = 0;
  EXPECT_EQ(seen(p), "10000 11000 11100 10110 10011 ");
  p.window_left = p.window_right = -1;
  p.chunk = 2;
  EXPECT_EQ(seen(p), "11000 11000 10110 10110 10001 ");
  p.global_keys = 4;
  p.causal = true;
  EXPECT_EQ(seen(p), "10000 11000 11100 11110 11111 ");
}

TEST(ReferenceGlobalKeys, StayUnderTheRightBoundAndUnderMasks) {
  Problem p = sized(3, 3);
  p.global_keys = 3;
  p.window_right = 1;
  p.window_left = 0;
  p.mask = {{0, 1, 1}, {1, 1, 1, 3}};
  EXPECT_EQ(seen(p), "010 011 011 ");
  p.kv_lengths = {2};
  EXPECT_EQ(seen(p), "010 010 010 ");
}

TEST(ReferenceSegments, OnlyKeysOfTheQuerysOwnSegmentTakePart) {
  Problem p = sized(2, 3);
  p.batch = 2;
  p.query_segments = {7, -1, 0, 7};
  p.key_segments = {7, 0, -1, 7, 7, 0};
  EXPECT_EQ(seen(p, 0), "100 001 ");
  EXPECT_EQ(seen(p, 1), "001 110 ");
}

TEST(ReferencePackedSequences, SeeThemselvesAndCountPositionsFromTheirOwnStarts) {
  Problem p = sized(5, 6);
  p.query_starts = {0, 2, 2, 4};  // the second sequence has no query, row 4 belongs to none
  p.key_starts = {0, 1, 3, 6};
  EXPECT_EQ(seen(p), "100000 100000 000111 000111 000000 ");
  p.causal = true;  // lower-right: one key for two queries; three keys for two queries
  EXPECT_EQ(seen(p), "000000 100000 000110 000111 000000 ");
  p.align = Align::kLowerRight;
  EXPECT_EQ(seen(p), "000000 100000 000110 000111 000000 ");
  p.align = Align::kUpperLeft;
  EXPECT_EQ(seen(p), "100000 100000 000100 000110 000000 ");
  p.align = Align::kOffset;
  p.query_offset = 2;
  EXPECT_EQ(seen(p), "100000 100000 000111 000111 000000 ");
}

TEST(ReferencePackedSequences, HaveGlobalKeysAndChunksOfTheirOwn) {
  Problem p = sized(5, 5);
  p.query_starts = p.key_starts = {0, 2, 5};
  p.window_left = p.window_right = 0;
  p.global_keys = 1;
  EXPECT_EQ(seen(p), "10000 11000 00100 00110 00101 ");
  Problem chunked = sized(5, 5);
  chunked.query_starts = chunked.key_starts = {0, 2, 5};
  chunked.chunk = 2;
  EXPECT_EQ(seen(chunked), "11000 11000 00110 00110 00001 ");
}

TEST(ReferencePackedSequences, APieceOfTheRowsKeepsItsPlaceInTheWhole) {
  Problem p = sized(2, 5);
  p.query_starts = p.key_starts = {0, 2, 5};
  p.causal = true;
  p.origin.row = 1;
  EXPECT_EQ(seen(p), "11000 00100 ");
}

TEST(ReferencePackedSequences, GiveWhatEachGivesAlone) {
  Problem p = sized(7, 9);
  p.query_starts = {0, 3, 7};
  p.key_starts = {0, 4, 9};
  p.head_dim = 2;
  for (int n = 0; n < 14; ++n) p.query.push_back(static_cast<float>(n * 5 % 7 - 3));
  for (int n = 0; n < 18; ++n) p.key.push_back(static_cast<float>(n * 3 % 11 - 5));
  for (int n = 0; n < 9; ++n) p.value.push_back(static_cast<float>(n * n));
  p.causal = true;
  p.window_left = 2;
  p.alibi_slopes.data = {0.25F};
  const auto packed = attention(p);
  for (std::size_t s = 0; s < 2; ++s) {
    const auto queries = static_cast<std::size_t>(p.query_starts[s + 1] - p.query_starts[s]);
    const auto keys = static_cast<std::size_t>(p.key_starts[s + 1] - p.key_starts[s]);
    Problem alone = p;
    alone.seqlen_q = queries;
    alone.seqlen_kv = keys;
    alone.query_starts.clear();
    alone.key_starts.clear();
    alone.align = Align::kLowerRight;
    alone.query.erase(alone.query.begin(), alone.query.begin() + 2L * p.query_starts[s]);
    alone.key.erase(alone.key.begin(), alone.key.begin() + 2L * p.key_starts[s]);
    alone.value.erase(alone.value.begin(), alone.value.begin() + p.key_starts[s]);
    const auto result = attention(alone);
    for (std::size_t i = 0; i < queries; ++i) {
      const std::size_t row = static_cast<std::size_t>(p.query_starts[s]) + i;
      EXPECT_EQ(packed.out[row], result.out[i]) << row;
      EXPECT_EQ(packed.lse[row], result.lse[i]) << row;
    }
  }
}

TEST(ReferenceBlockMask, ExcludesItsCellsAndIsIndexedFromTheOrigin) {
  Problem p = sized(2, 2);
  p.block_mask = {{1, 0, 0, 1, 1, 1, 0, 0}, {1, 2, 2, 2}};
  EXPECT_EQ(seen(p), "10 01 ");
  EXPECT_EQ(seen(p, 0, 1), "11 00 ");
  Problem piece = sized(1, 2);
  piece.block_mask = p.block_mask;
  piece.origin = {0, 1, 1};
  EXPECT_EQ(seen(piece), "00 ");
  piece.origin = {0, 0, 1};
  EXPECT_EQ(seen(piece), "01 ");
}

TEST(ReferenceAlibi, SubtractsTheSlopeTimesTheDistanceAfterTheCapAndBesideTheBias) {
  Problem p = sized(1, 3);
  p.query = {100};
  p.key = {1, 1, 1};
  p.value = {0, 0, 0};
  p.softcap = 2;
  p.bias = {{5, 0, 0}, {1, 1, 1, 3}};
  p.alibi_slopes.data = {0.5F};
  p.align = Align::kOffset;
  p.query_offset = 1;
  const auto result = attention(p);
  const double capped = 2 * std::tanh(50.0);
  EXPECT_DOUBLE_EQ(result.biased[0], capped + 5 - 0.5);
  EXPECT_DOUBLE_EQ(result.biased[1], capped);
  EXPECT_DOUBLE_EQ(result.biased[2], capped - 0.5);
}

TEST(ReferenceAlibi, SlopesBelongToHeadsOrToHeadsOfABatchRow) {
  PerHead slopes{{1, 2, 3, 4}, true};
  EXPECT_EQ(slopes.at(1, 0, 2), 3.0F);
  slopes = {{1, 2}, false};
  EXPECT_EQ(slopes.at(1, 1, 2), 2.0F);
}

TEST(ReferenceSinks, TakeTheirShareOfTheDenominatorAndGiveNothing) {
  Problem p = equal_keys({10, 20});
  p.sinks.data = {std::log(2.0F)};
  const auto result = attention(p);
  EXPECT_NEAR(result.out[0], (10 + 20) / 4.0, 1e-6);
  EXPECT_NEAR(result.weights[0], 0.25, 1e-7);
  EXPECT_NEAR(result.lse[0], std::log(4.0), 1e-7);
}

TEST(ReferenceSinks, ARowThatSeesNothingHasItsSinkForALogSumExp) {
  Problem p = equal_keys({10, 20});
  p.mask = {{0}, {1, 1, 1, 1}};
  p.sinks.data = {3};
  EXPECT_EQ(attention(p).lse[0], 3.0);
  EXPECT_EQ(attention(p).out[0], 0.0);
  p.sinks.data = {kMinusInfinity};
  EXPECT_EQ(attention(p).lse[0], -kInfinity);
}

TEST(ReferenceSinks, OfMinusInfinityAreNoneAndLargeOnesTakeEverything) {
  Problem p = equal_keys({10, 20});
  const auto without = attention(p);
  p.sinks.data = {kMinusInfinity};
  EXPECT_EQ(attention(p).out, without.out);
  EXPECT_EQ(attention(p).lse, without.lse);
  p.sinks.data = {1e30F};
  EXPECT_EQ(attention(p).out[0], 0.0);
  EXPECT_EQ(attention(p).lse[0], double{1e30F});
}

TEST(ReferenceDropout, DropsTheCellsWhoseWordLiesBelowTheBoundAndRaisesTheOthers) {
  Problem p = equal_keys({1, 10, 100, 1000});
  // Counter 0 under key 0 gives 6627e8d5 e169c58d bc57ac4c 9b00dbd8: below 0.7 * 2^32 = b3333333 are words 0 and 3.
  p.dropout.probability = 0.7;
  const auto result = attention(p);
  EXPECT_NEAR(result.out[0], (10 + 100) / 4.0 / 0.3, 1e-12);
  EXPECT_EQ(result.weights, (std::vector<double>{0.25, 0.25, 0.25, 0.25}));
  EXPECT_DOUBLE_EQ(result.lse[0], std::log(4.0));
}

TEST(ReferenceDropout, CountsKeysByFoursThenRowsHeadsAndBatchesFromTheOrigin) {
  Problem p;
  p.dropout = {0.5, (std::uint64_t{6} << 32) | 5};
  p.origin = {30, 20, 10};
  for (std::size_t n = 0; n < 64; ++n) {
    const auto at = static_cast<std::uint32_t>(n);
    const auto words = philox4x32({at / 4, at + 11, at + 22, at + 33}, {5, 6});
    EXPECT_EQ(p.dropped(n + 3, n + 2, n + 1, n), words[n % 4] < 0x80000000) << n;
  }
}

TEST(ReferenceDropout, OfProbabilityOneLeavesNothingAndOfZeroEverything) {
  Problem p = equal_keys({1, 2, 3});
  const auto without = attention(p);
  p.dropout = {0, 99};
  EXPECT_EQ(attention(p).out, without.out);
  p.dropout = {1, 99};
  EXPECT_EQ(attention(p).out[0], 0.0);
  EXPECT_EQ(attention(p).lse, without.lse);
}

}  // namespace
}  // namespace sdpa::reference
