// Who sees whom along the sequence: chunks, global keys, segments, packed sequences.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/kernels.hpp"

namespace sdpa::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::int32_t kSmallest = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t kLargest = std::numeric_limits<std::int32_t>::max();

constexpr Shape kShape{
    .seqlen_q = 53, .seqlen_kv = 211, .head_dim = 19, .head_dim_v = 13, .batch = 2, .num_heads = 2, .num_kv_heads = 1};

class AttentionSequences : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, AttentionSequences, ::testing::ValuesIn(every_kernel()), kernel_name);

// Each place that the queries can have.
template <class Visit>
void for_each_alignment(Problem p, Visit visit) {
  for (const Align align : {Align::kLowerRight, Align::kUpperLeft}) {
    p.align = align;
    visit(p);
  }
  p.align = Align::kOffset;
  for (const std::int64_t offset : {-30, 96, 1000}) {
    p.query_offset = offset;
    visit(p);
  }
}

TEST_P(AttentionSequences, ChunksOfEverySize) {
  for (const std::int64_t chunk : {1, 2, 3, 16, 47, 48, 49, 95, 96, 97, 211, 1000}) {
    Problem p = make_problem(kShape);
    p.chunk = chunk;
    for_each_alignment(p, [&](Problem& aligned) {
      aligned.causal = false;
      expect_matches_reference(aligned);
      aligned.causal = true;
      expect_matches_reference(aligned);
    });
  }
}

TEST_P(AttentionSequences, AChunkThatHoldsEverythingChangesNoBit) {
  Problem p = make_problem(kShape);
  p.align = Align::kUpperLeft;
  const std::vector<float> plain = run(p).out;
  for (const std::int64_t chunk : {std::int64_t{211}, std::int64_t{1} << 53}) {
    p.chunk = chunk;
    EXPECT_TRUE(same_bits(run(p).out, plain)) << chunk;
  }
}

TEST_P(AttentionSequences, GlobalKeysStayUnderWindowsAndChunks) {
  for (const std::int64_t keys : {1, 3, 4, 5, 48, 95, 96, 97, 150, 211, 5000}) {
    for (const auto& [left, right] : {std::pair{0, 0}, {3, 0}, {40, 5}, {-1, 7}, {150, -1}}) {
      Problem p = make_problem(kShape);
      p.global_keys = keys;
      p.window_left = left;
      p.window_right = right;
      for_each_alignment(p, [&](const Problem& aligned) { expect_matches_reference(aligned); });
    }
    Problem p = make_problem(kShape);
    p.global_keys = keys;
    p.chunk = 30;
    for_each_alignment(p, [&](const Problem& aligned) { expect_matches_reference(aligned); });
  }
}

TEST_P(AttentionSequences, GlobalKeysAloneChangeNothingAndNeedNoAlignment) {
  Problem p = make_problem(kShape);
  const std::vector<float> plain = run(p).out;
  p.global_keys = 9;
  EXPECT_TRUE(same_bits(run(p).out, plain));
}

TEST_P(AttentionSequences, TheHoleBetweenGlobalKeysAndTheWindowIsNotRead) {
  // Many tiles of NaN between the two, for one row, for a few, and for a group of heads that are stacked.
  for (const std::size_t rows : {1, 3, 20}) {
    for (const std::size_t kv_heads : {4, 2}) {
      Problem p =
          make_problem({.seqlen_q = rows, .seqlen_kv = 900, .head_dim = 16, .num_heads = 4, .num_kv_heads = kv_heads});
      p.causal = true;
      p.align = Align::kLowerRight;
      p.global_keys = 4;
      p.window_left = 30;
      for (auto* values : {&p.key, &p.value}) {
        for (std::size_t head = 0; head < kv_heads; ++head) {
          std::fill(values->begin() + static_cast<long>((head * 900 + 4) * 16),
                    values->begin() + static_cast<long>((head * 900 + 900 - rows - 30) * 16), kNan);
        }
      }
      expect_matches_reference(p);
    }
  }
}

TEST_P(AttentionSequences, SegmentsOfAnyIdsInAnyOrder) {
  for (const auto& ids : {std::vector<std::int32_t>{0, 1}, {-1, 0}, {kSmallest, kLargest}, {5, 5}, {3, 1, 2, 0}}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      Random random(seed);
      Problem p = make_problem(kShape, seed);
      const auto count = static_cast<std::int32_t>(ids.size());
      p.query_segments = random_segments(random, 2, 53, count);
      p.key_segments = random_segments(random, 2, 211, count);
      for (auto* segments : {&p.query_segments, &p.key_segments}) {
        for (std::int32_t& id : *segments) id = ids[static_cast<std::size_t>(id)];
      }
      expect_matches_reference(p);
      p.causal = true;
      p.align = Align::kLowerRight;
      expect_matches_reference(p);
    }
  }
}

TEST_P(AttentionSequences, SegmentsInRunsOneAfterTheOther) {
  for (const std::size_t run_length : {1, 7, 48, 96, 100}) {
    Problem p = make_problem({.seqlen_q = 211, .seqlen_kv = 211, .head_dim = 10, .batch = 2});
    for (std::size_t n = 0; n < 2 * 211; ++n)
      p.query_segments.push_back(static_cast<std::int32_t>(n % 211 / run_length));
    p.key_segments = p.query_segments;
    expect_matches_reference(p);
    p.kv_lengths = {200, 13};
    expect_matches_reference(p);
    // Descending ids.
    std::reverse(p.query_segments.begin(), p.query_segments.end());
    std::reverse(p.key_segments.begin(), p.key_segments.end());
    expect_matches_reference(p);
  }
}

