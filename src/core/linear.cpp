#include "sdpa/linear.hpp"

#include "core/dispatch.hpp"
#include "core/linear_plan.hpp"
#include "core/validate.hpp"

namespace sdpa::core {

WorkspaceSize linear_attention_workspace_bytes(const kernels::KernelTable& table, const LinearTensors& tensors,
                                               const LinearOptions& options) {
  const LinearSizes sizes(tensors, options);
  Status status = validate_linear(tensors, options);
  if (status.ok()) status = validate_result(tensors.out, sizes.out_extents(), StatusCode::kOutShape);
  if (!status.ok() || sizes.no_states()) return {status, 0};
  const kernels::LinearShape shape = linear_shape(table, tensors, options);
  if (!workspace_fits(shape, 1, 0)) return {StatusCode::kSizeOverflow, 0};
  return {status, table.linear_workspace_floats(shape) * sizeof(float)};
}

Status linear_attention(const kernels::KernelTable& table, const LinearTensors& tensors, const LinearOptions& options,
                        std::span<std::byte> workspace) {
  const WorkspaceSize size = linear_attention_workspace_bytes(table, tensors, options);
  if (!size.status.ok()) return size.status;
  const LinearSizes sizes(tensors, options);
  if (sizes.no_states()) return StatusCode::kOk;
  const Status room = validate_workspace(workspace, size.bytes);
  if (!room.ok()) return room;
  const kernels::LinearShape shape = linear_shape(table, tensors, options);
  for (std::size_t b = 0; b < sizes.batch; ++b) {
    for (std::size_t s = 0; s < sizes.states; ++s) {
      table.linear_head(linear_head(tensors, options, shape, b, s), reinterpret_cast<float*>(workspace.data()));
    }
  }
  return StatusCode::kOk;
}

}  // namespace sdpa::core

namespace sdpa {

WorkspaceSize linear_attention_workspace_bytes(const LinearTensors& tensors, const LinearOptions& options) {
  return core::linear_attention_workspace_bytes(*core::available_kernels().front(), tensors, options);
}

Status linear_attention(const LinearTensors& tensors, const LinearOptions& options, std::span<std::byte> workspace) {
  return core::linear_attention(*core::available_kernels().front(), tensors, options, workspace);
}

}  // namespace sdpa
