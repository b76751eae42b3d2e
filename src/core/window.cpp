// Windows of an image as blocks of the kernel, without moving a token: the lines of a window are what heads that share
// keys are elsewhere, rows stacked in one block, and pages of the keys, which the kernel puts together in the
// first-level cache.
#include "sdpa/window.hpp"

#include <algorithm>

#include "core/block_builder.hpp"
#include "core/dispatch.hpp"
#include "core/extents.hpp"
#include "core/plan.hpp"
#include "core/validate.hpp"

namespace sdpa::core {
namespace {

bool inside(const Windows& w, std::size_t tokens) {
  if (w.image_width == 0 || tokens % w.image_width != 0) return false;
  const std::size_t image_height = tokens / w.image_width;
  if (w.height == 0 || w.width == 0 || w.height > image_height || w.width > w.image_width) return false;
  return std::all_of(w.origins.begin(), w.origins.end(), [&](std::int32_t origin) {
    if (origin < 0) return false;
    const auto at = static_cast<std::size_t>(origin);
    return at / w.image_width <= image_height - w.height && at % w.image_width <= w.image_width - w.width;
  });
}

Status validate_windows(const AttentionTensors& t, const Windows& w, const AttentionOptions& o) {
  AttentionOptions alone;
  alone.scale = o.scale;
  alone.softcap = o.softcap;
  const Status status = validate(t, alone);
  if (!status.ok()) return status;
  if (t.query.extent(2) != t.key.extent(2)) return StatusCode::kSeqlenMismatch;
  // Keys and values of a cache are none of an image.
  if (t.map.pages != nullptr || t.map.ring_size != 0 || t.map.key_scales != nullptr || t.map.value_scales != nullptr) {
    return StatusCode::kInvalidRequest;
  }
  if (!inside(w, t.query.extent(2))) return StatusCode::kInvalidRequest;
  const std::size_t tokens = w.height * w.width;
  if (o.bias.data_handle() == nullptr) return StatusCode::kOk;
  if (o.bias.extents() != Extents{1, t.query.extent(1), tokens, tokens}) return StatusCode::kBiasShape;
  return StatusCode::kOk;
}

/// How a window is cut into blocks: whole lines where they fit, else pieces of one line.
struct WindowPlan {
  std::size_t lines;    // of a block
  std::size_t columns;  // likewise
  std::size_t bounds_bytes;
  std::size_t kernel_bytes;
  std::size_t bytes() const { return bounds_bytes + kernel_bytes; }
};

Status make_window_plan(const kernels::KernelTable& table, const AttentionTensors& t, const Windows& w,
                        WindowPlan& plan) {
  const std::size_t most = table.rows_per_block;
  plan.columns = even_share(w.width, most);
  plan.lines = plan.columns < w.width ? 1 : even_share(w.height, std::max<std::size_t>(1, most / w.width));
  // The intervals of the rows, and the pages.
  plan.bounds_bytes =
      kernels::round_up(2 * most * sizeof(std::size_t) + w.height * sizeof(std::int32_t), kWorkspaceAlignment);
  const std::size_t head_dim = t.query.extent(3);
  const std::size_t head_dim_v = t.value.extent(3);
  if (!head_sizes_fit(head_dim, head_dim_v)) return StatusCode::kSizeOverflow;
  plan.kernel_bytes = table.workspace_floats({head_dim, head_dim_v, true, true, false}) * sizeof(float);
  return StatusCode::kOk;
}

class WindowRun {
 public:
  WindowRun(const kernels::KernelTable& table, const AttentionTensors& tensors, const Windows& windows,
            const AttentionOptions& options, const WindowPlan& plan, std::byte* workspace)
      : table_(table), t_(tensors), w_(windows), o_(options), plan_(plan) {
    const std::size_t most = table.rows_per_block;
    auto* sizes = reinterpret_cast<std::size_t*>(workspace);
    auto* pages = reinterpret_cast<std::int32_t*>(sizes + 2 * most);
    const std::size_t tokens = w_.height * w_.width;
    std::fill(sizes, sizes + most, std::size_t{0});
    std::fill(sizes + most, sizes + 2 * most, tokens);
    for (std::size_t y = 0; y < w_.height; ++y) pages[y] = static_cast<std::int32_t>(y);
    memory_ = reinterpret_cast<float*>(workspace + plan.bounds_bytes);

    block_.query = {nullptr, t_.query.dtype(), t_.query.stride(2), 0, nullptr};
    block_.query_head_stride = w_.image_width * t_.query.stride(2);
    block_.key = {nullptr, t_.key.dtype(), t_.key.stride(2), w_.image_width * t_.key.stride(2), nullptr};
    block_.value = {nullptr, t_.value.dtype(), t_.value.stride(2), w_.image_width * t_.value.stride(2), nullptr};
    block_.out_head_stride = w_.image_width * t_.out.stride(2);
    block_.out_stride = t_.out.stride(2);
    block_.lse_head_stride = w_.image_width * t_.lse.stride(2);
    block_.lse_stride = t_.lse.stride(2);
    // Lines that follow each other are one piece.
    if (w_.height > 1 && w_.width < w_.image_width) block_.map = {pages, w_.width, 0, 0};
    block_.key_begin = sizes;
    block_.key_end = sizes + most;
    block_.num_keys = tokens;
    block_.head_dim = t_.query.extent(3);
    block_.head_dim_v = t_.value.extent(3);
    block_.scale = scale_of(o_, block_.head_dim);
    block_.softcap = o_.softcap;
    if (o_.bias.data_handle() != nullptr) {
      block_.bias = {nullptr, w_.width * tokens, tokens, 1};
      block_.bias_dtype = o_.bias.dtype();
    }
  }

