// The generator against the known answers that its authors publish with their own code (kat_vectors of Random123).
#include "reference/philox.hpp"

#include <gtest/gtest.h>

namespace sdpa::reference {
namespace {

using Words = std::array<std::uint32_t, 4>;

TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // The digits of pi.
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, EachWordOfCounterAndKeyCounts) {
  const Words base = philox4x32({1, 2, 3, 4}, {5, 6});
  EXPECT_NE(philox4x32({0, 2, 3, 4}, {5, 6}), base);
  EXPECT_NE(philox4x32({1, 0, 3, 4}, {5, 6}), base);
  EXPECT_NE(philox4x32({1, 2, 0, 4}, {5, 6}), base);
  EXPECT_NE(philox4x32({1, 2, 3, 0}, {5, 6}), base);
  EXPECT_NE(philox4x32({1, 2, 3, 4}, {0, 6}), base);
  EXPECT_NE(philox4x32({1, 2, 3, 4}, {5, 0}), base);
}

}  // namespace
}  // namespace sdpa::reference
