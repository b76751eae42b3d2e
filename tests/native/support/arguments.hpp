// A problem laid out in memory for the library: operands, outputs and options, owned together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sdpa/attention.hpp"
#include "support/problems.hpp"

namespace sdpa::testing {

// How tensors lie in memory. kScattered: views with gaps after every row, head and batch, inside buffers full of NaN
// (bytes of 255 for the mask), with meaningless strides for extents of 1.
enum class Placement { kBhld, kBlhd, kScattered };

struct RunOptions {
  Placement placement = Placement::kBhld;
  ScoresStage scores_stage = ScoresStage::kNone;
  bool lse = true;
  DType query_dtype = DType::kFloat32;
  DType key_dtype = DType::kFloat32;
  DType value_dtype = DType::kFloat32;
  DType bias_dtype = DType::kFloat32;
};

// An output before anything was written to it; no kernel produces this value by itself.
inline constexpr float kUnwritten = -7.25e33F;

// A buffer and the view of a tensor in it.
struct Place {
  std::size_t start = 0;
  std::size_t size = 0;
  Strides strides{};
  // For outputs: which elements of the buffer belong to the tensor.
  std::vector<std::size_t> elements(const Extents& extents) const;
};

class Arguments {
 public:
  Arguments(const Problem& problem, const RunOptions& run);

  // The views and options point into this object's own buffers.
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  AttentionTensors tensors;
  AttentionOptions options;

  // The outputs, contiguous; `scores` is empty where no stage was asked for.
  std::vector<float> out() const { return gather(out_); }
  std::vector<float> lse() const { return gather(lse_); }
  std::vector<float> scores() const { return gather(scores_); }
  // Whether every element of the output buffers that belongs to no output still has its first value.
  bool gaps_untouched() const { return untouched(out_) && untouched(lse_) && untouched(scores_); }
  // Whether no output was written at all.
  bool nothing_written() const;

 private:
  struct Output {
    Extents extents{};
    Place place;
    std::unique_ptr<float[]> data;
  };

  InputView input(const std::vector<float>& values, const Extents& extents, DType dtype, Placement placement,
                  bool broadcast);
  TensorView<const std::uint8_t> mask(const Broadcast<std::uint8_t>& values, Placement placement);
  void set_positions(const Problem& problem);
  void set_block_mask(const Broadcast<std::uint8_t>& values);
  PerHead per_head(const reference::PerHead& values, std::size_t num_heads);
  // A copy of the values of its own.
  template <class T>
  std::span<const T> copy(const std::vector<T>& values);
  static TensorView<float> output(Output& target, const Extents& extents, Placement placement);
  static std::vector<float> gather(const Output& output);
  static bool untouched(const Output& output);

  // Each buffer is an allocation of its own, of the exact size, so that an address sanitizer sees reads past the end.
  std::vector<std::unique_ptr<std::byte[]>> inputs_;
  Output out_, lse_, scores_;
};

}  // namespace sdpa::testing
