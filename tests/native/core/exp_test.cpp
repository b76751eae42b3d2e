// The exponential of the sink's gradient against the C library's.
#include "core/exp.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace sdpa::testing {
namespace {

using core::exp_of;

TEST(Exp, IsRightTo2ToTheMinus39OverAllNormalResults) {
  for (double x = -708; x <= 709; x += 0.00137) {
    const double truth = std::exp(x);
    ASSERT_LE(std::fabs(exp_of(x) - truth), 0x1p-39 * truth) << x;
  }
  EXPECT_EQ(exp_of(0), 1);
}

TEST(Exp, PastItsEnds) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_GT(exp_of(-708), 0);
  for (const double x : {-709.0, -1e4, -1e300, -infinity}) EXPECT_EQ(exp_of(x), 0) << x;
  for (const double x : {709.5, 1e4, 1e300, infinity}) EXPECT_EQ(exp_of(x), infinity) << x;
  EXPECT_TRUE(std::isnan(exp_of(std::numeric_limits<double>::quiet_NaN())));
}

}  // namespace
}  // namespace sdpa::testing