TEST_P(AttentionSequences, AQueryWhoseSegmentHasNoKeyIsAnEmptyRow) {
  Problem p = make_problem({.seqlen_q = 3, .seqlen_kv = 5, .head_dim = 4});
  p.query_segments = {1, 9, 2};
  p.key_segments = {1, 1, 2, 2, 2};
  const Actual actual = run(p);
  EXPECT_EQ(std::vector<float>(actual.out.begin() + 4, actual.out.begin() + 8), std::vector<float>(4, 0.0F));
  EXPECT_EQ(actual.lse[1], -std::numeric_limits<float>::infinity());
  expect_matches_reference(p);
}

TEST_P(AttentionSequences, SegmentIdsOfKeysPastTheirLengthDoNotMatter) {
  Random random(3);
  Problem p = make_problem(kShape);
  p.kv_lengths = {120, 50};
  p.query_segments = random_segments(random, 2, 53, 3);
  p.key_segments = random_segments(random, 2, 211, 3);
  const std::vector<float> before = run(p).out;
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t j = static_cast<std::size_t>(p.kv_lengths[b]); j < 211; ++j) p.key_segments[b * 211 + j] = 1;
  }
  EXPECT_TRUE(same_bits(run(p).out, before));
}

Problem packed(std::vector<std::int32_t> queries, std::vector<std::int32_t> keys, std::size_t spare = 0) {
  Problem p = make_problem({.seqlen_q = static_cast<std::size_t>(queries.back()) + spare,
                            .seqlen_kv = static_cast<std::size_t>(keys.back()) + spare,
                            .head_dim = 14,
                            .head_dim_v = 9,
                            .num_heads = 4,
                            .num_kv_heads = 2});
  p.query_starts = std::move(queries);
  p.key_starts = std::move(keys);
  return p;
}

TEST_P(AttentionSequences, PackedSequencesOfAnyLengthsWithEachPositionalOption) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Random random(seed);
    const auto count = static_cast<std::size_t>(random.choose({2, 3, 9, 40}));
    const Problem p = packed(random_starts(random, count, 140), random_starts(random, count, 260), seed % 3);
    expect_matches_reference(p);
    const auto with = [&](auto change) {
      Problem changed = p;
      change(changed);
      expect_matches_reference(changed);
      for_each_alignment(changed, [&](const Problem& aligned) { expect_matches_reference(aligned); });
    };
    with([](Problem& q) { q.causal = true; });
    with([](Problem& q) {
      q.window_left = 11;
      q.window_right = 2;
      q.global_keys = 3;
    });
    with([](Problem& q) { q.chunk = 9; });
    with([](Problem& q) { q.alibi_slopes = {{0.1F, 0.2F, 0.3F, 0.4F}, false}; });
  }
}

TEST_P(AttentionSequences, ManyShortPackedSequences) {
  std::vector<std::int32_t> starts{0};
  for (std::int32_t n = 0; n < 300; ++n) starts.push_back(starts.back() + n % 4);
  Problem p = packed(starts, starts);
  p.causal = true;
  expect_matches_reference(p);
}

TEST_P(AttentionSequences, RowsAndKeysBeyondTheLastStartSeeNothingAndAreNotSeen) {
  Problem p = packed({0, 5, 11}, {0, 40, 70}, 30);
  for (auto* values : {&p.key, &p.value}) {
    const std::size_t width = values->size() / 2 / 100;
    for (std::size_t head = 0; head < 2; ++head) {
      std::fill(values->begin() + static_cast<long>((head * 100 + 70) * width),
                values->begin() + static_cast<long>((head + 1) * 100 * width), kNan);
    }
  }
  expect_matches_reference(p);
  const Actual actual = run(p);
  EXPECT_EQ(actual.lse[11], -std::numeric_limits<float>::infinity());
  EXPECT_EQ(actual.out[11 * 9], 0.0F);
}

TEST_P(AttentionSequences, OnePackedSequenceGivesTheBitsOfACallThatIsNotPacked) {
  Problem p = packed({0, 60}, {0, 210});
  p.causal = true;
  p.align = Align::kLowerRight;
  const Actual one = run(p);
  p.query_starts.clear();
  p.key_starts.clear();
  const Actual plain = run(p);
  EXPECT_TRUE(same_bits(one.out, plain.out));
  EXPECT_TRUE(same_bits(one.lse, plain.lse));
}

TEST_P(AttentionSequences, NothingOfOnePackedSequenceReachesAnother) {
  Problem p = packed({0, 30, 33, 90}, {0, 50, 150, 200});
  const Actual before = run(p);
  for (std::size_t head = 0; head < 2; ++head) {
    std::fill_n(p.key.begin() + static_cast<long>((head * 200 + 50) * 14), 100 * 14, kNan);
    std::fill_n(p.value.begin() + static_cast<long>((head * 200 + 50) * 9), 100 * 9, kNan);
  }
  const Actual after = run(p);
  for (std::size_t row = 0; row < before.lse.size(); ++row) {
    const bool second = row % 90 >= 30 && row % 90 < 33;
    for (std::size_t n = row * 9; n < (row + 1) * 9; ++n) {
      if (second) {
        ASSERT_TRUE(std::isnan(after.out[n])) << row;
      } else {
        ASSERT_TRUE(same_bits({before.out[n]}, {after.out[n]})) << row;
      }
    }
  }
}

}  // namespace
}  // namespace sdpa::testing
