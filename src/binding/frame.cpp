#include "binding/frame.hpp"

#include <cstddef>

#include "binding/reader.hpp"

namespace sdpa::binding {
namespace {

class Reader : public FrameReader<Field> {
 public:
  using FrameReader::FrameReader;

  /// Four consecutive fields.
  Extents extents(Field first) const {
    Extents e{};
    for (std::size_t r = 0; r < 4; ++r) e[r] = static_cast<std::size_t>(at(static_cast<std::size_t>(first) + r));
    return e;
  }

  std::span<const std::int32_t> per_batch(Field field) const {
    const auto* data = pointer<const std::int32_t>(field);
    return data == nullptr ? std::span<const std::int32_t>() : std::span(data, size(Field::kBatch));
  }

  std::span<const std::int32_t> ints(Field field, std::size_t count) const {
    const auto* data = pointer<const std::int32_t>(field);
    return data == nullptr ? std::span<const std::int32_t>() : std::span(data, count);
  }

  PerHead per_head(Field field, Field batch) const {
    return {pointer<const float>(field), size(batch) > 1 ? size(Field::kNumHeads) : 0};
  }

  /// Key or value: contiguous, or with the strides of a cache.
  InputView stored(Field data, Field dtype, Field stride, const Extents& extents, Layout layout) const {
    Strides strides = contiguous_strides(extents, layout);
    const std::size_t first = static_cast<std::size_t>(stride);
    if (at(first + 2) != 0) {
      for (std::size_t r = 0; r < 3; ++r) strides[r] = static_cast<std::size_t>(at(first + r));
    }
    return {pointer<const void>(data), choice<DType>(dtype), extents, strides};
  }

  std::int64_t bound(Field field) const {
    const double x = number(field);
    // -1 stands for "unlimited"; a count beyond every length is the same thing.
    return x == -1.0 || x > 9.0e15 ? kUnlimited : static_cast<std::int64_t>(x);
  }
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
  t.key =
      f.stored(Field::kKey, Field::kKeyDtype, Field::kKeyBatchStride, {batch, kv_heads, seqlen_kv, head_dim}, layout);
  t.value = f.stored(Field::kValue, Field::kValueDtype, Field::kValueBatchStride,
                     {batch, kv_heads, seqlen_kv, head_dim_v}, layout);
  const Extents out{batch, heads, seqlen_q, head_dim_v};
  t.out = {f.pointer<float>(Field::kOut), out, contiguous_strides(out, layout)};
  t.lse = {f.pointer<float>(Field::kLse), Extents{batch, heads, seqlen_q, 1}};
  t.scores = {f.pointer<float>(Field::kScores), Extents{batch, heads, seqlen_q, seqlen_kv}};
  t.map = {f.pointer<const float>(Field::kKeyScales),
           f.pointer<const float>(Field::kValueScales),
           f.pointer<const std::int32_t>(Field::kPages),
           f.size(Field::kPagesPerRow),
           f.size(Field::kPageSize),
           f.size(Field::kRingBegin),
           f.size(Field::kRingSize),
           f.pointer<const std::int32_t>(Field::kHeldFrom)};

