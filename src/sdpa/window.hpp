// Attention within rectangular windows of an image, on tokens that stay where they lie (Swin Transformer, Liu et al.
// 2021). A window that goes round the border of a shifted image is two windows here, or four: its regions do not see
// each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sdpa/attention.hpp"

namespace sdpa {

/// Windows of one size in images whose tokens go by rows: (y, x) is row y * image_width + x of a tensor.
struct Windows {
  std::size_t image_width = 0;
  std::size_t height = 0;                 // of a window, in tokens
  std::size_t width = 0;                  // likewise
  std::span<const std::int32_t> origins;  // first token of each
};

/// Bytes of scratch memory that window_attention() needs for these arguments. Validates them as it does.
WorkspaceSize window_attention_workspace_bytes(const AttentionTensors& tensors, const Windows& windows,
                                               const AttentionOptions& options);

/// The rows of `out` and `lse` of the windows' tokens, in every image of the batch and every head; others are left as
/// they are. Of the options scale, softcap and bias count: (1, num_heads, tokens, tokens) of a window, without gaps.
/// The bits are those of attention() on the window's tokens alone.
/// Anything but kOk: nothing was written.
Status window_attention(const AttentionTensors& tensors, const Windows& windows, const AttentionOptions& options,
                        std::span<std::byte> workspace);

/// to = factors[h] * x / max(|x|, 1e-12) for each row x of `from` (the norm that cosines are made with), where factors
/// = nullptr means 1. `to` has the extents and strides of `from`, which is float32.
Status normalize_rows(const InputView& from, const double* factors, float* to);

}  // namespace sdpa
