#include "binding/linear_frame.hpp"

#include <algorithm>

#include "binding/reader.hpp"

namespace sdpa::binding {
namespace {

using F = LinearField;

class Reader : public FrameReader<F> {
 public:
  using FrameReader::FrameReader;

  Layout layout() const { return choice<Layout>(F::kLayout); }

  InputView view(F data, F dtype, const Extents& extents) const {
    return {pointer<const void>(data), choice<DType>(dtype), extents, layout()};
  }
  /// One that may be absent.
  InputView gate(F data, F dtype, const Extents& extents) const {
    return number(data) == 0 ? InputView{} : view(data, dtype, extents);
  }
};

}  // namespace

LinearCall decode_linear(const double* frame) {
  const Reader r(frame);
  const std::size_t batch = r.size(F::kBatch);
  const std::size_t heads = r.size(F::kHeads);
  const std::size_t states = r.size(F::kStates);
  const std::size_t queries = r.size(F::kSeqlenQ);
  const std::size_t keys = r.size(F::kSeqlenKv);
  const std::size_t head_dim = r.size(F::kHeadDim);
  const std::size_t head_dim_v = r.size(F::kHeadDimV);
  LinearCall call;
  LinearTensors& t = call.tensors;
  t.query = r.view(F::kQuery, F::kQueryDtype, {batch, heads, queries, head_dim});
  t.key = r.view(F::kKey, F::kKeyDtype, {batch, r.size(F::kKeyHeads), keys, head_dim});
  t.value = r.view(F::kValue, F::kValueDtype, {batch, states, keys, head_dim_v});
  t.decay = r.gate(F::kDecay, F::kDecayDtype, {batch, states, keys, r.size(F::kDecayColumns)});
  t.beta = r.gate(F::kBeta, F::kBetaDtype, {batch, r.size(F::kBetaHeads), keys, 1});
  t.step = r.gate(F::kStep, F::kStepDtype, {batch, states, keys, 1});
  t.rate = r.pointer<const float>(F::kRate);
  t.skip = r.pointer<const float>(F::kSkip);
  t.key_mask = r.pointer<const std::uint8_t>(F::kKeyMask);
  t.state = r.pointer<const float>(F::kState);
  t.next_state = r.pointer<float>(F::kNextState);
  const Extents out{batch, std::max(heads, states), queries, head_dim_v};
  t.out = {r.pointer<float>(F::kOut), out, contiguous_strides(out, r.layout())};
  LinearOptions& o = call.options;
  o.causal = r.flag(F::kCausal);
  o.normalised = r.flag(F::kNormalised);
  o.scale = r.number(F::kScale);
  o.epsilon = r.number(F::kEpsilon);
  o.chunk = r.size(F::kChunk);
  call.workspace = {r.pointer<std::byte>(F::kWorkspace), r.size(F::kWorkspaceBytes)};
  return call;
}

LinearGradients decode_linear_gradients(const double* frame, const LinearTensors& t) {
  const Reader r(frame);
  const auto like = [&r](F field, const Extents& extents) {
    return TensorView<float>{r.pointer<float>(field), extents, contiguous_strides(extents, r.layout())};
  };
  LinearGradients g;
  g.d_out = {r.pointer<const float>(F::kDOut), t.out.extents(), t.out.strides()};
  g.d_next_state = r.pointer<const float>(F::kDNextState);
  g.d_query = like(F::kDQuery, t.query.extents());
  g.d_key = like(F::kDKey, t.key.extents());
  g.d_value = like(F::kDValue, t.value.extents());
  g.d_decay = like(F::kDDecay, t.decay.extents());
  g.d_step = like(F::kDStep, t.step.extents());
  g.d_rate = r.pointer<double>(F::kDRate);
  g.d_skip = r.pointer<double>(F::kDSkip);
  g.d_state = r.pointer<float>(F::kDState);
  return g;
}

}  // namespace sdpa::binding
