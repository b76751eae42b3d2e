// Properties that define attention, tested without a reference.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "support/kernels.hpp"

namespace sdpa::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class AttentionProperties : public KernelTest {
 protected:
  // Random problems of every sort, the same for each property.
  static constexpr std::uint64_t kProblems = 60;
};
INSTANTIATE_TEST_SUITE_P(, AttentionProperties, ::testing::ValuesIn(every_kernel()), kernel_name);

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  float largest = a.size() == b.size() ? 0 : kInfinity;
  for (std::size_t n = 0; n < std::min(a.size(), b.size()); ++n) {
    if (a[n] == b[n]) continue;  // infinities
    const float difference = std::fabs(a[n] - b[n]);
    largest = difference <= largest ? largest : difference;  // NaN stays
  }
  return largest;
}

// Copies whole rows of `width` elements in a new order.
template <class T>
std::vector<T> permuted_rows(const std::vector<T>& values, const std::vector<std::size_t>& order, std::size_t width) {
  std::vector<T> result(values.size());
  const std::size_t block = order.size() * width;
  for (std::size_t n = 0; n < values.size(); ++n) {
    result[n] = values[n / block * block + order[n % block / width] * width + n % width];
  }
  return result;
}

std::vector<std::size_t> random_order(std::size_t size, std::uint64_t seed) {
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(seed);
  for (std::size_t n = size; n > 1; --n)
    std::swap(order[n - 1], order[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(n) - 1))]);
  return order;
}

// A problem whose outputs are averages of values: nothing takes a share of the weights away.
Problem random_averages(std::uint64_t seed) {
  Problem p = random_problem(seed);
  p.sinks = {};
  p.dropout = {};
  return p;
}

TEST_P(AttentionProperties, TheWeightsOfARowSumToOneOrAreAllZero) {
  for (std::uint64_t seed = 1; seed <= kProblems; ++seed) {
    const Problem p = random_averages(seed);
    const Actual actual = run(p, {.scores_stage = ScoresStage::kWeights});
    for (std::size_t row = 0; row < actual.lse.size(); ++row) {
      const auto first = actual.scores.begin() + static_cast<long>(row * p.seqlen_kv);
      const double sum = std::accumulate(first, first + static_cast<long>(p.seqlen_kv), 0.0);
      EXPECT_TRUE(std::all_of(first, first + static_cast<long>(p.seqlen_kv), [](float w) { return w >= 0 && w <= 1; }));
      if (actual.lse[row] == -kInfinity) {
        EXPECT_EQ(sum, 0.0) << describe(p);
      } else {
        EXPECT_NEAR(sum, 1.0, 1e-6) << describe(p);
      }
    }
  }
}

TEST_P(AttentionProperties, ValuesOfOneGiveOne) {
  for (std::uint64_t seed = 1; seed <= kProblems; ++seed) {
    Problem p = random_averages(seed);
    std::fill(p.value.begin(), p.value.end(), 1.0F);
    const Actual actual = run(p);
    for (std::size_t n = 0; n < actual.out.size(); ++n) {
      const bool empty = actual.lse[n / p.head_dim_v] == -kInfinity;
      EXPECT_NEAR(actual.out[n], empty ? 0.0F : 1.0F, empty ? 0 : 5e-7) << describe(p);
    }
  }
}

TEST_P(AttentionProperties, EveryOutputLiesWithinTheRangeOfTheValuesItMayAttendTo) {
  for (std::uint64_t seed = 1; seed <= kProblems; ++seed) {
    const Problem p = random_averages(seed);
    const Actual actual = run(p);
    for (std::size_t n = 0; n < actual.out.size(); ++n) {
      const std::size_t d = n % p.head_dim_v;
      const std::size_t row = n / p.head_dim_v;
      const std::size_t b = row / (p.num_heads * p.seqlen_q);
      const std::size_t h = row / p.seqlen_q % p.num_heads;
      const std::size_t g = h / (p.num_heads / p.num_kv_heads);
      float low = kInfinity;
      float high = -kInfinity;
      for (std::size_t j = 0; j < p.seqlen_kv; ++j) {
        if (!p.allowed(b, h, row % p.seqlen_q, j)) continue;
        const float v = p.value[((b * p.num_kv_heads + g) * p.seqlen_kv + j) * p.head_dim_v + d];
        low = std::min(low, v);
        high = std::max(high, v);
      }
      if (low > high) continue;                     // a row that sees nothing
      if (actual.lse[row] == -kInfinity) continue;  // nothing but biases of -infinity
      const float slack = 1e-6F * std::max(std::fabs(low), std::fabs(high));
      ASSERT_GE(actual.out[n], low - slack) << describe(p);
      ASSERT_LE(actual.out[n], high + slack) << describe(p);
    }
  }
}

TEST_P(AttentionProperties, PermutingKeysAndValuesTogetherChangesNothingBeyondRounding) {
  for (const std::size_t keys : {2, 33, 96, 97, 250}) {
    Random random(keys);
    Problem p = make_problem(
        {.seqlen_q = 49, .seqlen_kv = keys, .head_dim = 24, .batch = 2, .num_heads = 2, .num_kv_heads = 2});
    p.mask = random_mask(random, {2, 2, 49, keys});
    p.bias = random_bias(random, {1, 2, 1, keys});
    Problem q = p;
    const auto order = random_order(keys, keys);
    q.key = permuted_rows(p.key, order, 24);
    q.value = permuted_rows(p.value, order, 24);
    q.mask.data = permuted_rows(p.mask.data, order, 1);
    q.bias.data = permuted_rows(p.bias.data, order, 1);
    EXPECT_LE(largest_difference(run(p).out, run(q).out), 2e-6F) << keys;
    EXPECT_LE(largest_difference(run(p).lse, run(q).lse), 4e-6F) << keys;
  }
}

