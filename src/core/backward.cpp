// The driver of the backward pass: units of one key head with the query heads that share it, tiles of keys in a unit,
// blocks of rows under a tile. dK and dV are finished tile by tile; dQ and the gradient of the bias are added to.
#include <algorithm>
#include <limits>

#include "core/block_builder.hpp"
#include "core/dispatch.hpp"
#include "core/exp.hpp"
#include "core/validate.hpp"
#include "core/validate_backward.hpp"
#include "sdpa/gradients.hpp"

namespace sdpa::core {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

kernels::WorkspaceShape shape_of(const BackwardTensors& t) {
  const auto wide = [](const InputView& view) { return view.dtype() != DType::kFloat32; };
  return {t.query.extent(3), t.value.extent(3), wide(t.key), wide(t.value), wide(t.query)};
}

std::size_t group_of(const BackwardTensors& t) {
  return t.key.extent(1) == 0 ? 0 : t.query.extent(1) / t.key.extent(1);
}

// Whether units add to the same elements of the bias's gradient. Their sums are then made apart and added in order, as
// they are where the units are computed by several threads.
bool shares_bias(const BackwardTensors& t) {
  if (t.d_bias.data_handle() == nullptr) return false;
  return (t.d_bias.extent(0) == 1 && t.query.extent(0) > 1) || (t.d_bias.extent(1) == 1 && t.key.extent(1) > 1);
}

std::size_t bias_part_floats(const BackwardTensors& t) {
  if (!shares_bias(t)) return 0;
  return (t.d_bias.extent(1) == 1 ? 1 : group_of(t)) * t.d_bias.extent(2) * t.d_bias.extent(3);
}

struct Plan {
  std::size_t bounds_bytes = 0;
  std::size_t delta_bytes = 0;  // one float for each row of the unit
  std::size_t bias_bytes = 0;
  std::size_t kernel_bytes = 0;
  std::size_t bytes() const { return bounds_bytes + delta_bytes + bias_bytes + kernel_bytes; }
};

Plan make_plan(const kernels::KernelTable& table, const BackwardTensors& t) {
  return {BlockBuilder::bytes_for(table),
          kernels::round_up(group_of(t) * t.query.extent(2) * sizeof(float), kWorkspaceAlignment),
          kernels::round_up(bias_part_floats(t) * sizeof(float), kWorkspaceAlignment),
          table.backward_workspace_floats(shape_of(t)) * sizeof(float)};
}

class Driver {
 public:
  Driver(const kernels::KernelTable& table, const BackwardTensors& tensors, const AttentionOptions& options,
         const Plan& plan, std::byte* workspace)
      : table_(table),
        t_(tensors),
        forward_(forward_inputs(tensors)),
        o_(options),
        builder_(table, forward_, o_, workspace) {
    delta_ = reinterpret_cast<float*>(workspace + plan.bounds_bytes);
    bias_part_ =
        plan.bias_bytes == 0 ? nullptr : reinterpret_cast<float*>(workspace + plan.bounds_bytes + plan.delta_bytes);
    memory_ = reinterpret_cast<float*>(workspace + plan.bounds_bytes + plan.delta_bytes + plan.bias_bytes);
    scale_ = scale_of(o_, t_.query.extent(3));
  }

  void run() {
    clear();
    for (std::size_t b = 0; b < t_.query.extent(0); ++b) {
      const RowRules rules(forward_, o_, b);
      for (std::size_t g = 0; g < t_.key.extent(1); ++g) run_unit(rules, b, g);
    }
  }

 private:
  void clear() {
    for (const auto& numbers : {t_.d_scale, t_.d_sinks, t_.d_alibi_slopes}) {
      std::fill(numbers.begin(), numbers.end(), 0.0);
    }
    for_each_row(t_.d_query, [](float* row, std::size_t n) { std::fill(row, row + n, 0.0F); });
    if (t_.d_bias.data_handle() != nullptr) {
      for_each_row(t_.d_bias, [](float* row, std::size_t n) { std::fill(row, row + n, 0.0F); });
    }
  }

