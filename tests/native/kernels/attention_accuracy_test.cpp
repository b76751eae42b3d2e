// Error against double on unit normal data: at most 2e-6 absolute up to 32 768 keys, and at most twice that of a plain
// float32 computation (see expect_close).
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "case_table.hpp"
#include "support/kernels.hpp"
#include "support/sanitizer.hpp"

namespace sdpa::testing {
namespace {

class AttentionAccuracy : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, AttentionAccuracy, ::testing::ValuesIn(every_kernel()), kernel_name);

// The last query rows of one KV head of a case, at the positions that they have in the whole.
Problem sample(const cases::Case& c, std::size_t rows) {
  Random random(c.seqlen_kv + c.head_dim);
  const std::size_t group = c.num_heads / c.num_kv_heads;
  Problem p = make_problem(
      {.seqlen_q = std::min(rows, c.seqlen_q), .seqlen_kv = c.seqlen_kv, .head_dim = c.head_dim, .num_heads = group},
      c.head_dim);
  p.align = Align::kLowerRight;
  p.causal = c.option == cases::Option::kCausal;
  if (c.option == cases::Option::kMask) p.mask = random_mask(random, {1, 1, p.seqlen_q, p.seqlen_kv}, 0.9);
  if (c.option == cases::Option::kBias) p.bias = random_bias(random, {1, group, p.seqlen_q, p.seqlen_kv});
  if (c.option == cases::Option::kSoftcap) p.softcap = cases::kSoftcap;
  if (c.option == cases::Option::kWindow) {
    p.window_left = cases::kWindowLeft;
    p.window_right = 0;
  }
  return p;
}

TEST_P(AttentionAccuracy, EveryCaseOfTheTableIsWithinItsTolerance) {
  for (const cases::Case& c : cases::kCases) {
    SCOPED_TRACE(c.name());
    // Fewer rows of the long cases under a sanitizer.
    const Problem p = sample(c, kSanitized ? 3 : 50);
    const Expected truth = expected(p);
    const Actual actual = run(p);
    expect_close(p, truth, actual, ScoresStage::kNone);
    double largest = 0;
    for (std::size_t n = 0; n < actual.out.size(); ++n)
      largest = std::max(largest, std::fabs(actual.out[n] - truth.exact.out[n]));
    EXPECT_LE(largest, c.tolerance());
    RecordProperty(std::string(c.nickname), std::to_string(largest));
  }
}

TEST_P(AttentionAccuracy, TheWeightOfASecondKeyIsRightToAFewUnitsInTheLastPlace) {
  // out = w of a key with score -x beside one with score 0: the logistic function, through the whole path.
  constexpr std::size_t kRows = 5000;
  Problem p = make_problem({.seqlen_q = kRows, .seqlen_kv = 2, .head_dim = 1});
  p.scale = 1.0F;
  p.key = {0, 1};
  p.value = {0, 1};
  for (std::size_t i = 0; i < kRows; ++i) p.query[i] = -40.0F * static_cast<float>(i) / kRows;
  const Actual actual = run(p);
  for (std::size_t i = 0; i < kRows; ++i) {
    const double truth = 1 / (1 + std::exp(-double{p.query[i]}));
    // exp's own error, and that of rounding a score of that size.
    const double bound = 5e-7 + 1.5e-7 * std::fabs(p.query[i]);
    ASSERT_NEAR(actual.out[i], truth, bound * truth) << p.query[i];
  }
}

TEST_P(AttentionAccuracy, TheSumOfManyEqualWeightsDoesNotDrift) {
  // 32 768 equal weights: a plain float sum in order would be exact here, a careless one of 1/S would not.
  Problem p = make_problem({.seqlen_q = 2, .seqlen_kv = 32768, .head_dim = 1});
  std::fill(p.query.begin(), p.query.end(), 0.0F);
  for (std::size_t j = 0; j < p.value.size(); ++j) p.value[j] = j % 2 == 0 ? 1.0F : 3.0F;
  const Actual actual = run(p);
  EXPECT_NEAR(actual.out[0], 2.0F, 1e-6);
  EXPECT_NEAR(actual.lse[0], std::log(32768.0F), 2e-6);
}

}  // namespace
}  // namespace sdpa::testing
