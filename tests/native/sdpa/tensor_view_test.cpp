#include "sdpa/tensor_view.hpp"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace sdpa {
namespace {

TEST(TensorView, StridesFollowTheLayout) {
  EXPECT_EQ(contiguous_strides({2, 3, 5, 7}), (Strides{105, 35, 7, 1}));
  EXPECT_EQ(contiguous_strides({2, 3, 5, 7}, Layout::kBlhd), (Strides{105, 7, 21, 1}));
}

TEST(TensorView, ExtentsOfOneAreRepeatedByAStrideOfZero) {
  EXPECT_EQ(broadcast_strides({1, 3, 1, 7}), (Strides{0, 7, 0, 1}));
  EXPECT_EQ(broadcast_strides({1, 1, 1, 1}), (Strides{0, 0, 0, 0}));
}

TEST(TensorView, IndexesInTheOrderBatchHeadRowColumn) {
  std::vector<int> data(2 * 3 * 5 * 7);
  for (std::size_t n = 0; n < data.size(); ++n) data[n] = static_cast<int>(n);
  const TensorView<int> view(data.data(), {2, 3, 5, 7});
  EXPECT_EQ(view(1, 2, 3, 4), 1 * 105 + 2 * 35 + 3 * 7 + 4);
  const TensorView<int> other(data.data(), {2, 3, 5, 7}, contiguous_strides({2, 3, 5, 7}, Layout::kBlhd));
  EXPECT_EQ(other(1, 2, 3, 4), 1 * 105 + 3 * 21 + 2 * 7 + 4);
  view(0, 0, 0, 1) = -1;
  EXPECT_EQ(data[1], -1);
}

TEST(InputView, HeadsLieWhereTheStridesSayInTheirOwnElementSize) {
  const std::array<std::uint16_t, 105> data{};
  const InputView view(data.data(), DType::kFloat16, {1, 3, 5, 7});
  EXPECT_EQ(view.head(0, 2), data.data() + 70);
  const std::array<float, 105> wide{};
  EXPECT_EQ(InputView(wide.data(), DType::kFloat32, {1, 3, 5, 7}).head(0, 2), wide.data() + 70);
}

TEST(DType, SizesAreThoseOfTheStorage) {
  EXPECT_EQ(size_of(DType::kFloat32), 4U);
  EXPECT_EQ(size_of(DType::kFloat16), 2U);
  EXPECT_EQ(size_of(DType::kBFloat16), 2U);
}

}  // namespace
}  // namespace sdpa
