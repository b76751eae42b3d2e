// PyTorch, test/test_transformers.py: scaled_dot_product_attention against its plain formula. Two batch rows and six
// heads at most. The inputs of its OpInfo table are in tests/js/api/grids-torch.test.mjs, for they need PyTorch's
// broadcasting.
#include <cstdint>

#include "grids/grid.hpp"
#include "grids/tables.hpp"

namespace sdpa::grids {
namespace {

// PyTorch's own tests of the CPU kernels run float32, float16 and bfloat16.
constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};

Setting torch(Shape shape) {
  return {.shape = cut(shape), .storage = Storage::kHeadsBeforeRows, .align = Align::kUpperLeft};
}

TEST(PyTorch, FusedKernelsOnTheCpu) {
  Grid grid("PyTorch, fused on the CPU");
  for (const auto& [queries, keys] : square({267, 1030})) {
    for (const std::size_t head_dim : {8, 16}) {
      for (const std::size_t batch : {1, 2}) {
        for (const std::size_t heads : {1, 3}) {
          for (const DType dtype : kTypes) {
            for (const bool causal : {false, true}) {
              Setting s = torch({queries, keys, head_dim, 0, batch, heads, heads});
              s.dtype = dtype;
              s.causal = causal;
              grid.add(s);
            }
          }
        }
      }
    }
  }
  grid.run();
}

TEST(PyTorch, FusedKernelsWithMasksOfEveryBroadcast) {
  Grid grid("PyTorch, fused with a mask");
  for (const auto& [queries, keys] : {Lengths{267, 514}, {267, 267}, {514, 514}}) {
    for (const Mask mask : {Mask::kBool, Mask::kBias}) {
      for (unsigned full = 0; full < 16; ++full) {
        for (const DType dtype : kTypes) {
          Setting s = torch({queries, keys, 8, 0, 2, 3, 3});
          s.dtype = dtype;
          s.mask = mask;
          for (std::size_t r = 0; r < 4; ++r) s.mask_full[r] = (full >> r & 1) != 0;
          grid.add(s);
        }
      }
    }
  }
  grid.run();
}

TEST(PyTorch, BandsOfMinusInfinity) {
  Grid grid("PyTorch, mask with -inf");
  for (const auto& [queries, keys] : {Lengths{2, 2}, {600, 600}, {600, 2}, {2, 600}}) {
    for (const std::size_t heads : {2, 600}) {
      for (const DType dtype : kTypes) {
        Setting s = torch({queries, keys, 8, 0, 1, 2, 2});
        if (queries * keys < 2000) s.shape.num_heads = s.shape.num_kv_heads = heads;
        s.dtype = dtype;
        s.mask = Mask::kBand;
        grid.add(s);
      }
    }
  }
  grid.run();
}

TEST(PyTorch, NegativeScales) {
  Grid grid("PyTorch, negative scale");
  for (const DType dtype : kTypes) {
    for (const bool uniform : {false, true}) {
      Setting s = torch({64, 64, 64, 0, 1, 3, 3});
      s.dtype = dtype;
      s.scale = -1 / 0.0001F;
      s.uniform = uniform;
      grid.add(s);
    }
  }
  grid.run();
}

TEST(PyTorch, MaskRanks) {
  Grid grid("PyTorch, mask ranks and odd lengths");
  for (const auto& [queries, keys] : {Lengths{64, 32}, {64, 15}, {64, 16}}) {
    for (std::size_t rank = 0; rank <= 4; ++rank) {
      for (const Mask mask : {Mask::kBool, Mask::kBias}) {
        for (const DType dtype : kTypes) {
          Setting s = torch({queries, keys, 64, 0, 8, 8, 8});
          s.dtype = dtype;
          s.mask = mask;
          for (std::size_t r = 0; r < 4; ++r) s.mask_full[r] = r >= 4 - rank;
          grid.add(s);
        }
      }
    }
  }
  grid.run();
}

TEST(PyTorch, OddStrides) {
  Grid grid("PyTorch, strided inputs");
  for (const DType dtype : kTypes) {
    for (const Mask mask : {Mask::kNone, Mask::kBias}) {
      Setting s = torch({1, 14, 128, 0, 3, 16, 16});
      s.shape.num_heads = s.shape.num_kv_heads = 16;
      s.storage = Storage::kRepeatedHeads;
      s.dtype = dtype;
      s.mask = mask;
      grid.add(s);
    }
  }
  grid.run();
}

TEST(PyTorch, MemoryEfficientKernelsWithMasks) {
  Grid grid("PyTorch, mem-efficient with a mask");
  std::size_t turn = 0;
  for (const std::size_t queries : {4, 8, 64, 128, 256, 312, 512, 1024, 2048}) {
    for (const std::size_t keys : {4, 8, 64, 65, 128, 256, 408, 512, 1024, 2048}) {
      for (const std::size_t head_dim : {8, 16, 32, 64, 72, 96, 128}) {
        for (const std::size_t batch : {1, 8}) {
          for (const double dropout : {0.0, 0.22}) {
            for (const bool scaled : {false, true}) {
              Setting s = torch({queries, keys, head_dim, 0, batch, 4, 4});
              s.mask = turn++ % 2 == 0 ? Mask::kBias : Mask::kBool;
              s.mask_full = {turn % 3 == 0, turn % 5 == 0, true, true};
              s.dropout = dropout;
              if (scaled) s.scale = 1 / static_cast<float>(head_dim);
              s.uniform = true;
              grid.add(s);
            }
          }
        }
      }
    }
  }
  grid.run();
}

TEST(PyTorch, FlashKernels) {
  Grid grid("PyTorch, flash");
  for (const std::size_t queries : {4, 8, 64, 143, 256, 512, 1024, 2048}) {
    for (const std::size_t keys : {4, 8, 64, 128, 256, 587, 1024, 2048}) {
      for (const std::size_t head_dim : {8, 16, 21, 32, 64, 72, 96, 128, 160, 192, 203, 256}) {
        for (const bool causal : {false, true}) {
          for (const double dropout : {0.0, 0.22, 0.48}) {
            for (const bool scaled : {false, true}) {
              Setting s = torch({queries, keys, head_dim, 0, dropout == 0 ? 8U : 1U, 4, 4});
              s.causal = causal;
              s.dropout = dropout;
              if (scaled) s.scale = 1 / static_cast<float>(head_dim);
              s.uniform = true;
              grid.add(s);
            }
          }
        }
      }
    }
  }
  grid.run();
}

TEST(PyTorch, ValuesOfAnotherSize) {
  Grid grid("PyTorch, D and Dv differ");
  for (const DType dtype : kTypes) {
    for (const bool causal : {false, true}) {
      Setting s = torch({640, 640, 128, 64, 32, 16, 16});
      s.dtype = dtype;
      s.causal = causal;
      grid.add(s);
    }
  }
  grid.run();
}

TEST(PyTorch, CausalBiasObjects) {
  Grid grid("PyTorch, causal bias objects");
  const Setting settings[] = {torch({128, 128, 16, 0, 16, 16, 16}), torch({128, 256, 32, 0, 16, 16, 16}),
                              torch({256, 128, 32, 0, 16, 16, 16}), torch({23, 56, 15, 0, 1, 1, 1})};
  for (Setting s : settings) {
    for (const Align align : {Align::kUpperLeft, Align::kLowerRight}) {
      for (const DType dtype : kTypes) {
        s.causal = true;
        s.align = align;
        s.dtype = dtype;
        grid.add(s);
      }
    }
  }
  grid.run();
}

TEST(PyTorch, RowsThatAreMaskedAsAWhole) {
  Grid grid("PyTorch, fully masked rows");
  for (const auto& [queries, keys] : square({4, 8, 32, 64, 128, 256})) {
    for (const std::size_t head_dim : {8, 16, 32, 64, 128}) {
      Setting s = torch({queries, keys, head_dim, 0, 1, 1, 1});
      s.mask = Mask::kNoFourthRow;
      for (const DType dtype : kTypes) {
        s.dtype = dtype;
        grid.add(s);
      }
    }
  }
  grid.run();
}

// Lengths from 1 to 31. There a length of 0 is refused; here it gives nothing.
TEST(PyTorch, RaggedBatches) {
  Grid grid("PyTorch, ragged batch");
  for (const std::size_t length : {1, 2, 3, 7, 8, 15, 16, 23, 31}) {
    for (const DType dtype : kTypes) {
      for (const bool causal : {false, true}) {
        Setting s = torch({length, length, 64, 0, 1, 16, 16});
        s.shape.batch = 32;
        s.shape.num_heads = s.shape.num_kv_heads = 16;
        s.dtype = dtype;
        s.causal = causal;
        s.ragged = true;
        grid.add(s);
      }
    }
  }
  grid.run();
}

TEST(PyTorch, LargeNumbersOfBFloat16StayNumbers) {
  Problem p;
  p.head_dim = p.head_dim_v = 64;
  p.query.assign(64, 133120);
  p.key = p.value = p.query;
  const Call call(p, {.shape = {1, 1, 64}, .dtype = DType::kBFloat16});
  for (const KernelTable* table : core::available_kernels()) EXPECT_EQ(call.run(*table).out, p.value) << table->name;
}

}  // namespace
}  // namespace sdpa::grids
