// The oracle of chosen rows is the reference, and the fast conversions are the slow ones.
#include "grids/oracle.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "grids/storage.hpp"
#include "support/problems.hpp"

namespace sdpa::grids {
namespace {

using testing::Random;

TEST(OracleOfRows, HasTheBitsOfTheReferenceInBothPrecisions) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const reference::Problem p = testing::random_problem(seed);
    std::vector<std::size_t> picks;
    for (std::size_t i = seed % 3; i < p.seqlen_q; i += 1 + seed % 4) picks.push_back(i);
    const ChosenRows rows = chosen_rows(p, picks);
    const auto exact = reference::attention(p);
    const auto plain = reference::attention_float32(p);
    for (std::size_t n = 0; n < rows.exact.lse.size(); ++n) {
      const std::size_t row = n / picks.size() * p.seqlen_q + picks[n % picks.size()];
      ASSERT_EQ(rows.exact.lse[n], exact.lse[row]) << testing::describe(p);
      ASSERT_EQ(rows.plain.lse[n], plain.lse[row]) << testing::describe(p);
      for (std::size_t d = 0; d < p.head_dim_v; ++d) {
        ASSERT_EQ(rows.exact.out[n * p.head_dim_v + d], exact.out[row * p.head_dim_v + d]) << testing::describe(p);
        ASSERT_EQ(rows.plain.out[n * p.head_dim_v + d], plain.out[row * p.head_dim_v + d]) << testing::describe(p);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 10000U);
}

TEST(FastStorage, IsTheSlowOne) {
  Random random(3);
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const bool is_half = dtype == DType::kFloat16;
    for (std::uint32_t n = 0; n < 65536; ++n) {
      const auto bits = static_cast<std::uint16_t>(n);
      const float slow = is_half ? testing::from_float16(bits) : testing::from_bfloat16(bits);
      const float fast = from_bits(bits, dtype);
      ASSERT_TRUE(fast == slow || (std::isnan(fast) && std::isnan(slow))) << n;
      // Numbers of any exponent, halfway between two of the type, and next to that.
      for (const double step : {random.uniform(), 0.5, 0.5 + 0x1p-13, 0.5 - 0x1p-13}) {
        const auto value = static_cast<float>(slow * (1 + step * (is_half ? 0x1p-10 : 0x1p-7)));
        ASSERT_EQ(to_bits(value, dtype), is_half ? testing::to_float16(value) : testing::to_bfloat16(value)) << value;
      }
    }
  }
}

}  // namespace
}  // namespace sdpa::grids
