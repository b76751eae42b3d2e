// What gradients of attention have to be whatever the numbers are.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "support/forward_options.hpp"
#include "support/gradients.hpp"

namespace sdpa::testing {
namespace {

class BackwardProperties : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, BackwardProperties, ::testing::ValuesIn(every_kernel()), kernel_name);

// Two heads that share keys, a softcap, a window, a mask: something of everything.
Problem some_problem(std::size_t rows = 59, std::size_t keys = 203) {
  Problem p = make_problem({.seqlen_q = rows,
                            .seqlen_kv = keys,
                            .head_dim = 20,
                            .head_dim_v = 12,
                            .batch = 2,
                            .num_heads = 2,
                            .num_kv_heads = 1});
  Random random(4);
  p.softcap = 2;
  p.mask = random_mask(random, {2, 1, rows, keys}, 0.8);
  return p;
}

TEST_P(BackwardProperties, TheGradientsOfTheScoresOfARowAddUpToZero) {
  // The weights of a row add up to 1 whatever the scores are. The gradient of a bias is that of the scores.
  Problem p = some_problem();
  p.bias = {std::vector<float>(2 * 2 * 59 * 203, 0.0F), {2, 2, 59, 203}};
  Upstream upstream = random_upstream(p);
  upstream.d_lse.clear();
  const Gradients<float> gradients = run_backward(table(), p, upstream);
  for (std::size_t row = 0; row < 2 * 2 * 59; ++row) {
    double sum = 0;
    double size = 0;
    for (std::size_t j = 0; j < 203; ++j) {
      sum += double{gradients.bias[row * 203 + j]};
      size += std::fabs(double{gradients.bias[row * 203 + j]});
    }
    EXPECT_GT(size, 0.1) << row;
    EXPECT_NEAR(sum, 0, 1e-6 * size + 1e-6) << row;
  }
}

TEST_P(BackwardProperties, WithAGradientOfTheLogSumExpAloneTheScoresHaveTheWeights) {
  Problem p = some_problem();
  p.bias = {std::vector<float>(2 * 2 * 59 * 203, 0.0F), {2, 2, 59, 203}};
  Upstream upstream;
  upstream.d_out.assign(2 * 2 * 59 * 12, 0.0F);
  upstream.d_lse.assign(2 * 2 * 59, 1.0F);
  const Gradients<float> gradients = run_backward(table(), p, upstream);
  const auto weights = reference::attention(p).weights;
  for (std::size_t n = 0; n < weights.size(); ++n) ASSERT_NEAR(gradients.bias[n], weights[n], 2e-6) << n;
  EXPECT_EQ(*std::max_element(gradients.value.begin(), gradients.value.end()), 0.0F);
}

TEST_P(BackwardProperties, APermutationOfTheKeysPermutesTheirGradientsAndLeavesThatOfTheQueries) {
  const Problem p = some_problem();
  const Upstream upstream = random_upstream(p);
  std::vector<std::size_t> order(203);
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(9);
  for (std::size_t n = order.size() - 1; n > 0; --n) {
    std::swap(order[n], order[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(n)))]);
  }
  const auto permute = [&](const std::vector<float>& values, std::size_t width) {
    std::vector<float> result(values.size());
    const std::size_t outer = values.size() / (203 * width);
    for (std::size_t o = 0; o < outer; ++o) {
      for (std::size_t j = 0; j < 203; ++j) {
        std::copy_n(values.begin() + static_cast<long>((o * 203 + order[j]) * width), width,
                    result.begin() + static_cast<long>((o * 203 + j) * width));
      }
    }
    return result;
  };
  Problem permuted = p;
  permuted.key = permute(p.key, 20);
  permuted.value = permute(p.value, 12);
  for (std::size_t row = 0; row < 2 * 59; ++row) {
    for (std::size_t j = 0; j < 203; ++j) permuted.mask.data[row * 203 + j] = p.mask.data[row * 203 + order[j]];
  }
  const Gradients<float> before = run_backward(table(), p, upstream);
  const Gradients<float> after = run_backward(table(), permuted, upstream);
  const auto expect_near = [](const char* what, const std::vector<float>& a, const std::vector<float>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t n = 0; n < a.size(); ++n) ASSERT_NEAR(a[n], b[n], 5e-6 * (1 + std::fabs(b[n]))) << what << n;
  };
  expect_near("query", after.query, before.query);
  expect_near("key", after.key, permute(before.key, 20));
  expect_near("value", after.value, permute(before.value, 12));
}

TEST_P(BackwardProperties, GradientsAreLinearInWhatComesFromAbove) {
  const Problem p = some_problem();
  const Upstream a = random_upstream(p, 1);
  const Upstream b = random_upstream(p, 2);
  const auto mix = [](const std::vector<float>& x, const std::vector<float>& y) {
    std::vector<float> sum(x.size());
    for (std::size_t n = 0; n < x.size(); ++n) sum[n] = 2 * x[n] - y[n];
    return sum;
  };
  const Gradients<float> of_a = run_backward(table(), p, a);
  const Gradients<float> of_b = run_backward(table(), p, b);
  const Gradients<float> of_both = run_backward(table(), p, {mix(a.d_out, b.d_out), mix(a.d_lse, b.d_lse)});
  for_each_gradient(of_a, of_b, [&](const char* what, const std::vector<float>& x, const std::vector<float>& y) {
    const std::vector<float>* z = std::string(what) == "query" ? &of_both.query
                                  : std::string(what) == "key" ? &of_both.key
                                                               : &of_both.value;
    for (std::size_t n = 0; n < x.size(); ++n) {
      const double expected = 2.0 * double{x[n]} - double{y[n]};
      ASSERT_NEAR((*z)[n], expected, 2e-5 * (1 + std::fabs(expected))) << what << ' ' << n;
    }
  });
  // A power of two scales every number exactly, where nothing is subnormal.
  Upstream twice = a;
  for (float& x : twice.d_out) x *= 2;
  for (float& x : twice.d_lse) x *= 2;
  const Gradients<float> of_twice = run_backward(table(), p, twice);
  for (std::size_t n = 0; n < of_a.key.size(); ++n) ASSERT_EQ(of_twice.key[n], 2 * of_a.key[n]) << n;
  for (std::size_t n = 0; n < of_a.query.size(); ++n) ASSERT_EQ(of_twice.query[n], 2 * of_a.query[n]) << n;
}

