// The driver: deals (batch, head, block of rows) to the kernel. Query heads that share a key head are stacked in one
// block where their rows fit, and follow each other otherwise, so that its keys and values are read once or are still
// in the cache.
#include "sdpa/attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/dispatch.hpp"
#include "core/plan.hpp"
#include "core/row_bounds.hpp"
#include "core/validate.hpp"

namespace sdpa::core {
namespace {

template <class View>
std::size_t broadcast_stride(const View& view, std::size_t rank) {
  return view.extent(rank) == 1 ? 0 : view.stride(rank);
}

template <class View>
std::size_t broadcast_offset(const View& view, std::size_t b, std::size_t h, std::size_t i) {
  return b * broadcast_stride(view, 0) + h * broadcast_stride(view, 1) + i * broadcast_stride(view, 2);
}

class Driver {
 public:
  Driver(const kernels::KernelTable& table, const AttentionTensors& tensors, const AttentionOptions& options,
         const AttentionPlan& plan, std::byte* workspace)
      : table_(table), t_(tensors), o_(options), plan_(plan) {
    key_begin_ = reinterpret_cast<std::size_t*>(workspace);
    key_end_ = key_begin_ + table.rows_per_block;
    memory_ = reinterpret_cast<float*>(workspace + plan.bounds_bytes);
    streams_ = bytes_of(t_.key) + bytes_of(t_.value) > kCacheBytes;
  }

  void run() {
    const std::size_t seqlen_q = t_.query.extent(2);
    const std::size_t group = t_.query.extent(1) / t_.key.extent(1);
    for (std::size_t b = 0; b < t_.query.extent(0); ++b) {
      for (std::size_t g = 0; g < t_.key.extent(1); ++g) {
        for (std::size_t h = 0; h < group; h += plan_.heads_per_block) {
          const std::size_t heads = std::min(plan_.heads_per_block, group - h);
          for (std::size_t first = 0; first < seqlen_q; first += plan_.rows_per_block) {
            run_block(b, g, g * group + h, heads, first, std::min(plan_.rows_per_block, seqlen_q - first));
          }
        }
      }
    }
  }

 private:
  // The second-level cache of a core is smaller; what a core gets of the third is rarely more.
  static constexpr double kCacheBytes = 8 << 20;

  static double bytes_of(const InputView& view) {
    double bytes = static_cast<double>(size_of(view.dtype()));
    for (std::size_t rank = 0; rank < 4; ++rank) bytes *= static_cast<double>(view.extent(rank));
    return bytes;
  }

  // Rows [first, first + rows) of query heads [h, h + heads), which share key head g.
  void run_block(std::size_t b, std::size_t g, std::size_t h, std::size_t heads, std::size_t first, std::size_t rows) {
    kernels::AttentionBlock block{};
    block.query = input_rows(t_.query, b, h, first);
    block.query_head_stride = t_.query.stride(1);
    block.key = input_rows(t_.key, b, g, 0);
    block.value = input_rows(t_.value, b, g, 0);
    block.out = t_.out.data_handle() + t_.out.offset(b, h, first, 0);
    block.out_head_stride = t_.out.stride(1);
    block.out_stride = t_.out.stride(2);
    if (t_.lse.data_handle() != nullptr) {
      block.lse = t_.lse.data_handle() + t_.lse.offset(b, h, first, 0);
      block.lse_head_stride = t_.lse.stride(1);
      block.lse_stride = t_.lse.stride(2);
    }
    if (t_.scores.data_handle() != nullptr) {
      block.scores = t_.scores.data_handle() + t_.scores.offset(b, h, first, 0);
      block.scores_head_stride = t_.scores.stride(1);
      block.scores_stride = t_.scores.stride(2);
      block.stage = static_cast<kernels::Stage>(o_.scores_stage);
    }
    if (o_.mask.data_handle() != nullptr) {
      block.mask = {o_.mask.data_handle() + broadcast_offset(o_.mask, b, h, first), broadcast_stride(o_.mask, 1),
                    broadcast_stride(o_.mask, 2), broadcast_stride(o_.mask, 3)};
    }
    if (o_.bias.data_handle() != nullptr) {
      const std::size_t bytes = broadcast_offset(o_.bias, b, h, first) * size_of(o_.bias.dtype());
      block.bias = {static_cast<const char*>(o_.bias.data_handle()) + bytes, broadcast_stride(o_.bias, 1),
                    broadcast_stride(o_.bias, 2), broadcast_stride(o_.bias, 3)};
      block.bias_dtype = o_.bias.dtype();
    }
    row_bounds(o_, b, t_.query.extent(2), t_.key.extent(2), first, rows, key_begin_, key_end_);
    for (std::size_t r = rows; r < heads * rows; ++r) {
      key_begin_[r] = key_begin_[r - rows];
      key_end_[r] = key_end_[r - rows];
    }
    block.key_begin = key_begin_;
    block.key_end = key_end_;
    block.rows = heads * rows;
    block.rows_per_head = rows;
    block.num_keys = t_.key.extent(2);
    block.head_dim = t_.query.extent(3);
    block.head_dim_v = t_.value.extent(3);
    block.scale = o_.scale.value_or(1.0 / std::sqrt(static_cast<double>(block.head_dim)));
    block.softcap = o_.softcap;
    block.streams = streams_;
    table_.attention_block(block, memory_);
  }

  static kernels::InputRows input_rows(const InputView& view, std::size_t b, std::size_t h, std::size_t first) {
    const auto* head = static_cast<const char*>(view.head(b, h));
    return {head + first * view.stride(2) * size_of(view.dtype()), view.dtype(), view.stride(2)};
  }

  const kernels::KernelTable& table_;
  const AttentionTensors& t_;
  const AttentionOptions& o_;
  const AttentionPlan& plan_;
  std::size_t* key_begin_;
  std::size_t* key_end_;
  float* memory_;
  bool streams_;
};

}  // namespace

WorkspaceSize attention_workspace_bytes(const kernels::KernelTable& table, const AttentionTensors& tensors,
                                        const AttentionOptions& options) {
  AttentionPlan plan;
  Status status = validate(tensors, options);
  if (status.ok()) status = make_plan(table, tensors, plan);
  return {status, status.ok() ? plan.bytes() : 0};
}

Status attention(const kernels::KernelTable& table, const AttentionTensors& tensors, const AttentionOptions& options,
                 std::span<std::byte> workspace) {
  AttentionPlan plan;
  Status status = validate(tensors, options);
  if (status.ok()) status = make_plan(table, tensors, plan);
  if (!status.ok()) return status;
  if (tensors.out.extent(0) == 0 || tensors.out.extent(1) == 0 || tensors.out.extent(2) == 0) return StatusCode::kOk;
  if (workspace.size() < plan.bytes() ||
      reinterpret_cast<std::uintptr_t>(workspace.data()) % kWorkspaceAlignment != 0) {
    return StatusCode::kWorkspaceTooSmall;
  }
  Driver(table, tensors, options, plan, workspace.data()).run();
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
