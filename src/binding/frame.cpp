#include "binding/frame.hpp"

#include <cstddef>

namespace sdpa::binding {
namespace {

class Reader {
 public:
  explicit Reader(const double* frame) : frame_(frame) {}

  double number(Field field) const { return frame_[static_cast<std::size_t>(field)]; }
  std::size_t size(Field field) const { return static_cast<std::size_t>(number(field)); }

  template <class T>
  T* pointer(Field field) const {
    return reinterpret_cast<T*>(static_cast<std::uintptr_t>(number(field)));
  }

  template <class Enum>
  Enum choice(Field field) const {
    return static_cast<Enum>(static_cast<std::uint8_t>(number(field)));
  }

  /// Four consecutive fields.
  Extents extents(Field first) const {
    Extents e{};
    for (std::size_t r = 0; r < 4; ++r) e[r] = static_cast<std::size_t>(frame_[static_cast<std::size_t>(first) + r]);
    return e;
  }

  std::span<const std::int32_t> per_batch(Field field) const {
    const auto* data = pointer<const std::int32_t>(field);
    return data == nullptr ? std::span<const std::int32_t>() : std::span(data, size(Field::kBatch));
  }

  std::int64_t bound(Field field) const {
    const double x = number(field);
    // -1 stands for "unlimited"; a count beyond every length is the same thing.
    return x == -1.0 || x > 9.0e15 ? kUnlimited : static_cast<std::int64_t>(x);
  }

 private:
  const double* frame_;
};

}  // namespace

Call decode(const double* frame) {
  const Reader f(frame);
  const std::size_t batch = f.size(Field::kBatch);
  const std::size_t heads = f.size(Field::kNumHeads);
  const std::size_t kv_heads = f.size(Field::kNumKvHeads);
  const std::size_t seqlen_q = f.size(Field::kSeqlenQ);
  const std::size_t seqlen_kv = f.size(Field::kSeqlenKv);
  const std::size_t head_dim = f.size(Field::kHeadDim);
  const std::size_t head_dim_v = f.size(Field::kHeadDimV);
  const auto layout = f.choice<Layout>(Field::kLayout);

  Call call;
  AttentionTensors& t = call.tensors;
  t.query = {f.pointer<const void>(Field::kQuery), f.choice<DType>(Field::kQueryDtype),
             Extents{batch, heads, seqlen_q, head_dim}, layout};
  t.key = {f.pointer<const void>(Field::kKey), f.choice<DType>(Field::kKeyDtype),
           Extents{batch, kv_heads, seqlen_kv, head_dim}, layout};
  t.value = {f.pointer<const void>(Field::kValue), f.choice<DType>(Field::kValueDtype),
             Extents{batch, kv_heads, seqlen_kv, head_dim_v}, layout};
  const Extents out{batch, heads, seqlen_q, head_dim_v};
  t.out = {f.pointer<float>(Field::kOut), out, contiguous_strides(out, layout)};
  t.lse = {f.pointer<float>(Field::kLse), Extents{batch, heads, seqlen_q, 1}};
  t.scores = {f.pointer<float>(Field::kScores), Extents{batch, heads, seqlen_q, seqlen_kv}};

  AttentionOptions& o = call.options;
  const Extents mask = f.extents(Field::kMaskBatch);
  const Extents bias = f.extents(Field::kBiasBatch);
  o.mask = {f.pointer<const std::uint8_t>(Field::kMask), mask, broadcast_strides(mask)};
  o.bias = {f.pointer<const void>(Field::kBias), f.choice<DType>(Field::kBiasDtype), bias, broadcast_strides(bias)};
  o.scale = f.number(Field::kScale);
  o.softcap = f.number(Field::kSoftcap);
  o.causal = f.number(Field::kCausal) != 0;
  o.window_left = f.bound(Field::kWindowLeft);
  o.window_right = f.bound(Field::kWindowRight);
  o.align = f.choice<Align>(Field::kAlign);
  o.query_offset = static_cast<std::int64_t>(f.number(Field::kQueryOffset));
  o.query_offsets = f.per_batch(Field::kQueryOffsets);
  o.query_lengths = f.per_batch(Field::kQueryLengths);
  o.kv_lengths = f.per_batch(Field::kKvLengths);
  o.scores_stage = f.choice<ScoresStage>(Field::kScoresStage);
  call.workspace = {f.pointer<std::byte>(Field::kWorkspace), f.size(Field::kWorkspaceBytes)};
  return call;
}

}  // namespace sdpa::binding
