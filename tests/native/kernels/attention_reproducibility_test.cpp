// The same bits for any way of dealing out the work, on one build.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/forward_options.hpp"
#include "support/kernels.hpp"
#include "support/slices.hpp"

namespace sdpa::testing {
namespace {

class AttentionReproducibility : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, AttentionReproducibility, ::testing::ValuesIn(every_kernel()), kernel_name);

TEST_P(AttentionReproducibility, AnySplitByQueryRowsGivesTheSameBits) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Problem p = random_problem(seed);
    const Actual whole = run(p);
    Random random(seed);
    for (std::size_t first = 0; first < p.seqlen_q;) {
      const auto count =
          std::min(p.seqlen_q - first, static_cast<std::size_t>(random.choose({1, 2, 4, 5, 17, 48, 50})));
      const Actual part = run(query_rows(p, first, count));
      ASSERT_TRUE(same_bits(rows_of(whole.out, p, first, count, p.head_dim_v), part.out))
          << first << '+' << count << ' ' << describe(p);
      ASSERT_TRUE(same_bits(rows_of(whole.lse, p, first, count, 1), part.lse))
          << first << '+' << count << ' ' << describe(p);
      first += count;
    }
  }
}

TEST_P(AttentionReproducibility, PiecesOfACallWithAnyOptionHaveTheBitsThatTheyHaveInTheWhole) {
  for (std::size_t option = 0; option < forward_options().size(); ++option) {
    SCOPED_TRACE(forward_options()[option].name);
    const std::uint64_t set = std::uint64_t{1} << option;
    const auto [p, options] = with_options(130, set, set);
    const Actual whole = run(p, options);
    for (const auto& [first, count] : {std::pair{0, 1}, {63, 2}, {64, 50}, {100, 30}, {129, 1}}) {
      const auto from = static_cast<std::size_t>(first);
      const auto rows = static_cast<std::size_t>(count);
      ASSERT_TRUE(
          same_bits(rows_of(whole.out, p, from, rows, p.head_dim_v), run(query_rows(p, from, rows), options).out))
          << first << '+' << count;
    }
    const std::size_t size = p.seqlen_q * p.head_dim_v;
    for (std::size_t head = 0; head < p.batch * p.num_heads; ++head) {
      const auto begin = whole.out.begin() + static_cast<long>(head * size);
      ASSERT_TRUE(same_bits({begin, begin + static_cast<long>(size)},
                            run(one_head(p, head / p.num_heads, head % p.num_heads), options).out))
          << "head " << head;
    }
  }
}

TEST_P(AttentionReproducibility, EveryRowAloneGivesTheBitsThatItHasAmongManyWithManyKeys) {
  for (const std::size_t keys : {97, 700}) {
    const Problem p = make_causal({.seqlen_q = 130, .seqlen_kv = keys, .head_dim = 33});
    const Actual whole = run(p);
    for (std::size_t i = 0; i < p.seqlen_q; ++i) {
      ASSERT_TRUE(same_bits(rows_of(whole.out, p, i, 1, p.head_dim_v), run(query_rows(p, i, 1)).out)) << i;
    }
  }
}

TEST_P(AttentionReproducibility, ARowUnderAWindowHasTheSameBitsWhereverItsBlockBegins) {
  // Windows of several tiles that begin at another key for every block.
  for (const std::int64_t left : {40, 150, 300}) {
    Problem p = make_problem({.seqlen_q = 130, .seqlen_kv = 700, .head_dim = 21});
    p.align = Align::kLowerRight;
    p.window_left = left;
    p.window_right = 90;
    const Actual whole = run(p);
    for (const std::size_t count : {1, 7, 48, 65}) {
      for (std::size_t first = 0; first + count <= p.seqlen_q; first += count) {
        ASSERT_TRUE(same_bits(rows_of(whole.out, p, first, count, p.head_dim_v), run(query_rows(p, first, count)).out))
            << first << '+' << count << ' ' << describe(p);
      }
    }
  }
}

