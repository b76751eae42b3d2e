// Gradients with every option alone and with every other one, against the reference, on every kernel table.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/forward_options.hpp"
#include "support/gradients.hpp"

namespace sdpa::testing {
namespace {

constexpr std::size_t kRows = 61;

std::uint64_t bit(std::size_t option) { return std::uint64_t{1} << option; }

bool exclude_each_other(const ForwardOption& a, const ForwardOption& b) {
  return a.exclusive != nullptr && b.exclusive == a.exclusive;
}

// All but those that say what else the forward pass writes.
std::vector<std::size_t> options_with_gradients() {
  std::vector<std::size_t> chosen;
  for (std::size_t option = 0; option < forward_options().size(); ++option) {
    const OptionedProblem tried = with_options(1, bit(option), bit(option));
    if (tried.run.scores_stage == ScoresStage::kNone && !tried.run.lse) chosen.push_back(option);
  }
  return chosen;
}

class BackwardOptions : public ::testing::TestWithParam<std::size_t> {
 protected:
  std::size_t option() const { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(, BackwardOptions, ::testing::ValuesIn(options_with_gradients()),
                         [](const auto& tested) { return std::string(forward_options()[tested.param].name); });

TEST_P(BackwardOptions, GiveTheReferencesGradientsAloneAndWithEachOther) {
  const auto options = forward_options();
  for (const std::size_t other : options_with_gradients()) {
    if (other < option()) continue;
    if (other != option() && exclude_each_other(options[option()], options[other])) continue;
    SCOPED_TRACE(std::string(options[option()].name) + " with " + options[other].name);
    const std::uint64_t both = bit(option()) | bit(other);
    const auto [problem, run] = with_options(kRows, both, both);
    const Upstream upstream = random_upstream(problem);
    const ExpectedGradients truth = expected_gradients(problem, upstream);
    for (const KernelTable* table : every_kernel()) {
      SCOPED_TRACE(table->name);
      expect_close_gradients(problem, truth, run_backward(*table, problem, upstream, run));
    }
  }
}

TEST_P(BackwardOptions, AreNotIgnored) {
  const ForwardOption& tried = forward_options()[option()];
  if (!tried.changes_out) return;
  // What follows from the log-sum-exp of the forward pass alone: rows beyond their length have -infinity there.
  if (!with_options(kRows, bit(option()), bit(option())).problem.query_lengths.empty()) return;
  // The forward pass has the option in both runs: what differs is the backward pass alone.
  const auto with = with_options(kRows, bit(option()), bit(option()));
  const auto without = with_options(kRows, 0, bit(option()));
  RunOptions run_options = with.run;
  run_options.lse = true;
  for (const KernelTable* table : every_kernel()) {
    const Actual forward = run(*table, with.problem, run_options);
    const Upstream upstream = random_upstream(with.problem);
    const auto differentiate = [&](const Problem& problem) {
      const BackwardArguments arguments(problem, run_options, upstream, forward);
      EXPECT_TRUE(backward_status(*table, arguments).ok());
      return arguments.gradients(problem);
    };
    const Gradients<float> a = differentiate(with.problem);
    const Gradients<float> b = differentiate(without.problem);
    double largest = 0;
    for (std::size_t n = 0; n < a.query.size(); ++n) {
      // A NaN is a difference, too: without the option the log-sum-exp is not that of the scores.
      const double difference = std::fabs(double{a.query[n]} - double{b.query[n]});
      largest = std::isfinite(difference) ? std::max(largest, difference) : 1;
    }
    // A sink is in the log-sum-exp already: what it changes is the gradient of its own.
    if (with.problem.sinks.present()) {
      EXPECT_GT(std::fabs(a.sinks.at(0)), 1e-3);
    } else {
      EXPECT_GT(largest, 1e-3) << table->name;
    }
  }
}

TEST(BackwardOptionsOfTheCall, TheGradientOfTheLogSumExpCounts) {
  const Problem p = make_causal({.seqlen_q = 7, .seqlen_kv = 100, .head_dim = 8});
  Upstream upstream = random_upstream(p);
  for (const KernelTable* table : every_kernel()) {
    const Gradients<float> with = run_backward(*table, p, upstream);
    Upstream without = upstream;
    without.d_lse.clear();
    expect_gradients_match(*table, p, without);
    EXPECT_GT(std::fabs(with.query[0] - run_backward(*table, p, without).query[0]), 1e-3);
    Upstream zero = upstream;
    std::fill(zero.d_lse.begin(), zero.d_lse.end(), 0.0F);
    EXPECT_TRUE(same_gradient_bits(run_backward(*table, p, zero), run_backward(*table, p, without)));
  }
}

TEST(BackwardOptionsOfTheCall, TheSlopeOfASoftcapIsRightWhereTheCapIsNear) {
  // One query of 1 and two keys for each slope: the gradient of a key is that of its score. Of 1 - tanh^2 float32 has
  // two digits left at 6 caps, and none at 9.
  for (const double caps : {0.01, 0.5, 2.0, 4.0, 6.0, 9.0}) {
    Problem p = make_problem({.seqlen_q = 1, .seqlen_kv = 2, .head_dim = 1});
    p.scale = 1;
    p.softcap = 1.5;
    p.query = {1};
    p.key = {static_cast<float>(caps * p.softcap), static_cast<float>(-0.9 * caps * p.softcap)};
    p.value = {1, -2};
    Upstream upstream = random_upstream(p);
    upstream.d_out = {1};
    upstream.d_lse.clear();
    const ExpectedGradients truth = expected_gradients(p, upstream);
    for (const KernelTable* table : every_kernel()) {
      SCOPED_TRACE(table->name);
      const Gradients<float> actual = run_backward(*table, p, upstream);
      for (std::size_t j = 0; j < 2; ++j) {
        EXPECT_NEAR(actual.key[j] / truth.exact.key[j], 1, 1e-6 + 3e-7 * caps) << caps;
      }
    }
  }
}

TEST(BackwardOptionsOfTheCall, NothingFlowsThroughASoftcapFarBeyondTheCap) {
  for (const float size : {40.0F, 1e10F, 1e19F, 1e30F}) {
    Problem p = make_problem({.seqlen_q = 1, .seqlen_kv = 2, .head_dim = 1});
    p.scale = 1;
    p.softcap = 1;
    p.query = {size};
    p.key = {size, -size};
    for (const KernelTable* table : every_kernel()) {
      const Gradients<float> actual = run_backward(*table, p, random_upstream(p));
      for (const float gradient : {actual.query[0], actual.key[0], actual.key[1]}) EXPECT_EQ(gradient, 0.0F) << size;
    }
  }
}

TEST(BackwardOptionsOfTheCall, ABiasOfAnyShapeHasTheSumsOverItsRepeatedDimensions) {
  for (const KernelTable* table : every_kernel()) {
    for (unsigned repeated = 0; repeated < 16; ++repeated) {
      for (const auto& [batch, kv_heads] : {std::pair{2, 2}, {1, 2}, {2, 1}, {1, 1}}) {
        SCOPED_TRACE(repeated);
        Problem p = make_problem({.seqlen_q = 70,
                                  .seqlen_kv = 101,
                                  .head_dim = 5,
                                  .batch = static_cast<std::size_t>(batch),
                                  .num_heads = static_cast<std::size_t>(2 * kv_heads),
                                  .num_kv_heads = static_cast<std::size_t>(kv_heads)});
        std::array<std::size_t, 4> extents{p.batch, p.num_heads, p.seqlen_q, p.seqlen_kv};
        for (unsigned rank = 0; rank < 4; ++rank) {
          if ((repeated >> rank & 1U) != 0) extents[rank] = 1;
        }
        Random random(repeated + 1);
        p.bias = random_bias(random, extents);
        p.bias.data[0] = 0.25F;
        if (repeated != 15) p.bias.data[p.bias.data.size() / 2] = -std::numeric_limits<float>::infinity();
        RunOptions run;
        run.placement = repeated % 2 == 0 ? Placement::kScattered : Placement::kBhld;
        expect_gradients_match(*table, p, random_upstream(p), run);
      }
    }
  }
}

TEST(BackwardOptionsOfTheCall, GradientsThatAreNotAskedForAreNotNeeded) {
  Problem p = make_problem({.seqlen_q = 5, .seqlen_kv = 5, .head_dim = 4, .num_heads = 2, .num_kv_heads = 1});
  Random random(1);
  p.bias = random_bias(random, {1, 2, 5, 5});
  p.sinks.data = {0.5F, -1};
  p.alibi_slopes.data = {0.5F, 0.25F};
  for (const KernelTable* table : every_kernel()) {
    const Actual forward = run(*table, p);
    const Upstream upstream = random_upstream(p);
    const BackwardArguments all(p, {}, upstream, forward);
    ASSERT_TRUE(backward_status(*table, all).ok());
    BackwardArguments few(p, {}, upstream, forward);
    few.tensors.d_bias = {};
    few.tensors.d_scale = few.tensors.d_sinks = few.tensors.d_alibi_slopes = {};
    ASSERT_TRUE(backward_status(*table, few).ok());
    const Gradients<float> expected = all.gradients(p);
    const Gradients<float> actual = few.gradients(p);
    EXPECT_TRUE(same_bits(actual.query, expected.query));
    EXPECT_TRUE(same_bits(actual.key, expected.key));
    EXPECT_TRUE(same_bits(actual.value, expected.value));
    EXPECT_EQ(actual.bias[0], kUnwritten);
  }
}

}  // namespace
}  // namespace sdpa::testing
