// What is excluded never reaches a result, whatever it holds; what is attended does.
//
// The method: poison one key, and compare bit for bit with the clean run. Rows that may not see the key have to keep
// their bits; rows that may see it have to become NaN.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/bounds.hpp"
#include "support/kernels.hpp"

namespace sdpa::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class AttentionMasking : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, AttentionMasking, ::testing::ValuesIn(every_kernel()), kernel_name);

// Keys at the bounds of vectors and of tiles, and the last ones.
std::vector<std::size_t> some_keys(const KernelTable& table) {
  const std::size_t tile = table.keys_per_tile;
  return {0, 1, 3, 4, table.width, tile - 1, tile, tile + 1, 2 * tile - 1, 2 * tile, kKeys - 2, kKeys - 1};
}

// Compares rows: those that see key j against NaN, the others against the clean run.
void expect_poisoned_exactly_where_seen(const Problem& p, std::size_t j, const Actual& clean, const Actual& poisoned,
                                        std::size_t first_column, std::size_t last_column, bool lse_too) {
  for (std::size_t row = 0; row < clean.lse.size(); ++row) {
    const std::size_t b = row / (p.num_heads * p.seqlen_q);
    const std::size_t h = row / p.seqlen_q % p.num_heads;
    const bool seen = p.allowed(b, h, row % p.seqlen_q, j);
    for (std::size_t d = 0; d < p.head_dim_v; ++d) {
      const std::size_t n = row * p.head_dim_v + d;
      if (seen && d >= first_column && d < last_column) {
        ASSERT_TRUE(std::isnan(poisoned.out[n])) << "row " << row << " column " << d << " hides the NaN of key " << j;
      } else {
        ASSERT_TRUE(same_bits({clean.out[n]}, {poisoned.out[n]}))
            << "key " << j << " leaks into row " << row << " column " << d;
      }
    }
    if (lse_too && seen) {
      ASSERT_TRUE(std::isnan(poisoned.lse[row])) << row;
    } else {
      ASSERT_TRUE(same_bits({clean.lse[row]}, {poisoned.lse[row]})) << row;
    }
  }
}

TEST_P(AttentionMasking, ANanInAKeyReachesTheRowsThatAttendToItAndNoOthers) {
  for (const Bound& bound : kBounds) {
    SCOPED_TRACE(bound.name);
    const Problem clean = bounded(bound);
    const Actual before = run(clean);
    for (const std::size_t j : some_keys(table())) {
      Problem poisoned = clean;
      for (std::size_t b = 0; b < clean.batch; ++b) poisoned.key[(b * kKeys + j) * kHeadDim + j % kHeadDim] = kNan;
      expect_poisoned_exactly_where_seen(clean, j, before, run(poisoned), 0, kHeadDimV, true);
    }
  }
}

TEST_P(AttentionMasking, ANanInAValueReachesItsColumnOfTheRowsThatAttendToItAndNothingElse) {
  for (const Bound& bound : kBounds) {
    SCOPED_TRACE(bound.name);
    const Problem clean = bounded(bound);
    const Actual before = run(clean);
    for (const std::size_t j : some_keys(table())) {
      Problem poisoned = clean;
      const std::size_t column = j % kHeadDimV;
      for (std::size_t b = 0; b < clean.batch; ++b) poisoned.value[(b * kKeys + j) * kHeadDimV + column] = kNan;
      expect_poisoned_exactly_where_seen(clean, j, before, run(poisoned), column, column + 1, false);
    }
  }
}

TEST_P(AttentionMasking, GarbageInKeysAndValuesThatNoRowSeesChangesNoBit) {
  for (const Bound& bound : kBounds) {
    SCOPED_TRACE(bound.name);
    const Problem clean = bounded(bound);
    const Actual before = run(clean);
    for (const float garbage : {kNan, kInfinity, -kInfinity, 3.4e38F, -3.4e38F}) {
      Problem poisoned = clean;
      for (std::size_t b = 0; b < clean.batch; ++b) {
        for (std::size_t j = 0; j < kKeys; ++j) {
          bool seen = false;
          for (std::size_t row = 0; row < 2 * kQueries; ++row)
            seen = seen || clean.allowed(b, row / kQueries, row % kQueries, j);
          if (seen) continue;
          std::fill_n(poisoned.key.begin() + static_cast<long>((b * kKeys + j) * kHeadDim), kHeadDim, garbage);
          std::fill_n(poisoned.value.begin() + static_cast<long>((b * kKeys + j) * kHeadDimV), kHeadDimV, garbage);
        }
      }
      const Actual after = run(poisoned);
      EXPECT_TRUE(same_bits(before.out, after.out)) << garbage;
      EXPECT_TRUE(same_bits(before.lse, after.lse)) << garbage;
    }
  }
}

