// The logarithm of the log-sum-exp against the C library's.
#include "kernels/log.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace sdpa::testing {
namespace {

using kernels::log_of;

TEST(Log, IsRightTo2ToTheMinus43OverAllFloats) {
  // Every 1009th positive float, subnormal ones among them.
  const auto infinity = std::bit_cast<std::uint32_t>(std::numeric_limits<float>::infinity());
  for (std::uint32_t bits = 1; bits < infinity; bits += 1009) {
    const auto x = std::bit_cast<float>(bits);
    const double truth = std::log(static_cast<double>(x));
    ASSERT_LE(std::fabs(log_of(x) - truth), 0x1p-43 * std::fabs(truth)) << x;
  }
}

TEST(Log, IsRightNextToOneAndWhereTheExponentChanges) {
  for (const float middle : {1.0F, 0.5F, 2.0F, 0.70710678F, 1.41421356F, 0x1p-126F, 0x1p-149F}) {
    float x = middle;
    for (int n = 0; n < 1000; ++n) x = std::max(std::nextafter(x, 0.0F), 0x1p-149F);
    for (int n = 0; n < 2000; ++n, x = std::nextafter(x, 4.0F)) {
      const double truth = std::log(static_cast<double>(x));
      ASSERT_LE(std::fabs(log_of(x) - truth), 0x1p-43 * std::fabs(truth)) << x;
    }
  }
  EXPECT_EQ(log_of(1), 0);
}

TEST(Log, OfWhatHasNoLogarithm) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(log_of(0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(log_of(-0.0F), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(log_of(infinity), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(log_of(-1)));
  EXPECT_TRUE(std::isnan(log_of(-infinity)));
  EXPECT_TRUE(std::isnan(log_of(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace sdpa::testing
