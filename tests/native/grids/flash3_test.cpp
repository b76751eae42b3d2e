// flash-attention 3 and 4, hopper/test_flash_attn.py and tests/cute/test_flash_attn.py. Two batch rows (there 9), three
// packed sequences; fp8 is no storage type here.
#include "grids/grid.hpp"
#include "grids/tables.hpp"

namespace sdpa::grids {
namespace {

struct HeadDims {
  std::size_t key;
  std::size_t value;
};
constexpr HeadDims kHeadDims[] = {{64, 64},   {64, 256},  {64, 512},  {96, 96},
                                  {128, 128}, {192, 192}, {192, 128}, {256, 256}};

// No bound, or one of causal, a window and a chunk.
constexpr int kBounds = 4;
void bound(Setting& s, int kind) {
  s.causal = kind == 1;
  s.window = kind == 2 ? Window::kBoth : Window::kNone;
  s.chunk = kind == 3;
}

void add_all(Grid& grid, Setting s) {
  for (const float softcap : {0.0F, 15.0F}) {
    for (int kind = 0; kind < kBounds; ++kind) {
      s.softcap = softcap;
      bound(s, kind);
      grid.add(s);
    }
  }
}

TEST(FlashAttention3, Output) {
  Grid grid("flash-attention 3, output", Absolute::kRounding);
  for (const auto& [queries, keys] :
       {Lengths{1, 1}, {64, 128},    {128, 192},   {256, 256},   {239, 1},     {799, 3},    {113, 203},
        {113, 128},    {128, 217},   {113, 211},   {108, 256},   {256, 512},   {384, 256},  {640, 128},
        {512, 256},    {1024, 1024}, {1023, 1024}, {1024, 1023}, {4096, 4096}, {4224, 4224}}) {
    for (const auto& [head_dim, head_dim_v] : kHeadDims) {
      for (const Heads heads : kHeads)
        add_all(grid, {.shape = cut({queries, keys, head_dim, head_dim_v, 9, heads.query, heads.key})});
    }
  }
  grid.run();
}

TEST(FlashAttention3, PackedSequences) {
  Grid grid("flash-attention 3, varlen", Absolute::kRounding);
  for (const auto& [queries, keys] :
       {Lengths{1, 1}, {1, 3},     {2, 1},       {511, 1},     {3, 513},     {64, 128},    {128, 128},
        {256, 256},    {113, 203}, {128, 217},   {113, 211},   {108, 256},   {256, 512},   {307, 256},
        {640, 128},    {512, 256}, {1024, 1024}, {1023, 1024}, {1024, 1023}, {2048, 2048}, {4096, 4096}}) {
    for (const auto& [head_dim, head_dim_v] : kHeadDims) {
      for (const Heads heads : kHeads) {
        add_all(grid, {.shape = cut({queries, keys, head_dim, head_dim_v, 1, heads.query, heads.key}, 5e6),
                       .align = Align::kNone,
                       .sequences = 3});
      }
    }
  }
  grid.run();
}

TEST(FlashAttention3, Cache) {
  Grid grid("flash-attention 3, KV cache", Absolute::kRounding);
  for (const auto& [queries, keys] : {Lengths{1, 128},
                                      {1, 339},
                                      {3, 1024},
                                      {64, 800},
                                      {64, 256},
                                      {3, 799},
                                      {64, 2048},
                                      {16, 20000},
                                      {128, 128},
                                      {256, 512},
                                      {2048, 3577}}) {
    for (const Heads heads : kHeads) {
      Setting s{.shape = cut({queries, keys, 128, 0, 5, heads.query, heads.key}, 5e6)};
      for (const std::size_t page_size : {1, 4, 128}) {
        for (const bool is_padded : {false, true}) {
          for (const bool ragged : {false, true}) {
            for (int kind = 0; kind < kBounds; ++kind) {
              s.page_size = page_size;
              s.mask = is_padded ? Mask::kLeftPadding : Mask::kNone;
              s.ragged = ragged;
              bound(s, kind);
              grid.add(s);
            }
          }
        }
      }
    }
  }
  grid.run();
}

TEST(FlashAttention4, Output) {
  Grid grid("flash-attention 4, output", Absolute::kRounding);
  for (const auto& [queries, keys] :
       {Lengths{1, 1}, {3, 3},       {64, 32},     {64, 128},   {64, 1},    {128, 128}, {128, 192},
        {256, 256},    {255, 256},   {239, 1},     {799, 3},    {113, 203}, {113, 128}, {128, 217},
        {113, 211},    {108, 256},   {256, 512},   {384, 256},  {640, 128}, {512, 256}, {1024, 1024},
        {1023, 1024},  {1024, 1023}, {4096, 4096}, {4224, 4224}}) {
    for (const HeadDims& dims : {HeadDims{8, 8}, {16, 16}, {32, 32}, {64, 64}, {128, 128}, {192, 128}}) {
      for (const Heads heads : kHeads) {
        Setting s{.shape = cut({queries, keys, dims.key, dims.value, 9, heads.query, heads.key})};
        for (const bool sinks : {false, true}) {
          for (const float softcap : {0.0F, 15.0F}) {
            s.sinks = sinks;
            s.softcap = softcap;
            s.window = Window::kNone;
            for (const bool causal : {false, true}) {
              s.causal = causal;
              grid.add(s);
            }
            s.causal = false;
            for (const Window window : {Window::kBoth, Window::kLeft, Window::kRight}) {
              s.window = window;
              grid.add(s);
            }
          }
        }
      }
    }
  }
  grid.run();
}

}  // namespace
}  // namespace sdpa::grids
