// Weights without their matrix against the reference: every kind with every option, on every kernel table.
#include "support/weights.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "support/forward_options.hpp"
#include "support/slices.hpp"

namespace sdpa::testing {
namespace {

constexpr std::size_t kRows = 61;

class AttentionWeights : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, AttentionWeights, ::testing::ValuesIn(every_kernel()), kernel_name);

bool is_causal(const ForwardOption& option) { return std::string(option.name).starts_with("Causal"); }

void expect_every_kind(const KernelTable& table, const Problem& problem, const RunOptions& run) {
  Problem undropped = problem;
  undropped.dropout = {};
  const Expected truth = expected(undropped);
  for (const Choice& choice : every_choice(undropped)) {
    SCOPED_TRACE(name_of(choice));
    const Weights with = ask(table, undropped, choice, run);
    expect_weights(undropped, truth, choice, with);
    const Weights without = ask(table, undropped, choice, run, {.with_lse = false});
    EXPECT_TRUE(same_bits(with.values, without.values)) << "the lse of the forward pass gives other bits than none";
    EXPECT_EQ(with.indices, without.indices);
    EXPECT_TRUE(same_bits(with.entropy, without.entropy));
  }
}

TEST_P(AttentionWeights, MatchTheReferenceForEveryOption) {
  const auto options = forward_options();
  for (std::size_t n = 0; n < options.size(); ++n) {
    SCOPED_TRACE(options[n].name);
    const std::uint64_t one = std::uint64_t{1} << n;
    const auto [problem, run] = with_options(kRows, one, one);
    expect_every_kind(table(), problem, run);
  }
}

TEST_P(AttentionWeights, MatchTheReferenceForEveryPairWithCausal) {
  const auto options = forward_options();
  for (std::size_t n = 0; n < options.size(); ++n) {
    for (std::size_t causal = 0; causal < options.size(); ++causal) {
      if (!is_causal(options[causal]) || is_causal(options[n])) continue;
      SCOPED_TRACE(options[n].name + std::string(" with ") + options[causal].name);
      const std::uint64_t both = (std::uint64_t{1} << n) | (std::uint64_t{1} << causal);
      const auto [problem, run] = with_options(kRows, both, both);
      expect_every_kind(table(), problem, run);
    }
  }
}

TEST_P(AttentionWeights, MatchTheReferenceAroundBlocksPiecesAndTiles) {
  for (const std::size_t rows : {1, 2, 16, 17, 56, 57, 97, 192, 193, 200, 400}) {
    for (const std::size_t keys : {1, 95, 96, 97, 193}) {
      SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(keys) + " keys");
      expect_every_kind(table(), make_causal({.seqlen_q = rows, .seqlen_kv = keys, .head_dim = 5}, 3), {});
    }
  }
}

TEST_P(AttentionWeights, OfNothingAreEmptyOrZero) {
  for (const auto& [rows, keys] : {std::pair<std::size_t, std::size_t>{3, 0}, {0, 4}}) {
    const Problem p =
        make_problem({.seqlen_q = rows, .seqlen_kv = keys, .head_dim = 5, .num_heads = 2, .num_kv_heads = 2}, 3);
    const Choice top{Summary::kTopK, {0, 1}, {}, 2, {}, {}};
    const Weights largest = ask(table(), p, top);
    ASSERT_TRUE(largest.status.ok());
    EXPECT_EQ(largest.values, std::vector<float>(2 * rows * 2, 0.0F));
    EXPECT_EQ(largest.indices, std::vector<std::int32_t>(2 * rows * 2, -1));
    const Weights stats = ask(table(), p, {Summary::kStats, {0, 1}, {}, 0, {}, {}}, {}, {.with_lse = false});
    EXPECT_EQ(stats.entropy, std::vector<float>(2 * rows, 0.0F));
    EXPECT_EQ(stats.indices, std::vector<std::int32_t>(2 * rows, -1));
    std::vector<std::size_t> every_key(keys + 1);
    for (std::size_t j = 0; j <= keys; ++j) every_key[j] = j;
    const Weights sums = ask(table(), p, {Summary::kSum, {0, 1}, {}, 0, {0, rows}, every_key}, {}, {.defaults = true});
    ASSERT_TRUE(sums.status.ok());
    EXPECT_EQ(sums.values, std::vector<float>(2 * keys, 0.0F));
  }
}

