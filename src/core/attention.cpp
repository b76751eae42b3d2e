// The driver: deals (batch, head, block of rows) to the kernel. Query heads that share a key head are stacked in one
// block where their rows fit, and follow each other otherwise, so that its keys and values are read once or are still
// in the cache.
#include "sdpa/attention.hpp"

#include <algorithm>

#include "core/block_builder.hpp"
#include "core/dispatch.hpp"
#include "core/plan.hpp"
#include "core/validate.hpp"

namespace sdpa::core {
namespace {

void run(const kernels::KernelTable& table, const AttentionTensors& tensors, const AttentionOptions& options,
         const AttentionPlan& plan, std::byte* workspace) {
  BlockBuilder builder(table, tensors, options, workspace);
  auto* memory = reinterpret_cast<float*>(workspace + plan.bounds_bytes);
  const std::size_t seqlen_q = tensors.query.extent(2);
  const std::size_t batch = tensors.query.extent(0);
  const std::size_t heads = tensors.query.extent(1);
  const std::size_t group = heads / tensors.key.extent(1);
  // The first block of a stack of heads, and that of the stack behind one.
  const auto stack_at = [&](std::size_t b, std::size_t h) {
    const std::size_t g = h / group;
    return Place{b, g, h, std::min(plan.heads_per_block, (g + 1) * group - h), 0, plan.rows_at(0, seqlen_q)};
  };
  const auto behind = [&](const Place& stack) {
    const std::size_t h = stack.h + stack.heads;
    return h < heads ? stack_at(stack.b, h) : stack_at(stack.b + 1, 0);
  };
  for (std::size_t b = 0; b < batch; ++b) {
    const RowRules rules(tensors, options, b);
    for (Place stack = stack_at(b, 0); stack.b == b; stack = behind(stack)) {
      for (Place at = stack; at.first < seqlen_q; at.first += at.rows) {
        at.rows = plan.rows_at(at.first, seqlen_q);
        kernels::AttentionBlock block = builder.build(rules, at);
        if (at.rows == seqlen_q) {
          const Place next = behind(stack);
          if (next.b < batch) block.next = builder.next_at(next);
        }
        table.attention_block(block, memory);
      }
    }
  }
}

}  // namespace

WorkspaceSize attention_workspace_bytes(const kernels::KernelTable& table, const AttentionTensors& tensors,
                                        const AttentionOptions& options) {
  AttentionPlan plan;
  Status status = validate(tensors, options);
  if (status.ok()) status = make_plan(table, tensors, options, plan);
  return {status, status.ok() ? plan.bytes() : 0};
}

Status attention(const kernels::KernelTable& table, const AttentionTensors& tensors, const AttentionOptions& options,
                 std::span<std::byte> workspace) {
  AttentionPlan plan;
  Status status = validate(tensors, options);
  if (status.ok()) status = make_plan(table, tensors, options, plan);
  if (!status.ok()) return status;
  if (tensors.out.extent(0) == 0 || tensors.out.extent(1) == 0 || tensors.out.extent(2) == 0) return StatusCode::kOk;
  const Status room = validate_workspace(workspace, plan.bytes());
  if (!room.ok()) return room;
  run(table, tensors, options, plan, workspace.data());
  return StatusCode::kOk;
}

}  // namespace sdpa::core

namespace sdpa {

WorkspaceSize attention_workspace_bytes(const AttentionTensors& tensors, const AttentionOptions& options) {
  return core::attention_workspace_bytes(*core::available_kernels().front(), tensors, options);
}

Status attention(const AttentionTensors& tensors, const AttentionOptions& options, std::span<std::byte> workspace) {
  return core::attention(*core::available_kernels().front(), tensors, options, workspace);
}

}  // namespace sdpa
