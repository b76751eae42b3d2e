// Which kernels this processor runs.
#pragma once

#include <span>

#include "kernels/kernel_table.hpp"
#include "sdpa/attention.hpp"
#include "sdpa/gemm.hpp"
#include "sdpa/gradients.hpp"
#include "sdpa/linear.hpp"
#include "sdpa/weights.hpp"
#include "sdpa/window.hpp"

namespace sdpa::core {

/// The tables compiled in that this processor can run, the fastest first. Never empty.
std::span<const kernels::KernelTable* const> available_kernels();

/// attention() and attention_workspace_bytes() with the kernels of `table`.
WorkspaceSize attention_workspace_bytes(const kernels::KernelTable& table, const AttentionTensors& tensors,
                                        const AttentionOptions& options);
Status attention(const kernels::KernelTable& table, const AttentionTensors& tensors, const AttentionOptions& options,
                 std::span<std::byte> workspace);

/// attention_backward() and its workspace likewise.
WorkspaceSize attention_backward_workspace_bytes(const kernels::KernelTable& table, const BackwardTensors& tensors,
                                                 const AttentionOptions& options);
Status attention_backward(const kernels::KernelTable& table, const BackwardTensors& tensors,
                          const AttentionOptions& options, std::span<std::byte> workspace);

/// attention_weights() and its workspace likewise.
WorkspaceSize attention_weights_workspace_bytes(const kernels::KernelTable& table, const WeightsTensors& tensors,
                                                const WeightsRequest& request, const AttentionOptions& options);
Status attention_weights(const kernels::KernelTable& table, const WeightsTensors& tensors,
                         const WeightsRequest& request, const AttentionOptions& options,
                         std::span<std::byte> workspace);

/// gemm(), gemm_pack() and their sizes likewise.
WorkspaceSize gemm_packed_bytes(const kernels::KernelTable& table, std::size_t inner, std::size_t columns);
Status gemm_pack(const kernels::KernelTable& table, const MatrixView& b, std::size_t inner, std::size_t columns,
                 std::span<float> to);
WorkspaceSize gemm_workspace_bytes(const kernels::KernelTable& table, const GemmArguments& arguments);
Status gemm(const kernels::KernelTable& table, const GemmArguments& arguments, std::span<std::byte> workspace);

/// linear_attention(), its backward pass and their workspaces likewise.
WorkspaceSize linear_attention_workspace_bytes(const kernels::KernelTable& table, const LinearTensors& tensors,
                                               const LinearOptions& options);
Status linear_attention(const kernels::KernelTable& table, const LinearTensors& tensors, const LinearOptions& options,
                        std::span<std::byte> workspace);
WorkspaceSize linear_attention_backward_workspace_bytes(const kernels::KernelTable& table, const LinearTensors& tensors,
                                                        const LinearGradients& gradients, const LinearOptions& options);
Status linear_attention_backward(const kernels::KernelTable& table, const LinearTensors& tensors,
                                 const LinearGradients& gradients, const LinearOptions& options,
                                 std::span<std::byte> workspace);

/// window_attention(), its workspace and normalize_rows() likewise.
WorkspaceSize window_attention_workspace_bytes(const kernels::KernelTable& table, const AttentionTensors& tensors,
                                               const Windows& windows, const AttentionOptions& options);
Status window_attention(const kernels::KernelTable& table, const AttentionTensors& tensors, const Windows& windows,
                        const AttentionOptions& options, std::span<std::byte> workspace);
Status normalize_rows(const kernels::KernelTable& table, const InputView& from, const double* factors, float* to);

}  // namespace sdpa::core