  AttentionOptions& o = call.options;
  const Extents mask = f.extents(Field::kMaskBatch);
  const Extents bias = f.extents(Field::kBiasBatch);
  o.mask = {f.pointer<const std::uint8_t>(Field::kMask), mask, broadcast_strides(mask)};
  o.bias = {f.pointer<const void>(Field::kBias), f.choice<DType>(Field::kBiasDtype), bias, broadcast_strides(bias)};
  o.scale = f.number(Field::kScale);
  o.softcap = f.number(Field::kSoftcap);
  o.causal = f.flag(Field::kCausal);
  o.window_left = f.bound(Field::kWindowLeft);
  o.window_right = f.bound(Field::kWindowRight);
  o.chunk = static_cast<std::int64_t>(f.number(Field::kChunk));
  o.global_keys = static_cast<std::int64_t>(f.number(Field::kGlobalKeys));
  o.alibi_slopes = f.per_head(Field::kAlibiSlopes, Field::kAlibiBatch);
  o.sinks = f.per_head(Field::kSinks, Field::kSinkBatch);
  o.query_segments = f.ints(Field::kQuerySegments, batch * seqlen_q);
  o.key_segments = f.ints(Field::kKeySegments, batch * seqlen_kv);
  o.query_starts = f.ints(Field::kQueryStarts, f.size(Field::kSequences) + 1);
  o.key_starts = f.ints(Field::kKeyStarts, f.size(Field::kSequences) + 1);
  o.block_mask = {f.pointer<const std::uint32_t>(Field::kBlockTiles), f.pointer<const std::uint32_t>(Field::kBlockBits),
                  f.size(Field::kBlockBatch), f.size(Field::kBlockHeads), f.size(Field::kBlockRows)};
  o.dropout = {f.number(Field::kDropout), static_cast<std::uint32_t>(f.number(Field::kSeedLow)),
               static_cast<std::uint32_t>(f.number(Field::kSeedHigh))};
  o.origin = {f.size(Field::kCellBatch), f.size(Field::kCellHead), f.size(Field::kCellRow)};
  o.align = f.choice<Align>(Field::kAlign);
  o.query_offset = static_cast<std::int64_t>(f.number(Field::kQueryOffset));
  o.query_offsets = f.per_batch(Field::kQueryOffsets);
  o.query_lengths = f.per_batch(Field::kQueryLengths);
  o.kv_lengths = f.per_batch(Field::kKvLengths);
  o.scores_stage = f.choice<ScoresStage>(Field::kScoresStage);
  call.workspace = {f.pointer<std::byte>(Field::kWorkspace), f.size(Field::kWorkspaceBytes)};
  return call;
}

Windows decode_windows(const double* frame) {
  const Reader f(frame);
  return {f.size(Field::kImageWidth), f.size(Field::kWindowHeight), f.size(Field::kWindowWidth),
          f.ints(Field::kWindowOrigins, f.size(Field::kNumWindows))};
}

WeightsCall decode_weights(const double* frame) {
  const Reader f(frame);
  const Call forward = decode(frame);
  WeightsCall call;
  call.tensors.query = forward.tensors.query;
  call.tensors.key = forward.tensors.key;
  call.tensors.map = forward.tensors.map;
  const auto& lse = forward.tensors.lse;
  call.tensors.lse = {lse.data_handle(), lse.extents(), lse.strides()};
  call.options = forward.options;
  call.workspace = forward.workspace;

  WeightsRequest& r = call.request;
  r.kind = f.choice<WeightsKind>(Field::kWeightsKind);
  r.heads = f.ints(Field::kWeightsHeads, f.size(Field::kWeightsNumHeads));
  r.picks = f.ints(Field::kWeightsPicks, f.size(Field::kWeightsNumPicks));
  r.top_k = f.size(Field::kTopK);
  // Starts and the end.
  r.row_cells = f.ints(Field::kRowCells, f.size(Field::kNumRowCells) + 1);
  r.column_cells = f.ints(Field::kColumnCells, f.size(Field::kNumColumnCells) + 1);
  r.values = f.pointer<float>(Field::kWeightsValues);
  r.indices = f.pointer<std::int32_t>(Field::kWeightsIndices);
  r.entropy = f.pointer<float>(Field::kWeightsEntropy);
  r.sums = f.pointer<double>(Field::kWeightsSums);
  return call;
}

BackwardCall decode_backward(const double* frame) {
  const Reader f(frame);
  const Call forward = decode(frame);
  BackwardCall call;
  BackwardTensors& t = call.tensors;
  t.query = forward.tensors.query;
  t.key = forward.tensors.key;
  t.value = forward.tensors.value;
  const auto input = [](const float* data, const TensorView<float>& like) {
    return TensorView<const float>(data, like.extents(), like.strides());
  };
  t.out = input(forward.tensors.out.data_handle(), forward.tensors.out);
  t.lse = input(forward.tensors.lse.data_handle(), forward.tensors.lse);
  t.d_out = input(f.pointer<const float>(Field::kDOut), forward.tensors.out);
  t.d_lse = input(f.pointer<const float>(Field::kDLse), forward.tensors.lse);

  const auto layout = f.choice<Layout>(Field::kLayout);
  const auto gradient = [&](Field field, const InputView& of) {
    return TensorView<float>(f.pointer<float>(field), of.extents(), contiguous_strides(of.extents(), layout));
  };
  t.d_query = gradient(Field::kDQuery, t.query);
  t.d_key = gradient(Field::kDKey, t.key);
  t.d_value = gradient(Field::kDValue, t.value);
  t.d_bias = {f.pointer<float>(Field::kDBias), forward.options.bias.extents()};
  const auto per_head = [&](Field field) {
    auto* data = f.pointer<double>(field);
    return data == nullptr ? std::span<double>() : std::span(data, f.size(Field::kBatch) * f.size(Field::kNumHeads));
  };
  t.d_scale = per_head(Field::kDScale);
  t.d_sinks = per_head(Field::kDSinks);
  t.d_alibi_slopes = per_head(Field::kDAlibi);
  call.options = forward.options;
  call.workspace = forward.workspace;
  return call;
}

}  // namespace sdpa::binding
