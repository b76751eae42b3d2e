// How operands lie in memory, and the types they are stored in.
#include <array>
#include <bit>
#include <cmath>

#include <gtest/gtest.h>

#include "support/kernels.hpp"
#include "support/storage16.hpp"

namespace sdpa::testing {
namespace {

class AttentionStorage : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, AttentionStorage, ::testing::ValuesIn(every_kernel()), kernel_name);

Problem with_everything(std::uint64_t seed) {
  Random random(seed);
  Problem p = make_causal({.seqlen_q = 51,
                           .seqlen_kv = 101,
                           .head_dim = 21,
                           .head_dim_v = 10,
                           .batch = 2,
                           .num_heads = 4,
                           .num_kv_heads = 2},
                          seed);
  p.mask = random_mask(random, {2, 1, 51, 101});
  p.bias = random_bias(random, {1, 4, 51, 101});
  p.kv_lengths = {90, 101};
  return p;
}

TEST_P(AttentionStorage, ViewsInsideABufferFullOfNanGiveTheSameBitsAsContiguousTensors) {
  for (const std::size_t head_dim : {1, 3, 4, 5, 8, 16, 17, 31, 40, 64}) {
    const Problem p = make_problem(
        {.seqlen_q = 50, .seqlen_kv = 99, .head_dim = head_dim, .batch = 2, .num_heads = 2, .num_kv_heads = 2});
    const Actual contiguous = run(p);
    const Actual scattered = run(p, {.placement = Placement::kScattered});
    EXPECT_TRUE(same_bits(contiguous.out, scattered.out)) << describe(p);
    EXPECT_TRUE(same_bits(contiguous.lse, scattered.lse)) << describe(p);
  }
}

TEST_P(AttentionStorage, EveryKeyCountInsideABufferFullOfNan) {
  for (std::size_t keys = 1; keys <= 130; ++keys) {
    expect_matches_reference(make_problem({.seqlen_q = 1 + keys % 9, .seqlen_kv = keys, .head_dim = 1 + keys % 13}),
                             {.placement = Placement::kScattered});
  }
}

TEST_P(AttentionStorage, MaskBiasAndScoresInsideABufferFullOfNan) {
  for (const ScoresStage stage :
       {ScoresStage::kScaled, ScoresStage::kCapped, ScoresStage::kBiased, ScoresStage::kWeights}) {
    expect_matches_reference(with_everything(2), {.placement = Placement::kScattered, .scores_stage = stage});
  }
}

TEST_P(AttentionStorage, BothLayoutsGiveTheSameBits) {
  const Problem p = with_everything(3);
  const Actual bhld = run(p, {.placement = Placement::kBhld});
  const Actual blhd = run(p, {.placement = Placement::kBlhd});
  EXPECT_TRUE(same_bits(bhld.out, blhd.out));
  EXPECT_TRUE(same_bits(bhld.lse, blhd.lse));
}

TEST_P(AttentionStorage, EveryCombinationOfStorageTypes) {
  constexpr std::array kTypes{DType::kFloat32, DType::kFloat16, DType::kBFloat16};
  for (int combination = 0; combination < 81; ++combination) {
    RunOptions options;
    options.query_dtype = kTypes[static_cast<std::size_t>(combination % 3)];
    options.key_dtype = kTypes[static_cast<std::size_t>(combination / 3 % 3)];
    options.value_dtype = kTypes[static_cast<std::size_t>(combination / 9 % 3)];
    options.bias_dtype = kTypes[static_cast<std::size_t>(combination / 27)];
    Problem p = with_everything(static_cast<std::uint64_t>(combination));
    round_to(p.query, options.query_dtype);
    round_to(p.key, options.key_dtype);
    round_to(p.value, options.value_dtype);
    round_to(p.bias.data, options.bias_dtype);
    options.placement = combination % 2 == 0 ? Placement::kScattered : Placement::kBlhd;
    SCOPED_TRACE(combination);
    expect_matches_reference(p, options);
  }
}

TEST_P(AttentionStorage, SixteenBitKeysAndValuesGiveTheSameBitsAsTheirWidenedCopies) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    for (const std::size_t rows : {1, 3, 50}) {
      Problem p = make_problem({.seqlen_q = rows, .seqlen_kv = 200, .head_dim = 37});
      round_to(p.key, dtype);
      round_to(p.value, dtype);
      EXPECT_TRUE(same_bits(run(p).out, run(p, {.key_dtype = dtype, .value_dtype = dtype}).out)) << describe(p);
    }
  }
}

