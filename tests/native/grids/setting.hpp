// A line of a peer's table of tests: sizes and options of a call before any number is drawn.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "sdpa/tensor_view.hpp"
#include "support/problems.hpp"

namespace sdpa::grids {

using testing::Align;
using testing::Problem;
using testing::Random;
using testing::Shape;

// How query, key and value lie in memory.
enum class Storage {
  kRowsBeforeHeads,  // (B, L, H, D) each: flash-attention
  kHeadsBeforeRows,  // (B, H, L, D) each: PyTorch
  kPackedKv,         // key and value in one (B, S, 2, H, D)
  kPackedQkv,        // all three in one (B, L, 3, H, D)
  kRepeatedHeads,    // gaps after every row, and one head of keys and values for all (stride 0)
};

// Windows of random bounds, each side from 0 to S - 1.
enum class Window { kNone, kBoth, kLeft, kRight };

enum class Mask {
  kNone,
  kBool,         // cells drawn
  kBias,         // unit normal numbers that are added
  kBand,         // -infinity above the diagonal and from 10 below it on, else normal numbers
  kNoFourthRow,  // every fourth row false
  kLeftPadding,  // the first keys of each batch row false
};

struct Setting {
  Shape shape;
  DType dtype = DType::kFloat32;
  Storage storage = Storage::kRowsBeforeHeads;

  bool causal = false;
  Window window = Window::kNone;
  bool chunk = false;  // of a random size, up to twice the keys
  Align align = Align::kLowerRight;
  bool alibi = false;  // slopes from 0 to 0.3
  bool sinks = false;
  float softcap = 0;
  double dropout = 0;
  std::optional<float> scale = std::nullopt;
  Mask mask = Mask::kNone;
  std::array<bool, 4> mask_full{true, true, true, true};  // extents of the mask that are not 1

  std::size_t sequences = 0;  // packed into one row of tokens, `shape` is then the largest
  bool ragged = false;        // each batch row has lengths of its own, lower-right by them
  std::size_t page_size = 0;  // keys and values in pages

  bool uniform = false;                   // inputs from 0 to 1 instead of unit normal
  std::array<float, 3> factors{1, 1, 1};  // of query, key and value
};

// Numbers for it. Query is times the softcap, so that the cap bites.
Problem make(const Setting& setting, std::uint64_t seed);

// What a call costs, in multiply-adds: those of query and key and of weights and values, at most, and what laying out
// its numbers takes.
double work(const Setting& setting);

// Batch and heads cut until the work is not above `most`, or one key-value head of one batch row with at most two query
// heads is left. At most two batch rows and six heads to begin with.
Shape cut(Shape shape, double most = 1e7);

}  // namespace sdpa::grids
