#include <algorithm>

#include "core/dispatch.hpp"
#include "core/linear_plan.hpp"
#include "core/validate.hpp"
#include "sdpa/linear.hpp"

namespace sdpa::core {
namespace {

Status validate_gradient(const TensorView<float>& gradient, const Extents& extents) {
  return validate_result(gradient, extents, StatusCode::kGradientShape);
}

Status validate(const LinearTensors& t, const LinearGradients& g, const LinearOptions& o) {
  Status status = validate_linear(t, o);
  if (!status.ok()) return status;
  if (t.beta.data_handle() != nullptr) return StatusCode::kInvalidRequest;
  const LinearSizes s(t, o);
  status = validate_result(g.d_out, s.out_extents(), StatusCode::kOutShape);
  if (status.ok()) status = validate_gradient(g.d_query, t.query.extents());
  if (status.ok()) status = validate_gradient(g.d_key, t.key.extents());
  if (status.ok()) status = validate_gradient(g.d_value, t.value.extents());
  if (status.ok() && t.decay.data_handle() != nullptr) status = validate_gradient(g.d_decay, t.decay.extents());
  if (status.ok() && t.step.data_handle() != nullptr) {
    status = validate_gradient(g.d_step, t.step.extents());
    if (status.ok() && g.d_rate == nullptr) status = StatusCode::kMissingTensor;
    if (status.ok() && t.skip != nullptr && g.d_skip == nullptr) status = StatusCode::kMissingTensor;
  }
  return status;
}

kernels::LinearBackward backward_of(const LinearTensors& t, const LinearGradients& g, const LinearOptions& o,
                                    const kernels::LinearShape& shape, std::size_t b, std::size_t state) {
  const LinearSizes s(t, o);
  const std::size_t at = s.state_offset(b, state);
  const bool steps = t.step.data_handle() != nullptr;
  kernels::LinearBackward call{};
  call.forward = linear_head(t, o, shape, b, state);
  call.d_out = g.d_out.data_handle() + g.d_out.offset(b, state * s.readers, 0, 0);
  call.d_out_stride = g.d_out.stride(2);
  call.d_out_head_stride = g.d_out.stride(1);
  if (g.d_next_state != nullptr) call.d_state = g.d_next_state + at;
  call.d_query = g.d_query.data_handle() + g.d_query.offset(b, s.first_reader(state), 0, 0);
  call.d_query_stride = g.d_query.stride(2);
  call.d_query_head_stride = g.d_query.stride(1);
  call.add_query = s.heads < s.states && state % (s.states / s.heads) != 0;
  call.d_key = g.d_key.data_handle() + g.d_key.offset(b, s.key_head(state), 0, 0);
  call.d_key_stride = g.d_key.stride(2);
  call.add_key = state % (s.states / s.key_heads) != 0;
  call.d_value = g.d_value.data_handle() + g.d_value.offset(b, state, 0, 0);
  call.d_value_stride = g.d_value.stride(2);
  if (shape.decay_columns != 0) {
    const TensorView<float>& d_decay = steps ? g.d_step : g.d_decay;
    call.d_decay = d_decay.data_handle() + d_decay.offset(b, state, 0, 0);
    call.d_decay_stride = d_decay.stride(2);
  }
  if (steps) call.d_rate = g.d_rate + state;
  if (t.skip != nullptr) call.d_skip = g.d_skip + state;
  if (g.d_state != nullptr) call.d_first_state = g.d_state + at;
  return call;
}

}  // namespace

WorkspaceSize linear_attention_backward_workspace_bytes(const kernels::KernelTable& table, const LinearTensors& t,
                                                        const LinearGradients& g, const LinearOptions& o) {
  const Status status = validate(t, g, o);
  const LinearSizes s(t, o);
  if (!status.ok() || s.no_states()) return {status, 0};
  const kernels::LinearShape shape = linear_shape(table, t, o);
  const double divisors = 2 * static_cast<double>(shape.readers) * static_cast<double>(s.queries);
  if (!workspace_fits(shape, 3, divisors)) return {StatusCode::kSizeOverflow, 0};
  return {status, table.linear_backward_workspace_floats(shape, s.queries) * sizeof(float)};
}

Status linear_attention_backward(const kernels::KernelTable& table, const LinearTensors& t, const LinearGradients& g,
                                 const LinearOptions& o, std::span<std::byte> workspace) {
  const WorkspaceSize size = linear_attention_backward_workspace_bytes(table, t, g, o);
  if (!size.status.ok()) return size.status;
  const LinearSizes s(t, o);
  if (s.no_states()) return StatusCode::kOk;
  const Status room = validate_workspace(workspace, size.bytes);
  if (!room.ok()) return room;
  const kernels::LinearShape shape = linear_shape(table, t, o);
  if (g.d_rate != nullptr) std::fill_n(g.d_rate, s.states, 0.0);
  if (g.d_skip != nullptr) std::fill_n(g.d_skip, s.states, 0.0);
  for (std::size_t b = 0; b < s.batch; ++b) {
    for (std::size_t state = 0; state < s.states; ++state) {
      table.linear_backward_head(backward_of(t, g, o, shape, b, state), reinterpret_cast<float*>(workspace.data()));
    }
  }
  return StatusCode::kOk;
}

}  // namespace sdpa::core

namespace sdpa {

WorkspaceSize linear_attention_backward_workspace_bytes(const LinearTensors& tensors, const LinearGradients& gradients,
                                                        const LinearOptions& options) {
  return core::linear_attention_backward_workspace_bytes(*core::available_kernels().front(), tensors, gradients,
                                                         options);
}

Status linear_attention_backward(const LinearTensors& tensors, const LinearGradients& gradients,
                                 const LinearOptions& options, std::span<std::byte> workspace) {
  return core::linear_attention_backward(*core::available_kernels().front(), tensors, gradients, options, workspace);
}

}  // namespace sdpa