TEST_P(AttentionMasking, InfiniteKeysAndValuesReachNoRowThatDoesNotSeeThem) {
  for (const Bound& bound : kBounds) {
    SCOPED_TRACE(bound.name);
    const Problem clean = bounded(bound);
    const Actual before = run(clean);
    for (const std::size_t j : some_keys(table())) {
      Problem poisoned = clean;
      for (std::size_t b = 0; b < clean.batch; ++b) {
        poisoned.key[(b * kKeys + j) * kHeadDim] = kInfinity;
        poisoned.value[(b * kKeys + j) * kHeadDimV] = -kInfinity;
      }
      const Actual after = run(poisoned);
      for (std::size_t row = 0; row < before.lse.size(); ++row) {
        if (clean.allowed(row / (2 * kQueries), row / kQueries % 2, row % kQueries, j)) continue;
        for (std::size_t d = 0; d < kHeadDimV; ++d) {
          ASSERT_TRUE(same_bits({before.out[row * kHeadDimV + d]}, {after.out[row * kHeadDimV + d]}))
              << j << " into " << row;
        }
        ASSERT_TRUE(same_bits({before.lse[row]}, {after.lse[row]})) << j << " into " << row;
      }
    }
  }
}

TEST_P(AttentionMasking, TheBiasOfExcludedCellsIsNotUsed) {
  for (const Bound& bound : kBounds) {
    SCOPED_TRACE(bound.name);
    Random random(23);
    Problem clean = bounded(bound);
    clean.bias = random_bias(random, {clean.batch, 2, kQueries, kKeys});
    const Actual before = run(clean);
    for (const float garbage : {kNan, kInfinity, 3.4e38F}) {
      Problem poisoned = clean;
      for (std::size_t n = 0; n < poisoned.bias.data.size(); ++n) {
        const std::size_t row = n / kKeys;
        if (!clean.allowed(row / (2 * kQueries), row / kQueries % 2, row % kQueries, n % kKeys))
          poisoned.bias.data[n] = garbage;
      }
      const Actual after = run(poisoned);
      EXPECT_TRUE(same_bits(before.out, after.out)) << garbage;
      EXPECT_TRUE(same_bits(before.lse, after.lse)) << garbage;
    }
  }
}

TEST_P(AttentionMasking, KeysBehindABiasOfMinusInfinityDoNotLeak) {
  Random random(29);
  Problem clean = bounded(kBounds[0]);
  clean.bias = random_bias(random, {1, 1, 1, kKeys});
  for (std::size_t j = 0; j < kKeys; j += 3) clean.bias.data[j] = -kInfinity;
  const Actual before = run(clean);
  for (const float garbage : {kNan, kInfinity, -kInfinity}) {
    Problem poisoned = clean;
    for (std::size_t b = 0; b < clean.batch; ++b) {
      for (std::size_t j = 0; j < kKeys; j += 3) {
        std::fill_n(poisoned.key.begin() + static_cast<long>((b * kKeys + j) * kHeadDim), kHeadDim, garbage);
        std::fill_n(poisoned.value.begin() + static_cast<long>((b * kKeys + j) * kHeadDimV), kHeadDimV, garbage);
      }
    }
    const Actual after = run(poisoned);
    EXPECT_TRUE(same_bits(before.out, after.out)) << garbage;
    EXPECT_TRUE(same_bits(before.lse, after.lse)) << garbage;
  }
}