  void run() {
    const std::size_t heads = t_.query.extent(1);
    const std::size_t group = heads / t_.key.extent(1);
    // In the order in which tokens lie, which the machine's prefetcher follows: heads inside of tokens, or outside.
    const bool inside = t_.query.stride(1) < t_.query.stride(2);
    const std::size_t windows = w_.origins.size();
    for (std::size_t b = 0; b < t_.query.extent(0); ++b) {
      for (std::size_t n = 0; n < heads * windows; ++n) {
        const std::size_t h = inside ? n % heads : n / windows;
        const std::size_t at = inside ? n / heads : n % windows;
        window(b, h, h / group, static_cast<std::size_t>(w_.origins[at]));
      }
    }
  }

 private:
  void window(std::size_t b, std::size_t h, std::size_t g, std::size_t origin) {
    block_.key.data = rows_from(t_.key, b, g, origin);
    block_.value.data = rows_from(t_.value, b, g, origin);
    for (std::size_t y = 0; y < w_.height; y += plan_.lines) {
      for (std::size_t x = 0; x < w_.width; x += plan_.columns) {
        const std::size_t first = origin + y * w_.image_width + x;
        block_.query.data = rows_from(t_.query, b, h, first);
        block_.out = t_.out.data_handle() + t_.out.offset(b, h, first, 0);
        if (t_.lse.data_handle() != nullptr) block_.lse = t_.lse.data_handle() + t_.lse.offset(b, h, first, 0);
        if (o_.bias.data_handle() != nullptr) {
          const std::size_t row_of_bias = h * block_.num_keys + y * w_.width + x;
          block_.bias.data = static_cast<const char*>(o_.bias.data_handle()) +
                             row_of_bias * block_.num_keys * size_of(o_.bias.dtype());
        }
        block_.rows_per_head = std::min(plan_.columns, w_.width - x);
        block_.rows = std::min(plan_.lines, w_.height - y) * block_.rows_per_head;
        table_.attention_block(block_, memory_);
      }
    }
  }

  const kernels::KernelTable& table_;
  const AttentionTensors& t_;
  const Windows& w_;
  const AttentionOptions& o_;
  const WindowPlan& plan_;
  kernels::AttentionBlock block_{};
  float* memory_;
};

}  // namespace

WorkspaceSize window_attention_workspace_bytes(const kernels::KernelTable& table, const AttentionTensors& tensors,
                                               const Windows& windows, const AttentionOptions& options) {
  WindowPlan plan{};
  Status status = validate_windows(tensors, windows, options);
  if (status.ok()) status = make_window_plan(table, tensors, windows, plan);
  return {status, status.ok() ? plan.bytes() : 0};
}

Status window_attention(const kernels::KernelTable& table, const AttentionTensors& tensors, const Windows& windows,
                        const AttentionOptions& options, std::span<std::byte> workspace) {
  WindowPlan plan{};
  Status status = validate_windows(tensors, windows, options);
  if (status.ok()) status = make_window_plan(table, tensors, windows, plan);
  if (!status.ok()) return status;
  const Status room = validate_workspace(workspace, plan.bytes());
  if (!room.ok()) return room;
  WindowRun(table, tensors, windows, options, plan, workspace.data()).run();
  return StatusCode::kOk;
}

Status normalize_rows(const kernels::KernelTable& table, const InputView& from, const double* factors, float* to) {
  if (from.dtype() != DType::kFloat32 || from.stride(3) != 1) return StatusCode::kInvalidDtype;
  const auto [batch, heads, rows, columns] = from.extents();
  if (is_empty(from.extents())) return StatusCode::kOk;
  if (from.data_handle() == nullptr || to == nullptr) return StatusCode::kMissingTensor;
  for (std::size_t b = 0; b < batch; ++b) {
    for (std::size_t h = 0; h < heads; ++h) {
      const double factor = factors == nullptr ? 1.0 : factors[h];
      const auto* data = static_cast<const float*>(from.head(b, h));
      table.normalize_rows(data, from.stride(2), rows, columns, factor, to + b * from.stride(0) + h * from.stride(1));
    }
  }
  return StatusCode::kOk;
}

}  // namespace sdpa::core

namespace sdpa {

WorkspaceSize window_attention_workspace_bytes(const AttentionTensors& tensors, const Windows& windows,
                                               const AttentionOptions& options) {
  return core::window_attention_workspace_bytes(*core::available_kernels().front(), tensors, windows, options);
}

Status window_attention(const AttentionTensors& tensors, const Windows& windows, const AttentionOptions& options,
                        std::span<std::byte> workspace) {
  return core::window_attention(*core::available_kernels().front(), tensors, windows, options, workspace);
}

Status normalize_rows(const InputView& from, const double* factors, float* to) {
  return core::normalize_rows(*core::available_kernels().front(), from, factors, to);
}

}  // namespace sdpa
