// The oracle's gradients against central differences of its forward pass, for every option and every pair with causal.
//
// The loss is sum out * dO + sum lse * dLSE. One difference a tensor, along a random direction in which every element
// takes part: a gradient that is wrong in a single element is wrong in the sum. Inputs lie on a grid and the step is a
// power of two, so that every moved input is exact in float32; four points make the error of order step^4.
#include "reference/gradients.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "support/forward_options.hpp"

namespace sdpa::reference {
namespace {

using testing::forward_options;
using testing::ForwardOption;
using testing::Random;

constexpr double kStep = 0x1p-9;
// A slope acts on a score times a distance of up to 200.
constexpr double kSlopeStep = 0x1p-16;

// Multiples of 2^-11; a direction has multiples of 1/4, so that a step moves an element by such multiples, too.
void round_to_grid(std::vector<float>& values) {
  for (float& value : values) value = std::ldexp(std::round(std::ldexp(value, 11)), -11);
}

std::vector<float> direction(Random& random, std::size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.integer(1, 4)) * (random.chance(0.5) ? 0.25F : -0.25F);
  return values;
}

Upstream random_upstream(Random& random, const Problem& p) {
  const std::size_t rows = p.batch * p.num_heads * p.seqlen_q;
  return {random.normals(rows * p.head_dim_v), random.normals(rows)};
}

// The loss, in which rows beyond their length do not count.
double loss(const Problem& p, const Upstream& upstream) {
  const Result<double> result = attention(p);
  double sum = 0;
  for (std::size_t row = 0; row < result.lse.size(); ++row) {
    const std::size_t b = row / (p.num_heads * p.seqlen_q);
    const std::size_t i = row % p.seqlen_q;
    if (!p.query_lengths.empty() && static_cast<std::int64_t>(i) >= p.query_lengths[b]) continue;
    for (std::size_t c = 0; c < p.head_dim_v; ++c) {
      sum += result.out[row * p.head_dim_v + c] * double{upstream.d_out[row * p.head_dim_v + c]};
    }
    if (std::isfinite(result.lse[row])) sum += result.lse[row] * double{upstream.d_lse[row]};
  }
  return sum;
}

// Derivative of at(x) at 0.
template <class At>
double differentiate(double step, At&& at) {
  const double near = at(step) - at(-step);
  const double far = at(2 * step) - at(-2 * step);
  return (8 * near - far) / (12 * step);
}

// Differences along a random direction of one operand of the problem against the gradient.
template <class Select>
void expect_derivative(const char* what, const Problem& p, const Upstream& upstream, Random& random,
                       const std::vector<double>& gradient, double step, Select&& select) {
  Problem moved = p;
  std::vector<float>& values = select(moved);
  ASSERT_EQ(gradient.size(), values.size()) << what;
  const std::vector<float> start = values;
  const std::vector<float> way = direction(random, values.size());
  const double difference = differentiate(step, [&](double x) {
    for (std::size_t n = 0; n < values.size(); ++n) values[n] = start[n] + static_cast<float>(x) * way[n];
    return loss(moved, upstream);
  });
  double expected = 0;
  double size = 0;
  for (std::size_t n = 0; n < values.size(); ++n) {
    const double term = gradient[n] * double{way[n]};
    expected += term;
    size += std::fabs(term);
  }
  EXPECT_NEAR(difference, expected, 1e-8 * (size + 1)) << what;
}

void expect_derivatives(Problem p, std::uint64_t seed) {
  for (auto* values : {&p.query, &p.key, &p.value, &p.bias.data, &p.sinks.data, &p.alibi_slopes.data}) {
    round_to_grid(*values);
  }
  p.scale = std::ldexp(std::round(std::ldexp(p.scale ? *p.scale : 0.21F, 11)), -11);
  Random random(seed);
  const Upstream upstream = random_upstream(random, p);
  const Gradients<double> exact = gradients(p, upstream);
  const auto check = [&](const char* what, const std::vector<double>& gradient, auto&& select, double step = kStep) {
    expect_derivative(what, p, upstream, random, gradient, step, select);
  };
  check(
      "query", exact.query, [](Problem & q) -> auto& { return q.query; });
  check(
      "key", exact.key, [](Problem & q) -> auto& { return q.key; });
  check(
      "value", exact.value, [](Problem & q) -> auto& { return q.value; });
  check(
      "bias", exact.bias, [](Problem & q) -> auto& { return q.bias.data; });
  check(
      "sinks", exact.sinks, [](Problem & q) -> auto& { return q.sinks.data; });
  check(
      "alibi slopes", exact.alibi_slopes, [](Problem & q) -> auto& { return q.alibi_slopes.data; }, kSlopeStep);
  Problem moved = p;
  const double difference = differentiate(kStep, [&](double x) {
    moved.scale = *p.scale + static_cast<float>(x);
    return loss(moved, upstream);
  });
  EXPECT_NEAR(difference, exact.scale, 1e-8 * (gradient_sizes(p, upstream).scale + 1)) << "scale";
}

// Options of the problem; those that say how it is stored or what else comes out have no gradient of their own.
std::vector<std::size_t> options_of_the_function() {
  std::vector<std::size_t> chosen;
  for (std::size_t option = 0; option < forward_options().size(); ++option) {
    if (forward_options()[option].changes_out || forward_options()[option].shape != nullptr) chosen.push_back(option);
  }
  return chosen;
}

class ReferenceGradients : public ::testing::TestWithParam<std::size_t> {
 protected:
  const ForwardOption& option() const { return forward_options()[GetParam()]; }
};
INSTANTIATE_TEST_SUITE_P(, ReferenceGradients, ::testing::ValuesIn(options_of_the_function()),
                         [](const auto& tested) { return std::string(forward_options()[tested.param].name); });

TEST_P(ReferenceGradients, AreTheDerivativesOfTheForwardPass) {
  const std::uint64_t set = std::uint64_t{1} << GetParam();
  expect_derivatives(testing::with_options(18, set, set).problem, 1);
}

TEST_P(ReferenceGradients, AreTheDerivativesBesideCausal) {
  for (std::size_t other = 0; other < forward_options().size(); ++other) {
    const ForwardOption& causal = forward_options()[other];
    if (std::string(causal.name).rfind("Causal", 0) != 0) continue;
    if (option().exclusive != nullptr && option().exclusive == causal.exclusive) continue;
    SCOPED_TRACE(causal.name);
    const std::uint64_t both = std::uint64_t{1} << GetParam() | std::uint64_t{1} << other;
    expect_derivatives(testing::with_options(18, both, both).problem, 2);
  }
}

TEST(ReferenceGradientsOfABias, SumOverItsRepeatedDimensions) {
  for (const unsigned repeated : {0U, 1U, 2U, 4U, 8U, 5U, 15U}) {
    SCOPED_TRACE(repeated);
    Problem p = testing::make_problem(
        {.seqlen_q = 5, .seqlen_kv = 7, .head_dim = 3, .batch = 2, .num_heads = 4, .num_kv_heads = 2});
    std::array<std::size_t, 4> extents{2, 4, 5, 7};
    for (unsigned rank = 0; rank < 4; ++rank) {
      if ((repeated >> rank & 1U) != 0) extents[rank] = 1;
    }
    Random random(7);
    p.bias = testing::random_bias(random, extents);
    expect_derivatives(p, 3);
  }
}

TEST(ReferenceGradientsOfABias, OfMinusInfinityAreZero) {
  Problem p = testing::make_problem({.seqlen_q = 2, .seqlen_kv = 3, .head_dim = 2});
  p.bias = {{0, -std::numeric_limits<float>::infinity(), 0}, {1, 1, 1, 3}};
  Random random(1);
  const auto result = gradients(p, random_upstream(random, p));
  EXPECT_NE(result.bias[0], 0.0);
  EXPECT_EQ(result.bias[1], 0.0);
  EXPECT_EQ(result.key[2], 0.0);
  EXPECT_EQ(result.value[3], 0.0);
}

TEST(ReferenceGradientsByHand, OfTwoKeysOfOneNumber) {
  // Scores 0 and ln 3: weights 1/4 and 3/4; values 1 and 5: out = 4. With dO = 1, dS = P (v - 4) = -3/4 and 3/4.
  Problem p;
  p.seqlen_kv = 2;
  p.scale = 1;
  p.query = {1};
  p.key = {0, std::log(3.0F)};
  p.value = {1, 5};
  const auto result = gradients(p, {{1}, {}});
  EXPECT_NEAR(result.value[0], 0.25, 1e-7);
  EXPECT_NEAR(result.value[1], 0.75, 1e-7);
  EXPECT_NEAR(result.key[0], -0.75, 1e-7);
  EXPECT_NEAR(result.key[1], 0.75, 1e-7);
  EXPECT_NEAR(result.query[0], 0.75 * std::log(3.0), 1e-7);
  EXPECT_NEAR(result.scale, 0.75 * std::log(3.0), 1e-7);
  // With dLSE = 1 alone, dS = P.
  const auto of_lse = gradients(p, {{0}, {1}});
  EXPECT_NEAR(of_lse.key[0], 0.25, 1e-7);
  EXPECT_NEAR(of_lse.key[1], 0.75, 1e-7);
}

TEST(ReferenceGradientsByHand, OfRowsThatSeeNothingAreThoseOfTheirSink) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  Problem p = testing::make_problem({.seqlen_q = 2, .seqlen_kv = 3, .head_dim = 2});
  p.query_lengths = {1};
  p.sinks.data = {0.5F};
  const auto clean = gradients(p, {{1, 2, 0, 0}, {1, 0.25}});
  p.query[2] = kNan;
  const auto poisoned = gradients(p, {{1, 2, kNan, kNan}, {1, 0.25}});
  EXPECT_EQ(poisoned.query[2], 0.0);
  EXPECT_EQ(poisoned.query[0], clean.query[0]);
  EXPECT_EQ(poisoned.key, clean.key);
  EXPECT_EQ(poisoned.value, clean.value);
  EXPECT_EQ(poisoned.sinks, clean.sinks);
  // The log-sum-exp of the second row is the sink itself.
  const auto without = gradients(p, {{1, 2, kNan, kNan}, {1, 0}});
  EXPECT_DOUBLE_EQ(clean.sinks[0] - without.sinks[0], 0.25);
}

TEST(ReferenceGradientsInFloat, AreNearThoseInDouble) {
  const Problem p = testing::make_causal({.seqlen_q = 9, .seqlen_kv = 13, .head_dim = 8});
  Random random(5);
  const Upstream upstream = random_upstream(random, p);
  const auto exact = gradients(p, upstream);
  const auto plain = gradients_float32(p, upstream);
  const auto sizes = gradient_sizes(p, upstream);
  for (std::size_t n = 0; n < exact.query.size(); ++n) {
    EXPECT_NEAR(plain.query[n], exact.query[n], 1e-6 * (sizes.query[n] + 1)) << n;
    EXPECT_GE(sizes.query[n] * (1 + 1e-12), std::fabs(exact.query[n])) << n;
  }
}

}  // namespace
}  // namespace sdpa::reference
