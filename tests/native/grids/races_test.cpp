// flash-attention 2, tests/test_flash_attn.py: results are the same bits every time. There a call is repeated 10 000
// times on 60 x 4 heads; here it is repeated on one thread, on several at once, and cut into pieces of rows.
#include <algorithm>
#include <cstdio>
#include <thread>

#include "grids/grid.hpp"
#include "grids/tables.hpp"
#include "support/slices.hpp"

namespace sdpa::grids {
namespace {

constexpr std::size_t kThreads = 3;

bool same(const Outputs& a, const Outputs& b) {
  return testing::same_bits(a.out, b.out) && testing::same_bits(a.lse, b.lse);
}

// The outputs of one call put together from calls of pieces of its rows, each on a thread of its own.
Outputs in_pieces(const KernelTable& table, const Problem& problem, const Setting& setting) {
  const std::size_t size = (problem.seqlen_q + kThreads - 1) / kThreads;
  std::vector<Outputs> parts(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t n = 0; n < kThreads && n * size < problem.seqlen_q; ++n) {
    threads.emplace_back([&, n] {
      Problem part = testing::query_rows(problem, n * size, std::min(size, problem.seqlen_q - n * size));
      parts[n] = Call(part, setting).run(table);
    });
  }
  for (std::thread& thread : threads) thread.join();
  Outputs whole;
  for (std::size_t head = 0; head < problem.batch * problem.num_heads; ++head) {
    for (std::size_t n = 0; n < threads.size(); ++n) {
      const std::size_t rows = parts[n].lse.size() / (problem.batch * problem.num_heads);
      for (std::size_t i = 0; i < rows; ++i) {
        const float* row = parts[n].row(head / problem.num_heads, head % problem.num_heads, i);
        whole.out.insert(whole.out.end(), row, row + problem.head_dim_v);
        whole.lse.push_back(parts[n].lse[head * rows + i]);
      }
    }
  }
  return whole;
}

TEST(FlashAttention2, Races) {
  std::vector<Lengths> lengths{{1, 239}, {239, 1}, {3, 799}, {799, 3}, {1024, 128}};
  for (const Lengths& pair : square({97, 128, 200, 256, 257, 384, 512, 768, 1024})) lengths.push_back(pair);
  const std::size_t step = is_full() ? 1 : 23;
  const std::size_t repeats = is_full() ? 4 : 2;
  std::size_t calls = 0;
  for (std::size_t n = 0; n < lengths.size() * kManyHeadDims.size(); n += step) {
    const auto [queries, keys] = lengths[n / kManyHeadDims.size()];
    const auto head_dim = static_cast<std::size_t>(kManyHeadDims[n % kManyHeadDims.size()]);
    Setting s{.shape = cut({queries, keys, head_dim, 0, 60, 4, 4}), .storage = Storage::kHeadsBeforeRows};
    s.causal = n % 2 == 0;
    s.window = n % 3 == 0 ? Window::kBoth : Window::kNone;
    s.dropout = n % 5 == 0 ? 0.17 : 0;
    Problem p = make(s, n + 1);
    const Call call(p, s);
    for (const KernelTable* table : core::available_kernels()) {
      if (table->width == 1 && work(s) > 1e7) continue;
      const Outputs first = call.run(*table);
      for (std::size_t again = 0; again < repeats; ++again)
        ASSERT_TRUE(same(first, call.run(*table))) << table->name << ' ' << testing::describe(p);
      std::vector<Outputs> together(kThreads);
      std::vector<std::thread> threads;
      for (Outputs& outputs : together) threads.emplace_back([&] { outputs = call.run(*table); });
      for (std::thread& thread : threads) thread.join();
      for (const Outputs& outputs : together)
        ASSERT_TRUE(same(first, outputs)) << table->name << " at once " << testing::describe(p);
      ASSERT_TRUE(same(first, in_pieces(*table, p, s))) << table->name << " in pieces " << testing::describe(p);
      calls += repeats + 2 * kThreads + 1;
    }
  }
  std::printf("[   grid   ] %-44s %5zu settings %6zu calls\n", "flash-attention 2, races",
              lengths.size() * kManyHeadDims.size() / step, calls);
}

}  // namespace
}  // namespace sdpa::grids