TEST_P(BackwardProperties, NothingFromAboveGivesZeros) {
  const Problem p = some_problem();
  Upstream nothing = random_upstream(p);
  std::fill(nothing.d_out.begin(), nothing.d_out.end(), 0.0F);
  nothing.d_lse.clear();
  const Gradients<float> gradients = run_backward(table(), p, nothing);
  for_each_gradient(gradients, gradients, [](const char* what, const std::vector<float>& x, const std::vector<float>&) {
    for (const float value : x) ASSERT_EQ(value, 0.0F) << what;
  });
  EXPECT_EQ(gradients.scale, 0.0F);
}

TEST_P(BackwardProperties, RowsThatSeeNothingHaveGradientsOfExactlyZero) {
  // PyTorch's rule for fully masked rows. Row 5 sees nothing, key 100 is seen by nobody.
  Problem p = some_problem();
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t j = 0; j < 203; ++j) p.mask.data[(b * 59 + 5) * 203 + j] = 0;
    for (std::size_t i = 0; i < 59; ++i) p.mask.data[(b * 59 + i) * 203 + 100] = 0;
  }
  const Gradients<float> gradients = run_backward(table(), p, random_upstream(p));
  for (std::size_t head = 0; head < 4; ++head) {
    for (std::size_t d = 0; d < 20; ++d) ASSERT_EQ(gradients.query[(head * 59 + 5) * 20 + d], 0.0F);
  }
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t d = 0; d < 20; ++d) ASSERT_EQ(gradients.key[(b * 203 + 100) * 20 + d], 0.0F);
    for (std::size_t d = 0; d < 12; ++d) ASSERT_EQ(gradients.value[(b * 203 + 100) * 12 + d], 0.0F);
  }
}

TEST_P(BackwardProperties, RowsWhoseScoresAreAllBelowFloat32HaveGradientsOfZero) {
  // Scores of -1e60: the forward pass sees nothing there, zeros and a log-sum-exp of -infinity.
  Problem p = make_problem({.seqlen_q = 3, .seqlen_kv = 5, .head_dim = 1});
  std::fill(p.query.begin(), p.query.end(), 1e30F);
  std::fill(p.key.begin(), p.key.end(), -1e30F);
  const Gradients<float> gradients = run_backward(table(), p, random_upstream(p));
  for_each_gradient(gradients, gradients, [](const char* what, const std::vector<float>& x, const std::vector<float>&) {
    for (const float value : x) ASSERT_EQ(value, 0.0F) << what;
  });
}

TEST_P(BackwardProperties, ScoresThatOneKeyDominatesHaveNoGradient) {
  // One key with all of the weight: P = 1 and D = dP, up to rounding; the others 0.
  Problem p = make_problem({.seqlen_q = 4, .seqlen_kv = 300, .head_dim = 4});
  p.scale = 1;
  std::fill(p.query.begin(), p.query.end(), 10.0F);
  std::fill(p.key.begin(), p.key.end(), 0.0F);
  std::fill_n(p.key.begin() + 4 * 150, 4, 10.0F);
  Upstream upstream = random_upstream(p);
  upstream.d_lse.clear();
  const Gradients<float> gradients = run_backward(table(), p, upstream);
  for (const float x : gradients.query) EXPECT_NEAR(x, 0, 1e-4);
  for (std::size_t j = 0; j < 300; ++j) {
    for (std::size_t d = 0; d < 4; ++d) {
      double sum = 0;
      for (std::size_t i = 0; i < 4; ++i) sum += double{upstream.d_out[i * 4 + d]};
      ASSERT_NEAR(gradients.value[j * 4 + d], j == 150 ? sum : 0, 1e-6);
    }
  }
}

TEST_P(BackwardProperties, AScaleOfZeroHasAGradient) {
  Problem p = some_problem();
  p.scale = 0.0F;
  p.softcap = 0;
  const Upstream upstream = random_upstream(p);
  expect_gradients_match(table(), p, upstream);
  const Gradients<float> gradients = run_backward(table(), p, upstream);
  EXPECT_GT(std::fabs(gradients.scale), 1e-3);
  for (const float x : gradients.key) ASSERT_EQ(x, 0.0F);
}

TEST_P(BackwardProperties, AllWeightsDroppedLeaveTheGradientOfTheLogSumExp) {
  Problem p = some_problem();
  p.dropout = {1, 7};
  Upstream upstream = random_upstream(p);
  expect_gradients_match(table(), p, upstream);
  upstream.d_lse.clear();
  const Gradients<float> gradients = run_backward(table(), p, upstream);
  for (const float x : gradients.query) ASSERT_EQ(x, 0.0F);
  for (const float x : gradients.value) ASSERT_EQ(x, 0.0F);
}

}  // namespace
}  // namespace sdpa::testing