TEST_P(AttentionWeights, RowsSumToOneAndColumnsToTheNumberOfRows) {
  Problem p = make_causal({.seqlen_q = 300, .seqlen_kv = 250, .head_dim = 16}, 9);
  std::vector<std::size_t> all(p.seqlen_q);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  const Weights rows = ask(table(), p, {Summary::kRows, {0}, all, 0, {}, {}});
  for (std::size_t i = 0; i < p.seqlen_q; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < p.seqlen_kv; ++j) sum += double{rows.values[i * p.seqlen_kv + j]};
    // The first 50 rows stand before the first key.
    EXPECT_NEAR(sum, i < 50 ? 0 : 1, 1e-6) << i;
  }
  std::vector<std::size_t> every_key(p.seqlen_kv + 1);
  for (std::size_t j = 0; j < every_key.size(); ++j) every_key[j] = j;
  const Weights columns = ask(table(), p, {Summary::kSum, {0}, {}, 0, {0, 300}, every_key}, {}, {.defaults = true});
  double total = 0;
  for (const float sum : columns.values) total += double{sum};
  EXPECT_NEAR(total, 250, 1e-4);
}

TEST_P(AttentionWeights, WithASinkSumToLess) {
  Problem p = make_problem({.seqlen_q = 3, .seqlen_kv = 40, .head_dim = 8}, 2);
  p.sinks.data = {200.0F};
  // The keys' weights are 0, and still the row sees them.
  const Weights stats = ask(table(), p, {Summary::kStats, {0}, {}, 0, {}, {}});
  EXPECT_EQ(stats.values, std::vector<float>(3, 0.0F));
  EXPECT_EQ(stats.indices, std::vector<std::int32_t>(3, 0));
  EXPECT_EQ(stats.entropy, std::vector<float>(3, 0.0F));
}

TEST_P(AttentionWeights, AreNeverLargerThanOneWhateverTheLse) {
  Problem p = make_problem({.seqlen_q = 64, .seqlen_kv = 64, .head_dim = 4}, 5);
  for (const float less : {0.0F, 1e-6F, 3.0F, 500.0F}) {
    const Weights stats = ask(table(), p, {Summary::kStats, {0}, {}, 0, {}, {}}, {}, {.lse_less = less});
    for (const float weight : stats.values) {
      EXPECT_LE(weight, 1.0F);
      EXPECT_GT(weight, 0.01F);
    }
  }
}

TEST_P(AttentionWeights, OfRowsWhoseLseIsMinusInfinityAreZero) {
  const Problem p = make_problem({.seqlen_q = 20, .seqlen_kv = 100, .head_dim = 4}, 5);
  const AskOptions nothing{.lse_less = std::numeric_limits<float>::infinity()};
  const Weights rows = ask(table(), p, {Summary::kRows, {0}, {0, 7, 19}, 0, {}, {}}, {}, nothing);
  EXPECT_EQ(rows.values, std::vector<float>(300, 0.0F));
  const Weights most = ask(table(), p, {Summary::kMax, {0}, {}, 0, {0, 20}, {0, 50, 100}}, {}, nothing);
  EXPECT_EQ(most.values, std::vector<float>(2, 0.0F));
}

TEST_P(AttentionWeights, EqualWeightsAreRankedByTheirKeys) {
  Problem p = make_problem({.seqlen_q = 20, .seqlen_kv = 150, .head_dim = 4}, 5);
  p.scale = 0.0F;
  const Weights top = ask(table(), p, {Summary::kTopK, {0}, {}, 7, {}, {}});
  for (std::size_t n = 0; n < top.indices.size(); ++n) EXPECT_EQ(top.indices[n], static_cast<std::int32_t>(n % 7));
  const Weights stats = ask(table(), p, {Summary::kStats, {0}, {}, 0, {}, {}});
  EXPECT_EQ(stats.indices, std::vector<std::int32_t>(20, 0));
  // More than there are keys.
  const Weights many = ask(table(), p, {Summary::kTopK, {0}, {}, 152, {}, {}});
  EXPECT_EQ(many.indices[149], 149);
  EXPECT_EQ(many.indices[150], -1);
  EXPECT_EQ(many.values[151], 0.0F);
}

TEST_P(AttentionWeights, WhatIsExcludedCannotReachThem) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  Problem p = make_causal({.seqlen_q = 70, .seqlen_kv = 200, .head_dim = 8}, 4);
  p.kv_lengths = {180};
  const Expected truth = expected(p);
  for (std::size_t n = 180 * p.head_dim; n < p.key.size(); ++n) p.key[n] = kNan;
  for (const Choice& choice : every_choice(p)) {
    SCOPED_TRACE(name_of(choice));
    expect_weights(p, truth, choice, ask(table(), p, choice));
  }
}

