// flash-attention 2, tests/test_flash_attn.py: one call of equal lengths. Batch 2 and 6 heads at most (there 4 and 9);
// packed keys and values in turn with keys and values apart.
#include "grids/grid.hpp"
#include "grids/tables.hpp"

namespace sdpa::grids {
namespace {

TEST(FlashAttention2, PackedQueryKeyValue) {
  Grid grid("flash-attention 2, qkvpacked");
  for (const auto& [queries, keys] : square({97, 128, 200, 384, 768, 1024, 1025, 2048})) {
    for (const std::size_t head_dim : kManyHeadDims) {
      Setting s{.shape = cut({queries, keys, head_dim, 0, 4, 9, 9}), .storage = Storage::kPackedQkv};
      for_each_modifier(s, [&](Setting each) {
        for (const double dropout : {0.0, 0.17}) {
          each.dropout = dropout;
          grid.add(each);
        }
      });
    }
  }
  grid.run();
}

TEST(FlashAttention2, Output) {
  Grid grid("flash-attention 2, output");
  std::size_t turn = 0;
  for (const auto& [queries, keys] : kFlash2Lengths) {
    for (const std::size_t head_dim : {32, 40, 59, 64, 96, 111, 128, 160, 192, 224, 256}) {
      for (const Heads heads : kHeads) {
        Setting s{.shape = cut({queries, keys, head_dim, 0, 4, heads.query, heads.key})};
        for (const float softcap : {0.0F, 50.0F}) {
          for_each_modifier(s, [&](Setting each) {
            each.storage = turn++ % 3 == 0 ? Storage::kPackedKv : Storage::kRowsBeforeHeads;
            each.softcap = softcap;
            grid.add(each);
          });
        }
      }
    }
  }
  grid.run();
}

TEST(FlashAttention2, Causal) {
  Grid grid("flash-attention 2, causal");
  for (const auto& [queries, keys] : both_ways(kFlash2CausalLengths)) {
    for (const std::size_t head_dim : kManyHeadDims) {
      Setting s{.shape = cut({queries, keys, head_dim, 0, 8, 9, 9}), .causal = true};
      for (const Window window : {Window::kNone, Window::kBoth}) {
        s.window = window;
        grid.add(s);
      }
    }
  }
  grid.run();
}

TEST(FlashAttention2, ManyKeysAndFewQueries) {
  Grid grid("flash-attention 2, split keys");
  const std::vector<Lengths> lengths{{3, 1024},   {1, 339},     {64, 800},  {3, 799},  {64, 2048},
                                     {16, 20000}, {16, 100000}, {128, 128}, {256, 256}};
  for (const auto& [queries, keys] : both_ways(lengths)) {
    for (const std::size_t head_dim : kManyHeadDims) {
      Setting s{.shape = cut({queries, keys, head_dim, 0, 1, 12, 12})};
      for_each_modifier(s, [&](const Setting& each) { grid.add(each); });
    }
  }
  grid.run();
}

TEST(FlashAttention2, LargeScores) {
  Grid grid("flash-attention 2, overflow");
  for (const auto& [queries, keys] : square({1, 2, 5, 17, 128})) {
    for (const std::size_t head_dim : {16, 32, 64}) {
      Setting s{.shape = cut({queries, keys, head_dim, 0, 2, 5, 5}), .factors = {5, 3, 3}};
      for (const bool causal : {false, true}) {
        s.causal = causal;
        grid.add(s);
      }
    }
  }
  grid.run();
}

}  // namespace
}  // namespace sdpa::grids