// All 65 536 patterns as the value of the only key: the output is the value itself.
std::vector<float> widened_values(const KernelTable& table, DType dtype) {
  std::vector<std::uint16_t> patterns(65536);
  for (std::size_t n = 0; n < patterns.size(); ++n) patterns[n] = static_cast<std::uint16_t>(n);
  const Problem p = make_problem({.head_dim = 1, .head_dim_v = patterns.size()});
  Arguments arguments(p, {});
  arguments.tensors.value = InputView(patterns.data(), dtype, {1, 1, 1, patterns.size()});
  EXPECT_TRUE(status_of(table, arguments).ok());
  return arguments.out();
}

// The same as keys: the raw score of a query of 1 is the key itself.
std::vector<float> widened_keys(const KernelTable& table, DType dtype) {
  std::vector<std::uint16_t> patterns(65536);
  for (std::size_t n = 0; n < patterns.size(); ++n) patterns[n] = static_cast<std::uint16_t>(n);
  Problem p = make_problem({.seqlen_kv = patterns.size(), .head_dim = 1});
  p.query = {1};
  p.scale = 1.0F;
  Arguments arguments(p, {.scores_stage = ScoresStage::kScaled});
  arguments.tensors.key = InputView(patterns.data(), dtype, {1, 1, patterns.size(), 1});
  EXPECT_TRUE(status_of(table, arguments).ok());
  return arguments.scores();
}

template <class Decode>
void expect_decoded(const std::vector<float>& actual, Decode decode, float relative) {
  for (std::size_t n = 0; n < 65536; ++n) {
    const float truth = decode(static_cast<std::uint16_t>(n));
    if (std::isnan(truth)) {
      ASSERT_TRUE(std::isnan(actual[n])) << n;
    } else if (relative == 0 || std::isinf(truth)) {
      ASSERT_EQ(actual[n], truth) << n;
    } else {
      ASSERT_NEAR(actual[n], truth, relative * std::fabs(truth) + 1e-44) << n;
    }
  }
}

TEST_P(AttentionStorage, EveryFloat16ValueIsWidenedExactly) {
  expect_decoded(widened_values(table(), DType::kFloat16), from_float16, 0);
}

TEST_P(AttentionStorage, EveryBFloat16ValueIsWidenedExactly) {
  expect_decoded(widened_values(table(), DType::kBFloat16), from_bfloat16, 0);
}

TEST_P(AttentionStorage, EveryFloat16KeyIsWidened) {
  expect_decoded(widened_keys(table(), DType::kFloat16), from_float16, 3e-7F);
}

TEST_P(AttentionStorage, EveryBFloat16KeyIsWidened) {
  expect_decoded(widened_keys(table(), DType::kBFloat16), from_bfloat16, 3e-7F);
}

TEST_P(AttentionStorage, SixteenBitQueriesOfEveryKindOfNumber) {
  // One query a row against a key of 1: the score is the query.
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const auto decode = [&](std::uint16_t bits) {
      return dtype == DType::kFloat16 ? from_float16(bits) : from_bfloat16(bits);
    };
    std::vector<std::uint16_t> patterns;
    for (std::uint32_t bits = 0; bits < 65536; bits += 97) patterns.push_back(static_cast<std::uint16_t>(bits));
    Problem p = make_problem({.seqlen_q = patterns.size(), .head_dim = 1});
    p.key = {1};
    p.scale = 1.0F;
    Arguments arguments(p, {.scores_stage = ScoresStage::kScaled});
    arguments.tensors.query = InputView(patterns.data(), dtype, {1, 1, patterns.size(), 1});
    ASSERT_TRUE(status_of(table(), arguments).ok());
    const std::vector<float> scores = arguments.scores();
    for (std::size_t n = 0; n < patterns.size(); ++n) {
      const float truth = decode(patterns[n]);
      if (std::isnan(truth)) {
        EXPECT_TRUE(std::isnan(scores[n])) << patterns[n];
      } else if (std::isinf(truth)) {
        EXPECT_EQ(scores[n], truth) << patterns[n];
      } else {
        EXPECT_NEAR(scores[n], truth, 3e-7 * std::fabs(truth) + 1e-44) << patterns[n];
      }
    }
  }
}

}  // namespace
}  // namespace sdpa::testing