TEST_P(AttentionReproducibility, ARowUnderABlockMaskHasTheSameBitsWhereverItsCallBegins) {
  // Blocks of rows begin where tiles of the mask do, so that the first of a call is a short one.
  Random random(5);
  Problem p = make_problem({.seqlen_q = 330, .seqlen_kv = 400, .head_dim = 13});
  p.block_mask = random_block_mask(random, {1, 1, p.seqlen_q, p.seqlen_kv});
  const Actual whole = run(p);
  for (const std::size_t count : {1, 65, 129, 200}) {
    for (std::size_t first = 0; first + count <= p.seqlen_q; first += 37) {
      const Actual part = run(query_rows(p, first, count));
      ASSERT_TRUE(same_bits(rows_of(whole.out, p, first, count, p.head_dim_v), part.out)) << first << '+' << count;
      ASSERT_TRUE(same_bits(rows_of(whole.lse, p, first, count, 1), part.lse)) << first << '+' << count;
    }
  }
}

TEST_P(AttentionReproducibility, AHeadAloneGivesTheBitsThatItHasInABatch) {
  for (std::uint64_t seed = 101; seed <= 140; ++seed) {
    const Problem p = random_problem(seed);
    const Actual whole = run(p);
    const std::size_t size = p.seqlen_q * p.head_dim_v;
    for (std::size_t head = 0; head < p.batch * p.num_heads; ++head) {
      const auto begin = whole.out.begin() + static_cast<long>(head * size);
      ASSERT_TRUE(same_bits({begin, begin + static_cast<long>(size)},
                            run(one_head(p, head / p.num_heads, head % p.num_heads)).out))
          << head << ' ' << describe(p);
    }
  }
}

TEST_P(AttentionReproducibility, GroupedHeadsGiveTheBitsOfRepeatedKeyValueHeads) {
  for (const std::size_t queries : {1, 3, 50}) {
    const Problem grouped =
        make_causal({.seqlen_q = queries, .seqlen_kv = 300, .head_dim = 16, .num_heads = 6, .num_kv_heads = 2});
    Problem repeated = grouped;
    repeated.num_kv_heads = 6;
    for (auto* values : {&repeated.key, &repeated.value}) {
      std::vector<float> all;
      for (std::size_t h = 0; h < 6; ++h)
        all.insert(all.end(), values->begin() + static_cast<long>(h / 3 * 300 * 16),
                   values->begin() + static_cast<long>((h / 3 + 1) * 300 * 16));
      *values = all;
    }
    EXPECT_TRUE(same_bits(run(grouped).out, run(repeated).out)) << queries;
  }
}

TEST_P(AttentionReproducibility, APaddedSequenceGivesTheBitsThatItGivesAlone) {
  for (const std::size_t length : {1, 50, 95, 96, 97, 130}) {
    Problem padded = make_problem({.seqlen_q = 20, .seqlen_kv = 150, .head_dim = 12});
    padded.kv_lengths = {static_cast<std::int32_t>(length)};
    padded.causal = true;
    padded.align = Align::kLowerRight;
    Problem alone = padded;
    alone.seqlen_kv = length;
    alone.kv_lengths.clear();
    alone.key.resize(length * 12);
    alone.value.resize(length * 12);
    EXPECT_TRUE(same_bits(run(padded).out, run(alone).out)) << length;
  }
}

TEST_P(AttentionReproducibility, AskingForScoresOrTheLogSumExpChangesNoBitOfTheOutput) {
  for (std::uint64_t seed = 201; seed <= 230; ++seed) {
    const Problem p = random_problem(seed);
    const std::vector<float> plain = run(p, {.lse = false}).out;
    for (const ScoresStage stage : {ScoresStage::kNone, ScoresStage::kScaled, ScoresStage::kCapped,
                                    ScoresStage::kBiased, ScoresStage::kWeights}) {
      ASSERT_TRUE(same_bits(plain, run(p, {.scores_stage = stage}).out)) << describe(p);
    }
  }
}

TEST_P(AttentionReproducibility, ALargerWorkspaceUsedBeforeChangesNothing) {
  const Problem p = make_causal({.seqlen_q = 50, .seqlen_kv = 130, .head_dim = 17});
  const Actual fresh = run(p);
  const Arguments arguments(p, {});
  constexpr std::size_t kBytes = 16 << 20;
  auto* memory = static_cast<std::byte*>(::operator new (kBytes, std::align_val_t{kWorkspaceAlignment}));
  for (const int fill : {0, 1, 127, 255}) {
    std::memset(memory, fill, kBytes);
    EXPECT_TRUE(core::attention(table(), arguments.tensors, arguments.options, {memory, kBytes}).ok());
    EXPECT_TRUE(same_bits(fresh.out, arguments.out())) << fill;
  }
  ::operator delete (memory, std::align_val_t{kWorkspaceAlignment});
}

}  // namespace
}  // namespace sdpa::testing