TEST_P(AttentionProperties, PermutingQueriesPermutesTheRowsBitForBit) {
  for (const std::size_t queries : {2, 7, 48, 49, 131}) {
    Random random(queries);
    Problem p = make_problem(
        {.seqlen_q = queries, .seqlen_kv = 101, .head_dim = 24, .batch = 2, .num_heads = 2, .num_kv_heads = 2});
    p.mask = random_mask(random, {2, 2, queries, 101});
    p.bias = random_bias(random, {1, 2, queries, 101});
    Problem q = p;
    const auto order = random_order(queries, queries);
    q.query = permuted_rows(p.query, order, 24);
    q.mask.data = permuted_rows(p.mask.data, order, 101);
    q.bias.data = permuted_rows(p.bias.data, order, 101);
    EXPECT_TRUE(same_bits(permuted_rows(run(p).out, order, 24), run(q).out)) << queries;
    EXPECT_TRUE(same_bits(permuted_rows(run(p).lse, order, 1), run(q).lse)) << queries;
  }
}

TEST_P(AttentionProperties, AConstantAddedToTheBiasOfARowMovesTheLogSumExpAndNothingElse) {
  Random random(5);
  Problem p = make_problem({.seqlen_q = 50, .seqlen_kv = 130, .head_dim = 16});
  p.bias = random_bias(random, {1, 1, 50, 130});
  Problem q = p;
  std::vector<float> constants(50);
  for (std::size_t i = 0; i < 50; ++i) {
    constants[i] = 8 * random.normal();
    for (std::size_t j = 0; j < 130; ++j) q.bias.data[i * 130 + j] += constants[i];
  }
  const Actual before = run(p);
  const Actual after = run(q);
  EXPECT_LE(largest_difference(before.out, after.out), 1e-5F);
  for (std::size_t i = 0; i < 50; ++i) EXPECT_NEAR(after.lse[i], before.lse[i] + constants[i], 1e-5);
}

TEST_P(AttentionProperties, APowerOfTwoMovesFromTheScaleToTheQueryWithoutChangingABit) {
  Problem p = make_problem({.seqlen_q = 50, .seqlen_kv = 130, .head_dim = 16});
  p.scale = 0.25F;
  Problem q = p;
  q.scale = 2.0F;
  for (float& x : q.query) x /= 8;
  EXPECT_TRUE(same_bits(run(p).out, run(q).out));
  EXPECT_TRUE(same_bits(run(p).lse, run(q).lse));
}

TEST_P(AttentionProperties, OutputsScaleWithTheValues) {
  const Problem p = make_causal({.seqlen_q = 50, .seqlen_kv = 130, .head_dim = 16});
  std::vector<float> doubled = run(p).out;
  for (float& x : doubled) x *= -4;
  Problem q = p;
  for (float& x : q.value) x *= -4;
  EXPECT_TRUE(same_bits(doubled, run(q).out));
}

TEST_P(AttentionProperties, AKeyGivenTwiceCountsTwice) {
  // Every key doubled: the same means, and ln 2 more.
  const Problem p = make_problem({.seqlen_q = 50, .seqlen_kv = 75, .head_dim = 16});
  Problem q = p;
  q.seqlen_kv = 150;
  q.key.insert(q.key.end(), p.key.begin(), p.key.end());
  q.value.insert(q.value.end(), p.value.begin(), p.value.end());
  const Actual once = run(p);
  const Actual twice = run(q);
  EXPECT_LE(largest_difference(once.out, twice.out), 2e-6F);
  for (std::size_t i = 0; i < 50; ++i) EXPECT_NEAR(twice.lse[i], once.lse[i] + std::log(2.0F), 2e-6);
}

TEST_P(AttentionProperties, PartsOfTheKeysMergeByTheirLogSumExpToTheWhole) {
  const Problem whole = make_problem({.seqlen_q = 50, .seqlen_kv = 201, .head_dim = 16});
  for (const std::size_t cut : {0, 1, 96, 100, 200, 201}) {
    Problem head = whole;
    head.mask.extents = {1, 1, 1, 201};
    head.mask.data.assign(201, 0);
    Problem tail = head;
    std::fill_n(head.mask.data.begin(), cut, std::uint8_t{1});
    std::fill(tail.mask.data.begin() + static_cast<long>(cut), tail.mask.data.end(), std::uint8_t{1});
    const Actual a = run(head);
    const Actual b = run(tail);
    const Actual all = run(whole);
    for (std::size_t i = 0; i < 50; ++i) {
      const double m = std::max(a.lse[i], b.lse[i]);
      const double wa = std::exp(a.lse[i] - m);
      const double wb = std::exp(b.lse[i] - m);
      EXPECT_NEAR(all.lse[i], m + std::log(wa + wb), 2e-6);
      for (std::size_t d = 0; d < 16; ++d) {
        EXPECT_NEAR(all.out[i * 16 + d], (wa * a.out[i * 16 + d] + wb * b.out[i * 16 + d]) / (wa + wb), 2e-6);
      }
    }
  }
}

}  // namespace
}  // namespace sdpa::testing
