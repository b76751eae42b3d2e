// Exact scaled dot-product attention in O(seqlen) memory:
//
//   out = softmax(mask(softcap(scale * Q K^T) + bias)) V
//
// computed tile by tile with the online softmax of Milakov & Gimelshein (2018) and the tiling of Rabe & Staats (2021)
// and Dao et al. (2022). The result of a row does not depend on which other rows, heads or batches are computed with
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sdpa/options.hpp"
#include "sdpa/status.hpp"
#include "sdpa/tensor_view.hpp"

namespace sdpa {

/// Where rows of key and value lie that are no plain tensor: those of a KV cache. Row j of batch entry b lies in slot
/// j, or with ring_size in slot ring_begin + (j - ring_begin) % ring_size from ring_begin on. With page_size it is row
/// slot % page_size of the page pages[b * pages_per_row + slot / page_size], whose number then stands for b in the
/// strides of key and value.
struct KeyValueMap {
  const float* key_scales = nullptr;  // kInt8: one per row, laid out as the rows are (strides over head_dim)
  const float* value_scales = nullptr;
  const std::int32_t* pages = nullptr;
  std::size_t pages_per_row = 0;
  std::size_t page_size = 0;
  std::size_t ring_begin = 0;
  std::size_t ring_size = 0;
  const std::int32_t* held_from = nullptr;  // one per batch row: keys from ring_begin to there are lost and not seen
};

struct AttentionTensors {
  InputView query;           // (batch, num_heads, seqlen_q, head_dim)
  InputView key;             // (batch, num_kv_heads, seqlen_kv, head_dim)
  InputView value;           // (batch, num_kv_heads, seqlen_kv, head_dim_v)
  TensorView<float> out;     // (batch, num_heads, seqlen_q, head_dim_v)
  TensorView<float> lse;     // optional (batch, num_heads, seqlen_q, 1): natural log of the sum of exponentials
  TensorView<float> scores;  // optional (batch, num_heads, seqlen_q, seqlen_kv): see AttentionOptions::scores_stage
  KeyValueMap map;           // key and value may lie in a cache
};

/// Alignment of a workspace.
inline constexpr std::size_t kWorkspaceAlignment = 64;

struct WorkspaceSize {
  Status status;
  std::size_t bytes = 0;
};

/// Bytes of scratch memory that attention() needs for these arguments. Validates them as attention() does.
WorkspaceSize attention_workspace_bytes(const AttentionTensors& tensors, const AttentionOptions& options);

/// Computes attention with the fastest kernels that this processor runs.
/// `workspace` is 64-byte aligned; it may be reused by later calls but not by calls that run at the same time.
/// Outputs must not overlap inputs. A row that may attend to no key is all zeros with lse = -infinity.
/// Anything but kOk: nothing was written.
Status attention(const AttentionTensors& tensors, const AttentionOptions& options, std::span<std::byte> workspace);

}  // namespace sdpa
