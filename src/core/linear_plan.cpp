#include "core/linear_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/extents.hpp"

namespace sdpa::core {
namespace {

Status validate_view(const InputView& view) {
  if (!is_float(view.dtype())) return StatusCode::kInvalidDtype;
  if (is_missing(view)) return StatusCode::kMissingTensor;
  if (!product_fits(view.extents(), size_of(view.dtype()))) return StatusCode::kSizeOverflow;
  return columns_are_contiguous(view) ? StatusCode::kOk : StatusCode::kColumnStride;
}

Status validate_sizes(const LinearTensors& t, const LinearOptions& o, const LinearSizes& s) {
  if (t.key.extent(0) != s.batch || t.value.extent(0) != s.batch) return StatusCode::kBatchMismatch;
  if (s.states == 0 || s.key_heads == 0 || s.heads == 0) return StatusCode::kHeadsNotMultiple;
  if (s.states % s.key_heads != 0) return StatusCode::kHeadsNotMultiple;
  if (s.heads % s.states != 0 && s.states % s.heads != 0) return StatusCode::kHeadsNotMultiple;
  if (t.value.extent(2) != s.keys || (o.causal && s.queries != s.keys)) return StatusCode::kSeqlenMismatch;
  if (t.key.extent(3) != s.head_dim) return StatusCode::kHeadDimMismatch;
  return s.head_dim == 0 || s.head_dim_v == 0 ? StatusCode::kHeadDimZero : StatusCode::kOk;
}

/// What goes with one token of a state, where it is there.
Status validate_gate(const InputView& gate, const LinearSizes& s, std::size_t columns, bool one_head) {
  if (gate.data_handle() == nullptr && is_empty(gate.extents())) return StatusCode::kOk;
  const bool heads = gate.extent(1) == s.states || (one_head && gate.extent(1) == 1);
  const bool width = gate.extent(3) == 1 || gate.extent(3) == columns;
  if (gate.extent(0) != s.batch || !heads || gate.extent(2) != s.keys || !width) return StatusCode::kInvalidRequest;
  return validate_view(gate);
}

/// Also where it has no elements, and so no address.
bool is_given(const InputView& view) { return view.data_handle() != nullptr || view.extents() != Extents{}; }

Status validate_options(const LinearTensors& t, const LinearOptions& o) {
  if (!std::isfinite(o.scale)) return StatusCode::kInvalidScale;
  if (!(o.epsilon >= 0) || !std::isfinite(o.epsilon)) return StatusCode::kInvalidScale;
  const bool decays = is_given(t.decay);
  const bool steps = is_given(t.step);
  const bool deltas = is_given(t.beta);
  if (steps != (t.rate != nullptr) || (t.skip != nullptr && !steps)) return StatusCode::kInvalidRequest;
  if (steps && (decays || deltas)) return StatusCode::kInvalidRequest;
  // A key that takes no part would still let time pass.
  if (t.key_mask != nullptr && (decays || steps)) return StatusCode::kInvalidRequest;
  const bool plain = !steps && !decays && !deltas;
  return (o.normalised || !o.causal) && !plain ? StatusCode::kInvalidRequest : StatusCode::kOk;
}

/// The rows of one batch entry from head `head` on.
kernels::LinearRows rows_of(const InputView& view, std::size_t batch, std::size_t head) {
  if (view.data_handle() == nullptr) return {nullptr, DType::kFloat32, 0, 0};
  return {view.head(batch, head), view.dtype(), view.stride(2), view.stride(1)};
}

}  // namespace

LinearSizes::LinearSizes(const LinearTensors& t, const LinearOptions& o)
    : batch(t.query.extent(0)),
      heads(t.query.extent(1)),
      key_heads(t.key.extent(1)),
      states(t.value.extent(1)),
      out_heads(std::max(heads, states)),
      readers(states == 0 ? 0 : out_heads / states),
      queries(t.query.extent(2)),
      keys(t.key.extent(2)),
      head_dim(t.query.extent(3)),
      head_dim_v(t.value.extent(3)),
      columns(head_dim_v + (o.normalised ? 1 : 0)) {}

Status validate_linear(const LinearTensors& t, const LinearOptions& o) {
  const LinearSizes s(t, o);
  Status status = validate_sizes(t, o, s);
  for (const InputView* view : {&t.query, &t.key, &t.value}) {
    if (status.ok()) status = validate_view(*view);
  }
  if (status.ok() && !product_fits(s.out_extents(), sizeof(float))) status = StatusCode::kSizeOverflow;
  if (status.ok() && !product_fits({s.batch, s.states, s.head_dim, s.columns}, sizeof(float))) {
    status = StatusCode::kSizeOverflow;
  }
  if (status.ok()) status = validate_gate(t.decay, s, s.head_dim, false);
  if (status.ok()) status = validate_gate(t.beta, s, 1, true);
  if (status.ok()) status = validate_gate(t.step, s, 1, false);
  if (status.ok()) status = validate_options(t, o);
  return status;
}

kernels::LinearShape linear_shape(const kernels::KernelTable& table, const LinearTensors& t, const LinearOptions& o) {
  const LinearSizes s(t, o);
  kernels::LinearShape shape{};
  shape.head_dim = s.head_dim;
  shape.head_dim_v = s.head_dim_v;
  shape.readers = s.readers;
  if (t.decay.data_handle() != nullptr) shape.decay_columns = t.decay.extent(3);
  if (t.step.data_handle() != nullptr) shape.decay_columns = 1;
  const std::size_t chunk = o.chunk == 0 ? table.linear_chunk : o.chunk;
  shape.chunk = std::max<std::size_t>(1, std::min(chunk, std::max(s.queries, s.keys)));
  shape.normalised = o.normalised;
  return shape;
}

kernels::LinearHead linear_head(const LinearTensors& t, const LinearOptions& o, const kernels::LinearShape& shape,
                                std::size_t batch, std::size_t state) {
  const LinearSizes s(t, o);
  const std::size_t at = s.state_offset(batch, state);
  const bool steps = t.step.data_handle() != nullptr;
  kernels::LinearHead h{};
  h.shape = shape;
  h.query = rows_of(t.query, batch, s.first_reader(state));
  h.key = rows_of(t.key, batch, s.key_head(state));
  h.value = rows_of(t.value, batch, state);
  h.decay = rows_of(steps ? t.step : t.decay, batch, state);
  h.beta = rows_of(t.beta, batch, t.beta.extent(1) == 1 ? 0 : state);
  h.steps = steps;
  if (steps) h.rate = t.rate[state];
  if (t.skip != nullptr) h.skip = t.skip[state];
  if (t.key_mask != nullptr) h.key_mask = t.key_mask + batch * s.keys;
  if (t.state != nullptr) h.state = t.state + at;
  if (t.next_state != nullptr) h.next_state = t.next_state + at;
  if (t.out.data_handle() != nullptr) h.out = &t.out(batch, state * s.readers, 0, 0);
  h.out_stride = t.out.stride(2);
  h.out_head_stride = t.out.stride(1);
  h.queries = s.queries;
  h.keys = s.keys;
  h.scale = o.normalised || steps ? 1.0F : static_cast<float>(o.scale);
  h.epsilon = static_cast<float>(o.epsilon);
  h.causal = o.causal;
  return h;
}

bool workspace_fits(const kernels::LinearShape& shape, double times, double more) {
  // In doubles, which do not overflow.
  const double row = static_cast<double>(shape.head_dim) + static_cast<double>(shape.head_dim_v) + 64;
  const double chunk = static_cast<double>(shape.chunk) * (3 + 2 * static_cast<double>(shape.readers));
  const double bytes = (times * row * (chunk + row) + more) * sizeof(float);
  return bytes <= static_cast<double>(std::numeric_limits<std::size_t>::max());
}

}  // namespace sdpa::core
