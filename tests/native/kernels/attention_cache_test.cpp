// Keys and values that lie in a cache: int8 with a scale per row, in pages, in a ring.
#include <algorithm>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "support/cache.hpp"

namespace sdpa::testing {
namespace {

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8};

// A block of rows, a few that are stacked with those of other heads, and one alone.
constexpr std::size_t kRows[] = {50, 3, 1};

class AttentionCache : public KernelTest {
 protected:
  void expect_matches_oracle(const Problem& p, const CacheKind& kind, const RunOptions& options = {}) const {
    expect_cached_matches_reference(table(), p, kind, options);
  }
};
INSTANTIATE_TEST_SUITE_P(, AttentionCache, ::testing::ValuesIn(every_kernel()), kernel_name);

// The last queries of rows of a cache, each as long as it is. Two heads share a key head, but for a row alone.
Problem cached(std::size_t rows, std::size_t keys = 230) {
  Problem p = make_causal({.seqlen_q = rows,
                           .seqlen_kv = keys,
                           .head_dim = 21,
                           .head_dim_v = 34,
                           .batch = 2,
                           .num_heads = rows == 1 ? 2U : 4U,
                           .num_kv_heads = 2});
  p.kv_lengths = {static_cast<std::int32_t>(keys), static_cast<std::int32_t>(keys * 2 / 3)};
  return p;
}

TEST_P(AttentionCache, OfEachStorageTypeForKeysAndForValues) {
  for (const DType key : kTypes) {
    for (const DType value : kTypes) {
      for (const std::size_t rows : kRows) {
        expect_matches_oracle(cached(rows), {.key_dtype = key, .value_dtype = value});
        expect_matches_oracle(cached(rows), {.key_dtype = key, .value_dtype = value, .page_size = 16});
      }
    }
  }
}

TEST_P(AttentionCache, InPagesOfAnySize) {
  for (const std::size_t page : {1, 2, 5, 16, 47, 48, 64, 95, 96, 97, 229, 230, 1000}) {
    for (const std::size_t rows : kRows) {
      for (const DType dtype : kTypes)
        expect_matches_oracle(cached(rows), {.key_dtype = dtype, .value_dtype = dtype, .page_size = page});
    }
  }
}

TEST_P(AttentionCache, InARingOfAnySizeAfterAnyNumberOfTurns) {
  // Many turns, and a part of one within a tile.
  for (const std::size_t keys : {230, 80}) {
    for (const std::size_t ring_begin : {0, 1, 4, 50}) {
      for (const std::size_t ring_size : {1, 7, 48, 70, 95, 96, 97, 150, 400}) {
        for (const std::size_t rows : kRows) {
          for (const DType dtype : {DType::kFloat32, DType::kInt8}) {
            expect_matches_oracle(
                cached(rows, keys),
                {.key_dtype = dtype, .value_dtype = dtype, .ring_begin = ring_begin, .ring_size = ring_size});
          }
        }
      }
    }
  }
}

TEST_P(AttentionCache, ANanInTheNewestValueReachesNoRowBeforeItThroughTheKeyWhosePlaceItTook) {
  for (const std::size_t rows : {2, 20}) {
    for (const float garbage : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      Problem p = cached(rows, 150);
      for (std::size_t head = 0; head < 4; ++head) {
        const auto last = static_cast<std::size_t>(p.kv_lengths[head / 2] - 1);
        p.value[(head * 150 + last) * 34 + 3] = garbage;
      }
      expect_matches_oracle(p, {.ring_begin = 2, .ring_size = 60});
      expect_matches_oracle(p, {.key_dtype = DType::kFloat16, .value_dtype = DType::kFloat16, .ring_size = 40});
    }
  }
}

TEST_P(AttentionCache, InARingUnderItsWindowWithGlobalKeys) {
  for (const std::size_t rows : kRows) {
    for (const std::size_t global : {0, 4}) {
      for (const DType dtype : kTypes) {
        Problem p = cached(rows, 500);
        p.window_left = 64;
        p.global_keys = static_cast<std::int64_t>(global);
        // Room for the window of the first of the rows.
        expect_matches_oracle(p,
                              {.key_dtype = dtype, .value_dtype = dtype, .ring_begin = global, .ring_size = 64 + rows});
      }
    }
  }
}

TEST_P(AttentionCache, WithEveryOtherOption) {
  const CacheKind kinds[] = {{.key_dtype = DType::kInt8, .value_dtype = DType::kInt8},
                             {.page_size = 24},
                             {.key_dtype = DType::kFloat16, .value_dtype = DType::kInt8, .page_size = 100},
                             {.ring_begin = 10, .ring_size = 90}};
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Problem p = random_problem(seed * 31);
    Random random(seed);
    const RunOptions options{
        .placement = random.choose({Placement::kBhld, Placement::kBlhd}),
        .scores_stage = random.choose({ScoresStage::kNone, ScoresStage::kBiased, ScoresStage::kWeights})};
    SCOPED_TRACE(seed);
    for (const CacheKind& kind : kinds) expect_matches_oracle(p, kind, options);
    if (HasFailure()) break;
  }
}

TEST_P(AttentionCache, RawScoresOfEveryKeyThatIsHeld) {
  for (const std::size_t rows : kRows) {
    for (const ScoresStage stage : {ScoresStage::kScaled, ScoresStage::kCapped}) {
      for (const DType dtype : kTypes) {
        Problem p = cached(rows);
        p.kv_lengths.clear();
        expect_matches_oracle(p, {.key_dtype = dtype, .value_dtype = dtype, .page_size = 16}, {.scores_stage = stage});
      }
    }
  }
}

