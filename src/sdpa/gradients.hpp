// Gradients of attention() in O(seqlen) memory: the backward pass of Dao et al. (2022), which computes the weights
// again from the log-sum-exp of each row instead of keeping them.
#pragma once

#include <cstddef>
#include <span>

#include "sdpa/attention.hpp"
#include "sdpa/options.hpp"
#include "sdpa/status.hpp"
#include "sdpa/tensor_view.hpp"

namespace sdpa {

/// Inputs of the forward pass, what it gave, the gradients of that, and where the gradients of the inputs go. Every
/// element of a gradient that is asked for is written.
struct BackwardTensors {
  InputView query;                // (batch, num_heads, seqlen_q, head_dim)
  InputView key;                  // (batch, num_kv_heads, seqlen_kv, head_dim)
  InputView value;                // (batch, num_kv_heads, seqlen_kv, head_dim_v)
  TensorView<const float> out;    // of the forward pass, (batch, num_heads, seqlen_q, head_dim_v)
  TensorView<const float> lse;    // of the forward pass, (batch, num_heads, seqlen_q, 1)
  TensorView<const float> d_out;  // gradient of out
  TensorView<const float> d_lse;  // optional: gradient of lse

  TensorView<float> d_query;  // in the shapes of query, key, value
  TensorView<float> d_key;
  TensorView<float> d_value;
  TensorView<float> d_bias;          // optional: in the shape of the bias; summed over its repeated dimensions
  std::span<double> d_scale;         // optional, one each for (batch, num_heads): the gradient is their sum
  std::span<double> d_sinks;         // likewise
  std::span<double> d_alibi_slopes;  // likewise
};

/// Bytes of scratch memory that attention_backward() needs for these arguments. Validates them as it does.
WorkspaceSize attention_backward_workspace_bytes(const BackwardTensors& tensors, const AttentionOptions& options);

/// Gradients for the options of the forward pass (scores_stage apart). Masked cells and rows that see nothing give
/// exact zeros. Each element has one owner and one order of additions. `workspace` as for attention().
Status attention_backward(const BackwardTensors& tensors, const AttentionOptions& options,
                          std::span<std::byte> workspace);

}  // namespace sdpa