  template <class F>
  static void for_each_row(const TensorView<float>& view, F&& f) {
    for (std::size_t b = 0; b < view.extent(0); ++b) {
      for (std::size_t h = 0; h < view.extent(1); ++h) {
        for (std::size_t i = 0; i < view.extent(2); ++i) f(&view(b, h, i, 0), view.extent(3));
      }
    }
  }

  void run_unit(const RowRules& rules, std::size_t b, std::size_t g) {
    const std::size_t group = group_of(t_);
    for (std::size_t k = 0; k < group; ++k) prepare_head(b, g * group + k, delta_ + k * t_.query.extent(2));
    const std::size_t part = bias_part_floats(t_);
    std::fill(bias_part_, bias_part_ + part, 0.0F);
    const kernels::WorkspaceShape shape = shape_of(t_);
    const std::size_t seqlen_kv = t_.key.extent(2);
    for (std::size_t tile = 0; tile < seqlen_kv; tile += table_.keys_per_tile) {
      table_.backward_begin(shape, memory_);
      for (std::size_t k = 0; k < group; ++k) run_head(rules, b, g, k, tile);
      table_.backward_end(shape,
                          {&t_.d_key(b, g, tile, 0), t_.d_key.stride(2), &t_.d_value(b, g, tile, 0),
                           t_.d_value.stride(2), shape.head_dim, shape.head_dim_v, scale_},
                          std::min(table_.keys_per_tile, seqlen_kv - tile), memory_);
    }
    for (std::size_t k = 0; k < group; ++k) finish_head(b, g * group + k);
    if (bias_part_ != nullptr) add_bias_part(b, g * group);
  }

  // delta = rowsum(d_out * out) - d_lse, and the gradient of the head's sink. An element of out that is 0 counts for
  // nothing whatever its gradient: rows that see nothing may have garbage there.
  void prepare_head(std::size_t b, std::size_t h, float* delta) {
    const float* sinks = o_.sinks.data == nullptr ? nullptr : o_.sinks.data + b * o_.sinks.batch_stride + h;
    double d_sink = 0;
    for (std::size_t i = 0; i < t_.query.extent(2); ++i) {
      const float* out = &t_.out(b, h, i, 0);
      const float* d_out = &t_.d_out(b, h, i, 0);
      double sum = 0;
      for (std::size_t c = 0; c < t_.out.extent(3); ++c) {
        if (out[c] != 0.0F) sum += static_cast<double>(d_out[c]) * static_cast<double>(out[c]);
      }
      if (t_.d_lse.data_handle() != nullptr) sum -= static_cast<double>(t_.d_lse(b, h, i, 0));
      delta[i] = static_cast<float>(sum);
      const float lse = t_.lse(b, h, i, 0);
      if (sinks != nullptr && lse != kMasked) {
        d_sink -= exp_of(static_cast<double>(*sinks) - static_cast<double>(lse)) * sum;
      }
    }
    if (!t_.d_sinks.empty()) t_.d_sinks[b * t_.query.extent(1) + h] = d_sink;
  }

  void run_head(const RowRules& rules, std::size_t b, std::size_t g, std::size_t k, std::size_t tile) {
    const std::size_t seqlen_q = t_.query.extent(2);
    const std::size_t h = g * group_of(t_) + k;
    double d_alibi = 0;
    for (std::size_t first = 0; first < seqlen_q; first += rows_per_block()) {
      const std::size_t rows = std::min(rows_per_block(), seqlen_q - first);
      kernels::BackwardBlock block{};
      block.attention = builder_.build(rules, {b, g, h, 1, first, rows});
      block.d_out = &t_.d_out(b, h, first, 0);
      block.d_out_stride = t_.d_out.stride(2);
      block.lse = &t_.lse(b, h, first, 0);
      block.lse_stride = t_.lse.stride(2);
      block.delta = delta_ + k * seqlen_q + first;
      block.d_query = &t_.d_query(b, h, first, 0);
      block.d_query_stride = t_.d_query.stride(2);
      if (t_.d_bias.data_handle() != nullptr) place_bias(b, h, k, first, block);
      if (!t_.d_alibi_slopes.empty()) block.d_alibi = &d_alibi;
      table_.backward_block(block, tile, memory_);
    }
    if (!t_.d_alibi_slopes.empty()) t_.d_alibi_slopes[b * t_.query.extent(1) + h] -= d_alibi;
  }

