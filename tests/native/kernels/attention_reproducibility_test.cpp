// The same bits for any way of dealing out the work, on one build.
#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include <gtest/gtest.h>

#include "support/kernels.hpp"

namespace sdpa::testing {
namespace {

class AttentionReproducibility : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, AttentionReproducibility, ::testing::ValuesIn(every_kernel()), kernel_name);

template <class T>
Broadcast<T> rows_of(const Broadcast<T>& whole, std::size_t first, std::size_t count) {
  if (!whole.present() || whole.extents[2] == 1) return whole;
  Broadcast<T> part;
  part.extents = whole.extents;
  part.extents[2] = count;
  for (std::size_t b = 0; b < part.extents[0]; ++b) {
    for (std::size_t h = 0; h < part.extents[1]; ++h) {
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t j = 0; j < part.extents[3]; ++j) part.data.push_back(whole.at(b, h, first + i, j));
      }
    }
  }
  return part;
}

// Query rows first ... first + count of every head, at the positions that they have in the whole.
Problem query_rows(const Problem& p, std::size_t first, std::size_t count) {
  Problem part = p;
  part.seqlen_q = count;
  part.query.clear();
  for (std::size_t head = 0; head < p.batch * p.num_heads; ++head) {
    const auto begin = p.query.begin() + static_cast<long>((head * p.seqlen_q + first) * p.head_dim);
    part.query.insert(part.query.end(), begin, begin + static_cast<long>(count * p.head_dim));
  }
  part.mask = rows_of(p.mask, first, count);
  part.bias = rows_of(p.bias, first, count);
  part.align = Align::kOffset;
  part.query_offsets.clear();
  for (std::size_t b = 0; b < p.batch; ++b) {
    part.query_offsets.push_back(static_cast<std::int32_t>(p.offset(b) + static_cast<std::int64_t>(first)));
    if (p.query_lengths.empty()) continue;
    const auto left = std::int64_t{p.query_lengths[b]} - static_cast<std::int64_t>(first);
    part.query_lengths[b] =
        static_cast<std::int32_t>(std::clamp<std::int64_t>(left, 0, static_cast<std::int64_t>(count)));
  }
  return part;
}

// Head h of batch row b, alone.
Problem one_head(const Problem& p, std::size_t b, std::size_t h) {
  Problem part = p;
  part.batch = part.num_heads = part.num_kv_heads = 1;
  const std::size_t g = b * p.num_kv_heads + h / (p.num_heads / p.num_kv_heads);
  const auto slice = [](const std::vector<float>& values, std::size_t index, std::size_t size) {
    const auto begin = values.begin() + static_cast<long>(index * size);
    return std::vector<float>(begin, begin + static_cast<long>(size));
  };
  part.query = slice(p.query, b * p.num_heads + h, p.seqlen_q * p.head_dim);
  part.key = slice(p.key, g, p.seqlen_kv * p.head_dim);
  part.value = slice(p.value, g, p.seqlen_kv * p.head_dim_v);
  const auto plane = [&](const auto& whole) {
    auto result = whole;
    if (!whole.present()) return result;
    result.data.clear();
    result.extents[0] = result.extents[1] = 1;
    for (std::size_t i = 0; i < whole.extents[2]; ++i) {
      for (std::size_t j = 0; j < whole.extents[3]; ++j) result.data.push_back(whole.at(b, h, i, j));
    }
    return result;
  };
  part.mask = plane(p.mask);
  part.bias = plane(p.bias);
  for (auto* values : {&part.query_offsets, &part.query_lengths, &part.kv_lengths}) {
    if (!values->empty()) *values = {(*values)[b]};
  }
  return part;
}

// Rows first ... first + count of every head of a whole result with `width` numbers a row.
std::vector<float> rows(const std::vector<float>& values, const Problem& p, std::size_t first, std::size_t count,
                        std::size_t width) {
  std::vector<float> result;
  for (std::size_t head = 0; head < p.batch * p.num_heads; ++head) {
    const auto begin = values.begin() + static_cast<long>((head * p.seqlen_q + first) * width);
    result.insert(result.end(), begin, begin + static_cast<long>(count * width));
  }
  return result;
}

TEST_P(AttentionReproducibility, AnySplitByQueryRowsGivesTheSameBits) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Problem p = random_problem(seed);
    const Actual whole = run(p);
    Random random(seed);
    for (std::size_t first = 0; first < p.seqlen_q;) {
      const auto count =
          std::min(p.seqlen_q - first, static_cast<std::size_t>(random.choose({1, 2, 4, 5, 17, 48, 50})));
      const Actual part = run(query_rows(p, first, count));
      ASSERT_TRUE(same_bits(rows(whole.out, p, first, count, p.head_dim_v), part.out))
          << first << '+' << count << ' ' << describe(p);
      ASSERT_TRUE(same_bits(rows(whole.lse, p, first, count, 1), part.lse))
          << first << '+' << count << ' ' << describe(p);
      first += count;
    }
  }
}

TEST_P(AttentionReproducibility, EveryRowAloneGivesTheBitsThatItHasAmongManyWithManyKeys) {
  for (const std::size_t keys : {97, 700}) {
    const Problem p = make_causal({.seqlen_q = 130, .seqlen_kv = keys, .head_dim = 33});
    const Actual whole = run(p);
    for (std::size_t i = 0; i < p.seqlen_q; ++i) {
      ASSERT_TRUE(same_bits(rows(whole.out, p, i, 1, p.head_dim_v), run(query_rows(p, i, 1)).out)) << i;
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
        ASSERT_TRUE(same_bits(rows(whole.out, p, first, count, p.head_dim_v), run(query_rows(p, first, count)).out))
            << first << '+' << count << ' ' << describe(p);
      }
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
