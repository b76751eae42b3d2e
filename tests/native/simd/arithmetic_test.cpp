// The arithmetic of each kernel table: what the softmax and the products are made of.
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "support/kernels.hpp"

namespace sdpa::testing {
namespace {

class Arithmetic : public KernelTest {
 protected:
  const kernels::Probes& probes() const { return *table().probes; }
};
INSTANTIATE_TEST_SUITE_P(, Arithmetic, ::testing::ValuesIn(every_kernel()), kernel_name);

// A value that no compiler can know, so that the arithmetic happens where the kernel runs.
float at_run_time(float value) {
  volatile float hidden = value;
  return hidden;
}

TEST_P(Arithmetic, MultiplyAddAddsTheProduct) {
  // Compilers have been seen to make 23 or 32 of this.
  EXPECT_EQ(probes().madd(at_run_time(2), at_run_time(3), at_run_time(10)), 16.0F);
  EXPECT_EQ(probes().madd(at_run_time(-2), at_run_time(3), at_run_time(10)), 4.0F);
  EXPECT_EQ(probes().madd(at_run_time(2), at_run_time(3), at_run_time(-10)), -4.0F);
  EXPECT_EQ(probes().madd(at_run_time(0), at_run_time(3), at_run_time(10)), 10.0F);
}

TEST_P(Arithmetic, MultiplyAddIsFusedWhereTheTableSaysSo) {
  // (1 + e)(1 - e) - 1 = -e^2 in one rounding; the product alone rounds to 1.
  const float e = at_run_time(0x1p-13F);
  const float result = probes().madd(1 + e, 1 - e, at_run_time(-1));
  EXPECT_EQ(result, table().fused ? -0x1p-26F : 0.0F);
}

TEST_P(Arithmetic, WidthIsThatOfTheInstructionSet) {
  const std::string name = table().name;
  if (name == "avx512") {
    EXPECT_EQ(table().width, 16U);
  } else if (name.starts_with("avx2")) {
    EXPECT_EQ(table().width, 8U);
  } else {
    EXPECT_EQ(table().width, 4U);
  }
}

std::vector<float> evenly(float from, float to, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t n = 0; n < count; ++n) {
    values[n] = from + (to - from) * static_cast<float>(n) / static_cast<float>(count - 1);
  }
  return values;
}

double largest_relative_error(const std::vector<float>& x, const std::vector<float>& y, double (*exact)(double)) {
  double largest = 0;
  for (std::size_t n = 0; n < x.size(); ++n) {
    const double truth = exact(x[n]);
    if (truth != 0) largest = std::max(largest, std::fabs(y[n] - truth) / std::fabs(truth));
    if (std::isnan(y[n])) return std::numeric_limits<double>::infinity();
  }
  return largest;
}

double exact_exp(double x) { return std::exp(x); }
double exact_tanh(double x) { return std::tanh(x); }

TEST_P(Arithmetic, ExpIsRightToTwoUnitsInTheLastPlaceWhereAWeightMatters) {
  // The scaling by log2(e) happens in this probe, too: its rounding is |x| half units, so the bound grows with |x|.
  for (const auto& [from, to, bound] :
       {std::tuple{-1.0F, 0.0F, 2.5e-7}, {-10.0F, 0.0F, 1.0e-6}, {-50.0F, 0.0F, 5.0e-6}}) {
    const std::vector<float> x = evenly(from, to, 100'001);
    std::vector<float> y(x.size());
    probes().exp(x.data(), y.data(), x.size());
    EXPECT_LE(largest_relative_error(x, y, exact_exp), bound) << from;
  }
}

TEST_P(Arithmetic, ExpOfZeroIsOneExactly) {
  const std::vector<float> x{0.0F, -0.0F, 0.0F, -1e-45F, -1e-30F};
  std::vector<float> y(x.size());
  probes().exp(x.data(), y.data(), x.size());
  for (const float value : y) EXPECT_EQ(value, 1.0F);
}

TEST_P(Arithmetic, ExpIsExactlyZeroFarBelowAndNeverSubnormal) {
  // Subnormal weights would cost an assist of the processor for each product.
  const std::vector<float> x{-75,  -80,  -87,   -88,    -90,    -100,
                             -104, -150, -1e4F, -1e30F, -3e38F, -std::numeric_limits<float>::infinity()};
  std::vector<float> y(x.size(), 1);
  probes().exp(x.data(), y.data(), x.size());
  for (std::size_t n = 0; n < x.size(); ++n) EXPECT_EQ(y[n], 0.0F) << x[n];

  const std::vector<float> range = evenly(-120, 0, 100'001);
  std::vector<float> weights(range.size());
  probes().exp(range.data(), weights.data(), range.size());
  for (std::size_t n = 0; n < range.size(); ++n) {
    EXPECT_TRUE(weights[n] == 0 || weights[n] >= std::numeric_limits<float>::min()) << range[n];
  }
}

TEST_P(Arithmetic, ExpAboutItsEndIsNeitherNegativeNorSubnormal) {
  // Every float from -70 to -69: the end lies among them, whatever it is exactly.
  std::vector<float> x;
  for (float at = -70; at < -69; at = std::nextafter(at, 0.0F)) x.push_back(at);
  std::vector<float> y(x.size());
  probes().exp(x.data(), y.data(), x.size());
  for (std::size_t n = 0; n < x.size(); ++n) {
    ASSERT_TRUE(y[n] == 0 || y[n] >= std::numeric_limits<float>::min()) << x[n] << " gives " << y[n];
  }
}

TEST_P(Arithmetic, ExpOfNanIsNan) {
  const std::vector<float> x{0, std::numeric_limits<float>::quiet_NaN(), -1};
  std::vector<float> y(x.size());
  probes().exp(x.data(), y.data(), x.size());
  EXPECT_EQ(y[0], 1.0F);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_NEAR(y[2], std::exp(-1.0F), 1e-7);
}

TEST_P(Arithmetic, ExpNeverExceedsOneAndFallsWithItsArgument) {
  const std::vector<float> x = evenly(-2, 0, 200'001);
  std::vector<float> y(x.size());
  probes().exp(x.data(), y.data(), x.size());
  for (std::size_t n = 1; n < x.size(); ++n) {
    ASSERT_LE(y[n], 1.0F) << x[n];
    // Two neighbours may be exchanged by rounding, by no more than the error bound.
    ASSERT_GE(y[n], y[n - 1] * (1 - 5e-7F)) << x[n];
  }
}

TEST_P(Arithmetic, TanhIsRightFromTheSmallestToTheLargest) {
  std::vector<float> x = evenly(-12, 12, 100'001);
  for (float tiny = 1e-38F; tiny < 1; tiny *= 1.37F) {
    x.push_back(tiny);
    x.push_back(-tiny);
  }
  std::vector<float> y(x.size());
  probes().tanh(x.data(), y.data(), x.size());
  EXPECT_LE(largest_relative_error(x, y, exact_tanh), 3e-7);
}

TEST_P(Arithmetic, TanhIsAsRightAsAFloatCanBeWhereItComesNearToOne) {
  // A float below 1 is right to 3e-8 at best. What this probe adds, the rounding of its argument, is below that, too.
  for (const auto& [from, to, bound] : {std::tuple{1.0F, 2.0F, 1.4e-7}, {2.0F, 12.0F, 1.0e-7}}) {
    const std::vector<float> x = evenly(from, to, 100'001);
    std::vector<float> y(x.size());
    probes().tanh(x.data(), y.data(), x.size());
    EXPECT_LE(largest_relative_error(x, y, exact_tanh), bound) << from;
  }
}

TEST_P(Arithmetic, TanhIsOddAndNeverExceedsOne) {
  std::vector<float> x = evenly(0, 40, 100'001);
  for (const float edge : {1e-45F, 1e-38F, 1e-20F, 9.01F, 34.65F, 34.66F}) x.push_back(edge);
  std::vector<float> minus(x.size());
  for (std::size_t n = 0; n < x.size(); ++n) minus[n] = -x[n];
  std::vector<float> y(x.size());
  std::vector<float> minus_y(x.size());
  probes().tanh(x.data(), y.data(), x.size());
  probes().tanh(minus.data(), minus_y.data(), x.size());
  for (std::size_t n = 0; n < x.size(); ++n) {
    ASSERT_LE(y[n], 1.0F) << x[n];
    ASSERT_EQ(y[n], -minus_y[n]) << x[n];
    ASSERT_EQ(std::signbit(y[n]), std::signbit(x[n])) << x[n];
    ASSERT_EQ(std::signbit(minus_y[n]), std::signbit(minus[n])) << x[n];
  }
}

TEST_P(Arithmetic, TanhSaturatesAtOneAndKeepsNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x{20,     -20,      1e4F,      -1e4F, 3e38F,
                             -3e38F, infinity, -infinity, 0,     std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> y(x.size());
  probes().tanh(x.data(), y.data(), x.size());
  for (std::size_t n = 0; n + 2 < x.size(); ++n) EXPECT_EQ(y[n], x[n] > 0 ? 1.0F : -1.0F) << x[n];
  EXPECT_EQ(y[x.size() - 2], 0.0F);
  EXPECT_TRUE(std::isnan(y.back()));
}

TEST_P(Arithmetic, RaggedCountsTouchNothingPastTheirEnd) {
  for (std::size_t count = 0; count <= 2 * table().width + 1; ++count) {
    std::vector<float> x(count, -1);
    std::vector<float> y(count + table().width, kUnwritten);
    probes().exp(x.data(), y.data(), count);
    for (std::size_t n = 0; n < y.size(); ++n) {
      if (n < count) {
        EXPECT_NEAR(y[n], std::exp(-1.0F), 1e-7);
      } else {
        EXPECT_EQ(y[n], kUnwritten);
      }
    }
  }
}

TEST_P(Arithmetic, PeakLoopCountsTheOperationsOfEachStep) {
  const double ten = probes().peak_flops(10);
  EXPECT_GT(ten, 0);
  EXPECT_DOUBLE_EQ(probes().peak_flops(1000), 100 * ten);
}

}  // namespace
}  // namespace sdpa::testing