  void place_bias(std::size_t b, std::size_t h, std::size_t k, std::size_t first, kernels::BackwardBlock& block) const {
    const TensorView<float>& d = t_.d_bias;
    const std::size_t row_stride = d.extent(2) == 1 ? 0 : bias_part_ == nullptr ? d.stride(2) : d.extent(3);
    block.d_bias_row_stride = row_stride;
    block.d_bias_column_stride = d.extent(3) == 1 ? 0 : 1;
    float* head = bias_part_ == nullptr ? &d(d.extent(0) == 1 ? 0 : b, d.extent(1) == 1 ? 0 : h, 0, 0)
                                        : bias_part_ + (d.extent(1) == 1 ? 0 : k) * d.extent(2) * d.extent(3);
    block.d_bias = head + first * row_stride;
  }

  void add_bias_part(std::size_t b, std::size_t first_head) {
    const TensorView<float>& d = t_.d_bias;
    const float* part = bias_part_;
    const std::size_t heads = d.extent(1) == 1 ? 1 : group_of(t_);
    for (std::size_t k = 0; k < heads; ++k) {
      for (std::size_t i = 0; i < d.extent(2); ++i) {
        float* row = &d(d.extent(0) == 1 ? 0 : b, d.extent(1) == 1 ? 0 : first_head + k, i, 0);
        for (std::size_t j = 0; j < d.extent(3); ++j) row[j] += *part++;
      }
    }
  }

  // d_query so far is dS K: times the scale it is the gradient, and with the query it gives that of the scale, since
  // the sum of dS r over a row is that of dS K over d times the query.
  void finish_head(std::size_t b, std::size_t h) {
    double d_scale = 0;
    const auto scale = static_cast<float>(scale_);
    for (std::size_t i = 0; i < t_.query.extent(2); ++i) {
      float* row = &t_.d_query(b, h, i, 0);
      for (std::size_t c = 0; c < t_.query.extent(3); ++c) {
        if (row[c] != 0.0F && !t_.d_scale.empty()) {
          d_scale += static_cast<double>(row[c]) * static_cast<double>(query_element(b, h, i, c));
        }
        row[c] *= scale;
      }
    }
    if (!t_.d_scale.empty()) t_.d_scale[b * t_.query.extent(1) + h] = d_scale;
  }

  float query_element(std::size_t b, std::size_t h, std::size_t i, std::size_t c) const {
    return table_.read_element(t_.query.head(b, h), t_.query.dtype(), i * t_.query.stride(2) + c);
  }

  std::size_t rows_per_block() const { return table_.rows_per_block; }

  const kernels::KernelTable& table_;
  const BackwardTensors& t_;
  AttentionTensors forward_;
  const AttentionOptions& o_;
  BlockBuilder builder_;
  float* delta_;
  float* bias_part_;
  float* memory_;
  double scale_;
};

}  // namespace

WorkspaceSize attention_backward_workspace_bytes(const kernels::KernelTable& table, const BackwardTensors& tensors,
                                                 const AttentionOptions& options) {
  const Status status = validate_backward(tensors, options);
  if (!status.ok()) return {status, 0};
  return {status, make_plan(table, tensors).bytes()};
}

Status attention_backward(const kernels::KernelTable& table, const BackwardTensors& tensors,
                          const AttentionOptions& options, std::span<std::byte> workspace) {
  const Status status = validate_backward(tensors, options);
  if (!status.ok()) return status;
  const Plan plan = make_plan(table, tensors);
  const Status room = validate_workspace(workspace, plan.bytes());
  if (!room.ok()) return room;
  Driver(table, tensors, options, plan, workspace.data()).run();
  return StatusCode::kOk;
}

}  // namespace sdpa::core

namespace sdpa {

WorkspaceSize attention_backward_workspace_bytes(const BackwardTensors& tensors, const AttentionOptions& options) {
  return core::attention_backward_workspace_bytes(*core::available_kernels().front(), tensors, options);
}

Status attention_backward(const BackwardTensors& tensors, const AttentionOptions& options,
                          std::span<std::byte> workspace) {
  return core::attention_backward(*core::available_kernels().front(), tensors, options, workspace);
}

}  // namespace sdpa
