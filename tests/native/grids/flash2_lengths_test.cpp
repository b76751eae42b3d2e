// flash-attention 2, tests/test_flash_attn.py: sequences of their own lengths, packed into one row of tokens or kept in
// a cache. Three sequences (there 5 to 9), two batch rows and 6 heads at most.
#include "grids/grid.hpp"
#include "grids/tables.hpp"

namespace sdpa::grids {
namespace {

constexpr std::size_t kSequences = 3;

TEST(FlashAttention2, PackedSequencesOfPackedQueryKeyValue) {
  Grid grid("flash-attention 2, varlen qkvpacked");
  for (const auto& [queries, keys] : square({97, 128, 200, 257, 384, 512, 768, 1025, 2048})) {
    for (const std::size_t head_dim : {32, 59, 64, 80, 96, 128, 160, 192, 224, 256}) {
      Setting s{.shape = cut({queries, keys, head_dim, 0, 1, 6, 6}, 5e6),
                .storage = Storage::kPackedQkv,
                .align = Align::kNone,
                .sequences = kSequences};
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

TEST(FlashAttention2, PackedSequences) {
  Grid grid("flash-attention 2, varlen output");
  std::vector<Lengths> lengths = kFlash2Lengths;
  lengths.insert(lengths.begin(), {1, 147});
  std::size_t turn = 0;
  for (const auto& [queries, keys] : lengths) {
    for (const std::size_t head_dim : {32, 59, 64, 80, 96, 111, 128, 160, 192, 224, 256}) {
      for (const Heads heads : kHeads) {
        Setting s{.shape = cut({queries, keys, head_dim, 0, 1, heads.query, heads.key}, 5e6),
                  .align = Align::kNone,
                  .sequences = kSequences};
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

// Packed where keys are not in pages; there each sequence is a batch row with lengths of its own.
TEST(FlashAttention2, CausalSequences) {
  Grid grid("flash-attention 2, varlen causal");
  for (const auto& [queries, keys] : both_ways(kFlash2CausalLengths)) {
    for (const std::size_t head_dim : kManyHeadDims) {
      for (const std::size_t page_size : {0, 256, 512}) {
        Setting s{.shape = cut({queries, keys, head_dim, 0, page_size == 0 ? 1U : 2U, 9, 9}, 5e6),
                  .causal = true,
                  .align = Align::kNone,
                  .sequences = page_size == 0 ? kSequences : 0,
                  .ragged = page_size > 0,
                  .page_size = page_size};
        for (const Window window : {Window::kNone, Window::kBoth}) {
          s.window = window;
          grid.add(s);
        }
      }
    }
  }
  grid.run();
}

// Appended keys and rotation are JavaScript's part: tests/js/api/grids-cache.test.mjs.
TEST(FlashAttention2, Cache) {
  Grid grid("flash-attention 2, KV cache");
  const std::vector<Lengths> lengths{{1, 128},   {1, 339},    {3, 1024},   {64, 800},    {64, 256}, {3, 799},
                                     {64, 2048}, {16, 20000}, {1, 131072}, {16, 131072}, {128, 128}};
  for (const auto& [queries, keys] : lengths) {
    for (const std::size_t head_dim : {32, 59, 64, 80, 128, 256}) {
      for (const Heads heads : {Heads{6, 6}, Heads{6, 3}, Heads{6, 1}}) {
        Setting s{.shape = cut({queries, keys, head_dim, 0, 2, heads.query, heads.key}, 5e6)};
        for (const std::size_t page_size : {0, 256}) {
          for (const bool is_padded : {false, true}) {
            for_each_modifier(s, [&](Setting each) {
              each.page_size = page_size;
              each.mask = is_padded ? Mask::kLeftPadding : Mask::kNone;
              grid.add(each);
            });
          }
        }
      }
    }
  }
  grid.run();
}

}  // namespace
}  // namespace sdpa::grids