TEST_P(AttentionMasking, ARowWithANanQueryPoisonsOnlyItself) {
  for (const Bound& bound : kBounds) {
    SCOPED_TRACE(bound.name);
    const Problem clean = bounded(bound);
    const Actual before = run(clean);
    for (const std::size_t poison : {std::size_t{0}, std::size_t{7}, std::size_t{48}, kQueries, 3 * kQueries + 1}) {
      if (poison >= before.lse.size()) continue;
      Problem poisoned = clean;
      poisoned.query[poison * kHeadDim + 2] = kNan;
      const Actual after = run(poisoned);
      for (std::size_t row = 0; row < before.lse.size(); ++row) {
        const bool nan = row == poison && !sees_nothing(clean, row);
        for (std::size_t d = 0; d < kHeadDimV; ++d) {
          const std::size_t n = row * kHeadDimV + d;
          if (nan) {
            ASSERT_TRUE(std::isnan(after.out[n])) << row;
          } else {
            ASSERT_TRUE(same_bits({before.out[n]}, {after.out[n]})) << poison << " leaks into " << row;
          }
        }
        ASSERT_EQ(std::isnan(after.lse[row]), nan) << row;
      }
    }
  }
}

TEST_P(AttentionMasking, QueriesPastTheirLengthAreNeitherReadNorNan) {
  Problem p = make_problem({.seqlen_q = kQueries, .seqlen_kv = kKeys, .head_dim = kHeadDim, .batch = 2});
  p.query_lengths = {50, 0};
  const Actual before = run(p);
  for (std::size_t b = 0; b < 2; ++b) {
    const auto length = static_cast<std::size_t>(p.query_lengths[b]);
    std::fill(p.query.begin() + static_cast<long>((b * kQueries + length) * kHeadDim),
              p.query.begin() + static_cast<long>((b + 1) * kQueries * kHeadDim), kNan);
  }
  const Actual after = run(p);
  EXPECT_TRUE(same_bits(before.out, after.out));
  EXPECT_TRUE(same_bits(before.lse, after.lse));
  EXPECT_EQ(after.out[50 * kHeadDim], 0.0F);
  EXPECT_EQ(after.lse[50], -kInfinity);
}

TEST_P(AttentionMasking, ABiasOfNanOrPlusInfinityMakesItsRowNanAndNoOther) {
  for (const float garbage : {kNan, kInfinity}) {
    for (const std::size_t j : some_keys(table())) {
      Random random(31);
      Problem clean = make_problem({.seqlen_q = kQueries, .seqlen_kv = kKeys, .head_dim = kHeadDim});
      clean.bias = random_bias(random, {1, 1, kQueries, kKeys});
      const Actual before = run(clean);
      Problem poisoned = clean;
      const std::size_t row = 13;
      poisoned.bias.data[row * kKeys + j] = garbage;
      const Actual after = run(poisoned);
      for (std::size_t n = 0; n < before.out.size(); ++n) {
        if (n / kHeadDim == row) {
          ASSERT_TRUE(std::isnan(after.out[n])) << garbage << " at key " << j << " is hidden";
        } else {
          ASSERT_TRUE(same_bits({before.out[n]}, {after.out[n]})) << garbage << " at key " << j << " leaks";
        }
      }
    }
  }
}

TEST_P(AttentionMasking, ANanValueOfAKeyWithNextToNoWeightStillPoisons) {
  Problem p = make_problem({.seqlen_q = 1, .seqlen_kv = 300, .head_dim = 1});
  p.scale = 1.0F;
  p.query = {1};
  std::fill(p.key.begin(), p.key.end(), -1000.0F);
  p.key[150] = 0;
  for (const std::size_t j : {0, 149, 151, 299}) {
    Problem poisoned = p;
    poisoned.value[j] = kNan;
    EXPECT_TRUE(std::isnan(run(poisoned).out[0])) << j;
  }
}

TEST_P(AttentionMasking, SixteenBitGarbageBehindAnyBoundDoesNotLeak) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const RunOptions options{.key_dtype = dtype, .value_dtype = dtype};
    Problem p = make_causal({.seqlen_q = 50, .seqlen_kv = 150, .head_dim = 8, .batch = 2});
    p.kv_lengths = {140, 51};
    const Actual before = run(p, options);
    for (std::size_t b = 0; b < 2; ++b) {
      for (auto* values : {&p.key, &p.value}) {
        std::fill(values->begin() + static_cast<long>((b * 150 + static_cast<std::size_t>(p.kv_lengths[b])) * 8),
                  values->begin() + static_cast<long>((b + 1) * 150 * 8), kNan);
      }
    }
    const Actual after = run(p, options);
    EXPECT_TRUE(same_bits(before.out, after.out));
    EXPECT_TRUE(same_bits(before.lse, after.lse));
  }
}

}  // namespace
}  // namespace sdpa::testing