TEST_P(AttentionCache, HasTheBitsOfTheSameRowsInOneTensor) {
  for (const DType dtype : kTypes) {
    for (const std::size_t page : {0, 1, 7, 16, 64, 100}) {
      for (const std::size_t rows : kRows) {
        Problem p = cached(rows);
        const CacheKind kind{.key_dtype = dtype, .value_dtype = dtype, .page_size = page};
        const Actual actual = run_cached(table(), p, kind);
        // Scales of int8 go on scores and weights: no tensor of float32 has their roundings, one piece of int8 has.
        const Actual int8 = run_cached(table(), p, {.key_dtype = DType::kInt8, .value_dtype = DType::kInt8});
        const Cache rounds(p, kind);
        const Actual plain = dtype == DType::kInt8 ? int8 : run(p);
        EXPECT_TRUE(same_bits(actual.out, plain.out)) << static_cast<int>(dtype) << ' ' << page << ' ' << rows;
        EXPECT_TRUE(same_bits(actual.lse, plain.lse)) << static_cast<int>(dtype) << ' ' << page << ' ' << rows;
      }
    }
  }
}

TEST_P(AttentionCache, OneRowHasTheBitsThatItHasAmongOthers) {
  // Among a few it is decoded from where its keys lie, among many from copies of them.
  for (const std::size_t dim : {21, 48}) {
    for (const DType dtype : kTypes) {
      for (const std::size_t page : {0, 16}) {
        Problem p = make_causal({.seqlen_q = 50, .seqlen_kv = 230, .head_dim = dim, .head_dim_v = dim});
        const CacheKind kind{.key_dtype = dtype, .value_dtype = dtype, .page_size = page};
        const std::vector<float> all = run_cached(table(), p, kind).out;
        for (const std::size_t rows : {1, 2, 3, 4, 5}) {
          Problem few = p;
          few.seqlen_q = rows;
          few.query.erase(few.query.begin(), few.query.end() - static_cast<long>(rows * dim));
          const std::vector<float> last(all.end() - static_cast<long>(rows * dim), all.end());
          EXPECT_TRUE(same_bits(run_cached(table(), few, kind).out, last))
              << dim << ' ' << static_cast<int>(dtype) << ' ' << page << ' ' << rows;
        }
      }
    }
  }
}

TEST_P(AttentionCache, ARingHasTheBitsOfTheWindowThatItHolds) {
  for (const std::size_t rows : kRows) {
    Problem p = cached(rows, 500);
    p.window_left = 70;
    p.global_keys = 3;
    const Actual ring = run_cached(table(), p, {.ring_begin = 3, .ring_size = 70 + rows});
    const Actual whole = run(p);
    EXPECT_TRUE(same_bits(ring.out, whole.out)) << rows;
    EXPECT_TRUE(same_bits(ring.lse, whole.lse)) << rows;
  }
}

TEST_P(AttentionCache, PrefillInPiecesHasTheBitsOfOneCall) {
  Problem whole = make_causal({.seqlen_q = 150, .seqlen_kv = 150, .head_dim = 16, .num_heads = 4, .num_kv_heads = 2});
  const std::vector<float> once = run(whole).out;
  for (const std::size_t page : {0, 32}) {
    for (std::size_t first = 0; first < 150;) {
      const std::size_t count = std::min<std::size_t>(150 - first, first % 50 + 1);
      Problem piece = whole;
      piece.seqlen_q = count;
      piece.query.clear();
      std::vector<float> expected;
      for (std::size_t head = 0; head < 4; ++head) {
        const auto rows = [&](const std::vector<float>& from) {
          const auto begin = from.begin() + static_cast<long>((head * 150 + first) * 16);
          return std::vector<float>(begin, begin + static_cast<long>(count * 16));
        };
        const std::vector<float> query = rows(whole.query);
        const std::vector<float> out = rows(once);
        piece.query.insert(piece.query.end(), query.begin(), query.end());
        expected.insert(expected.end(), out.begin(), out.end());
      }
      // What came so far is the whole of the cache.
      piece.kv_lengths = {static_cast<std::int32_t>(first + count)};
      EXPECT_TRUE(same_bits(run_cached(table(), piece, {.page_size = page}).out, expected)) << first << '+' << count;
      first += count;
    }
  }
}

TEST_P(AttentionCache, AnInt8RowOfZerosIsZeroAndTheLargestStepsAreExact) {
  Problem p = make_problem({.seqlen_q = 1, .seqlen_kv = 1, .head_dim = 3, .head_dim_v = 4});
  p.value = {0, 0, 0, 0};
  EXPECT_EQ(run_cached(table(), p, {.value_dtype = DType::kInt8}).out, p.value);
  p.value = {127, -127, 64, -1};
  EXPECT_EQ(run_cached(table(), p, {.value_dtype = DType::kInt8}).out, p.value);
}

TEST_P(AttentionCache, EveryInt8StepIsWidenedExactly) {
  // -128 too: nothing writes it, and yet it has a value.
  std::vector<std::int8_t> steps;
  for (int n = -128; n < 128; ++n) steps.push_back(static_cast<std::int8_t>(n));
  const float scale = 0.37F;
  const Problem p = make_problem({.head_dim = 1, .head_dim_v = 256});
  Arguments arguments(p, {});
  arguments.tensors.value = InputView(steps.data(), DType::kInt8, {1, 1, 1, 256});
  arguments.tensors.map.value_scales = &scale;
  ASSERT_TRUE(status_of(table(), arguments).ok());
  for (std::size_t n = 0; n < 256; ++n)
    EXPECT_EQ(arguments.out()[n], scale * static_cast<float>(static_cast<int>(n) - 128)) << n;
}

}  // namespace
}  // namespace sdpa::testing