TEST_P(AttentionWeights, ARowOfNanIsNanWhereItSeesAndNowhereElse) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  Problem p = make_causal({.seqlen_q = 100, .seqlen_kv = 100, .head_dim = 8}, 4);
  p.query[60 * p.head_dim] = kNan;
  for (const bool with_lse : {true, false}) {
    const AskOptions how{.with_lse = with_lse};
    const Weights rows = ask(table(), p, {Summary::kRows, {0}, {59, 60, 61}, 0, {}, {}}, {}, how);
    for (std::size_t j = 0; j < 100; ++j) {
      EXPECT_FALSE(std::isnan(rows.values[j]));
      EXPECT_EQ(std::isnan(rows.values[100 + j]), j <= 60);
      EXPECT_FALSE(std::isnan(rows.values[200 + j]));
    }
    EXPECT_EQ(rows.values[199], 0.0F);
    const Weights stats = ask(table(), p, {Summary::kStats, {0}, {}, 0, {}, {}}, {}, how);
    const Weights top = ask(table(), p, {Summary::kTopK, {0}, {}, 1, {}, {}}, {}, how);
    for (std::size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(std::isnan(stats.values[i]), i == 60);
      EXPECT_EQ(std::isnan(stats.entropy[i]), i == 60);
      EXPECT_EQ(stats.indices[i] < 0, i == 60);
      EXPECT_EQ(std::isnan(top.values[i]), i == 60);
      EXPECT_EQ(top.indices[i] < 0, i == 60);
    }
    for (const Summary summary : {Summary::kMean, Summary::kMax}) {
      const Weights pooled = ask(table(), p, {summary, {0}, {}, 0, {0, 50, 70, 100}, {0, 60, 61, 100}}, {}, how);
      for (std::size_t n = 0; n < 9; ++n) EXPECT_EQ(std::isnan(pooled.values[n]), n == 3 || n == 4) << n;
    }
  }
}

TEST_P(AttentionWeights, PiecesOfRowsAddUpToTheBitsOfTheWhole) {
  Problem p =
      make_causal({.seqlen_q = 500, .seqlen_kv = 130, .head_dim = 8, .batch = 1, .num_heads = 2, .num_kv_heads = 1}, 6);
  std::vector<std::size_t> every_key(p.seqlen_kv + 1);
  for (std::size_t j = 0; j < every_key.size(); ++j) every_key[j] = j;
  const Weights whole = ask(table(), p, {Summary::kSum, {0, 1}, {}, 0, {0, 500}, every_key}, {}, {.sums = true});
  ASSERT_TRUE(whole.status.ok());
  std::vector<double> sums(whole.sums.size(), 0.0);
  for (std::size_t first = 0; first < 500; first += kWeightsPiece) {
    const std::size_t rows = std::min(kWeightsPiece, 500 - first);
    const Problem piece = query_rows(p, first, rows);
    const Weights part = ask(table(), piece, {Summary::kSum, {0, 1}, {}, 0, {0, rows}, every_key}, {}, {.sums = true});
    for (std::size_t n = 0; n < sums.size(); ++n) sums[n] += part.sums[n];
  }
  for (std::size_t n = 0; n < sums.size(); ++n) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(sums[n]), std::bit_cast<std::uint64_t>(whole.sums[n])) << n;
  }
  const Weights values = ask(table(), p, {Summary::kSum, {0, 1}, {}, 0, {0, 500}, every_key}, {}, {.defaults = true});
  for (std::size_t n = 0; n < sums.size(); ++n) EXPECT_EQ(values.values[n], static_cast<float>(sums[n])) << n;
}

TEST_P(AttentionWeights, OfARowDoNotDependOnTheOthers) {
  const Problem p = make_causal(
      {.seqlen_q = 150, .seqlen_kv = 210, .head_dim = 12, .batch = 2, .num_heads = 2, .num_kv_heads = 1}, 6);
  std::vector<std::size_t> all(p.seqlen_q);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  const std::vector<float> whole = ask(table(), p, {Summary::kRows, {0, 1}, all, 0, {}, {}}).values;
  for (const std::size_t i : {0, 1, 47, 48, 77, 149}) {
    const std::vector<float> one = ask(table(), p, {Summary::kRows, {1}, {i}, 0, {}, {}}).values;
    for (std::size_t b = 0; b < 2; ++b) {
      const std::vector<float> part(whole.begin() + static_cast<std::ptrdiff_t>(((b * 2 + 1) * 150 + i) * 210),
                                    whole.begin() + static_cast<std::ptrdiff_t>(((b * 2 + 1) * 150 + i + 1) * 210));
      const std::vector<float> alone(one.begin() + static_cast<std::ptrdiff_t>(b * 210),
                                     one.begin() + static_cast<std::ptrdiff_t>((b + 1) * 210));
      EXPECT_TRUE(same_bits(part, alone)) << i;
    }
  }
}

TEST_P(AttentionWeights, OfKeysInTheCacheOfAnotherTypeAreThoseOfItsNumbers) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    RunOptions run;
    run.key_dtype = dtype;
    Problem p = make_causal({.seqlen_q = 33, .seqlen_kv = 120, .head_dim = 7}, 8);
    for (float& x : p.key) x = std::round(x * 8) / 8;  // exact in 16 bits
    for (const Choice& choice : every_choice(p)) {
      const Weights narrow = ask(table(), p, choice, run);
      const Weights wide = ask(table(), p, choice);
      EXPECT_TRUE(same_bits(narrow.values, wide.values)) << name_of(choice);
    }
  }
}

}  // namespace
}  // namespace sdpa::testing
