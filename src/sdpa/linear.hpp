// Attention whose cost grows with the length, not with its square: a state (head_dim, head_dim_v) for each head, into
// which every token is written and from which every query reads. It is another function than softmax attention, not an
// approximation of it.
//
//   gated        S_t = exp(g_t) S_{t-1} + k_t (x) v_t                          o_t = scale q_t^T S_t
//   gated delta  S_t = exp(g_t) S_{t-1} + beta_t k_t (x) (v_t - (exp(g_t) S_{t-1})^T k_t)
//   normalised   the first without g, of phi(q), phi(k), phi(x) = elu(x) + 1   o_t = phi(q_t)^T S_t / (phi(q_t)^T z_t)
//   ssd          g_t = step_t rate, v_t = step_t x_t, scale 1                  o_t = q_t^T S_t + skip x_t
//
// (Katharopoulos et al. 2020; Yang et al. 2024, 2025; Dao & Gu 2024; ONNX LinearAttention, opset 27.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sdpa/attention.hpp"
#include "sdpa/status.hpp"
#include "sdpa/tensor_view.hpp"

namespace sdpa {

/// One state serves a value head. Query and key heads are as many, or several query heads read one state, or several
/// states share a query or a key head. Absent where the handle is nullptr.
struct LinearTensors {
  InputView query;                         // (batch, query heads, seqlen_q, head_dim)
  InputView key;                           // (batch, key heads, seqlen_kv, head_dim)
  InputView value;                         // (batch, state heads, seqlen_kv, head_dim_v)
  InputView decay;                         // optional (batch, state heads, seqlen_kv, 1 or head_dim): g, the log
  InputView beta;                          // optional (batch, state heads or 1, seqlen_kv, 1)
  InputView step;                          // optional (batch, state heads, seqlen_kv, 1)
  const float* rate = nullptr;             // (state heads); with step
  const float* skip = nullptr;             // optional (state heads); with step
  const std::uint8_t* key_mask = nullptr;  // optional (batch, seqlen_kv), without decay and step: 0 = the key takes no
                                           // part and is not read
  const float* state = nullptr;            // optional (batch, state heads, head_dim, columns): S_0; zeros where absent
  float* next_state = nullptr;             // optional, as state: S of the last token
  TensorView<float> out;                   // (batch, query or state heads, whichever are more, seqlen_q, head_dim_v)
};

struct LinearOptions {
  bool causal = true;       // query t reads the state after key t; else every query reads the state after all keys
  bool normalised = false;  // phi, and a state of head_dim_v + 1 columns, the last of which is z
  double scale = 1;         // neither of normalised rows nor with step
  double epsilon = 0;       // normalised: added to the divisor; rows whose divisor is 0 are 0
  std::size_t chunk = 0;    // tokens that are brought in at a time, 0 = as many as suit; changes no result
};

/// Bytes of scratch memory that linear_attention() needs for these arguments; they do not depend on the lengths.
/// Validates them as linear_attention() does.
WorkspaceSize linear_attention_workspace_bytes(const LinearTensors& tensors, const LinearOptions& options);

/// Computes out and next_state. The bits of a row depend on the tokens up to its own and on the state alone: a call may
/// be cut into calls that hand the state on. Anything but kOk: nothing was written. `workspace` as for attention().
Status linear_attention(const LinearTensors& tensors, const LinearOptions& options, std::span<std::byte> workspace);

/// Gradients of a loss with respect to the inputs of linear_attention() without beta, from those with respect to out
/// and next_state. The inputs have them in their layout and, where several states share a query or a key head, summed.
struct LinearGradients {
  TensorView<const float> d_out;        // (batch, query or state heads, seqlen_q, head_dim_v)
  const float* d_next_state = nullptr;  // optional, as state
  TensorView<float> d_query;
  TensorView<float> d_key;
  TensorView<float> d_value;
  TensorView<float> d_decay;  // as decay; with decay
  TensorView<float> d_step;   // as step; with step
  double* d_rate = nullptr;   // (state heads); with step
  double* d_skip = nullptr;   // (state heads); with skip
  float* d_state = nullptr;   // optional, as state
};

/// Bytes of scratch memory that linear_attention_backward() needs: as for the forward pass, and with `normalised` two
/// numbers for each query of one state.
WorkspaceSize linear_attention_backward_workspace_bytes(const LinearTensors& tensors, const LinearGradients& gradients,
                                                        const LinearOptions& options);

/// `tensors` as in the forward call; out and next_state are not used.
Status linear_attention_backward(const LinearTensors& tensors, const LinearGradients& gradients,
                                 const LinearOptions& options, std::span<std::byte> workspace);

}  // namespace sdpa
