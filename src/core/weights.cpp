// The driver of the weights: batch entries, heads, blocks of rows. Sums over cells are made in pieces of kWeightsPiece
// rows: a piece is summed by itself, block by block, then added to what the pieces before it left.
#include "sdpa/weights.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "core/block_builder.hpp"
#include "core/dispatch.hpp"
#include "core/plan.hpp"
#include "core/validate.hpp"
#include "core/weights_plan.hpp"

namespace sdpa::core {
namespace {

using kernels::WeightsUse;

class Driver {
 public:
  Driver(const kernels::KernelTable& table, const WeightsTensors& tensors, const WeightsRequest& request,
         const AttentionOptions& options, const WeightsPlan& plan, std::byte* workspace)
      : table_(table),
        t_(tensors),
        r_(request),
        o_(options),
        forward_(forward_call(tensors)),
        builder_(table, forward_, options, workspace),
        cells_(reinterpret_cast<double*>(workspace + plan.bounds_bytes)),
        memory_(reinterpret_cast<float*>(workspace + plan.bounds_bytes + plan.cells_bytes)),
        seqlen_q_(tensors.query.extent(2)),
        seqlen_kv_(tensors.key.extent(2)),
        all_rows_{0, static_cast<std::int32_t>(seqlen_q_)} {}

  void run() {
    const std::size_t num_heads = t_.query.extent(1);
    const std::size_t heads = r_.heads.empty() ? num_heads : r_.heads.size();
    for (std::size_t b = 0; b < t_.query.extent(0); ++b) {
      const RowRules rules(forward_, o_, b);
      for (std::size_t n = 0; n < heads; ++n) {
        const std::size_t h = r_.heads.empty() ? n : static_cast<std::size_t>(r_.heads[n]);
        run_head(rules, {b, h, b * heads + n});
      }
    }
  }

 private:
  struct Head {
    std::size_t b;
    std::size_t h;
    std::size_t result;  // its place in the result
  };

  void run_head(const RowRules& rules, const Head& head) {
    switch (r_.kind) {
      case WeightsKind::kRows:
        return pick_rows(rules, head);
      case WeightsKind::kColumns:
        return every_row(rules, head, WeightsUse::kColumns, r_.picks.size());
      case WeightsKind::kTopK:
        return every_row(rules, head, WeightsUse::kTopK, r_.top_k);
      case WeightsKind::kStats:
        return every_row(rules, head, WeightsUse::kStats, 1);
      case WeightsKind::kSum:
      case WeightsKind::kMean:
      case WeightsKind::kMax:
        return add_up_cells(rules, head);
    }
  }

  kernels::WeightsBlock block_at(const RowRules& rules, const Head& head, WeightsUse use, std::size_t first,
                                 std::size_t rows) {
    kernels::WeightsBlock block{};
    const std::size_t group = t_.query.extent(1) / t_.key.extent(1);
    block.attention = builder_.build(rules, {head.b, head.h / group, head.h, 1, first, rows});
    if (t_.lse.data_handle() != nullptr) {
      block.lse = &t_.lse(head.b, head.h, first, 0);
      block.lse_stride = t_.lse.stride(2);
    }
    block.use = use;
    return block;
  }

  std::size_t block_rows(std::size_t left) const {
    return left <= table_.rows_per_block ? left : usual_block_rows(table_);
  }

  // Rows that follow each other go together.
  void pick_rows(const RowRules& rules, const Head& head) {
    const std::size_t count = r_.picks.size();
    float* to = r_.values + head.result * count * seqlen_kv_;
    for (std::size_t n = 0; n < count;) {
      std::size_t end = n + 1;
      while (end < count && r_.picks[end] == r_.picks[end - 1] + 1) ++end;
      const std::size_t rows = block_rows(end - n);
      kernels::WeightsBlock block =
          block_at(rules, head, WeightsUse::kRows, static_cast<std::size_t>(r_.picks[n]), rows);
      block.values = to + n * seqlen_kv_;
      table_.weights_block(block, memory_);
      n += rows;
    }
  }

  void every_row(const RowRules& rules, const Head& head, WeightsUse use, std::size_t width) {
    for (std::size_t first = 0; first < seqlen_q_;) {
      const std::size_t rows = block_rows(seqlen_q_ - first);
      const std::size_t at = (head.result * seqlen_q_ + first) * width;
      kernels::WeightsBlock block = block_at(rules, head, use, first, rows);
      block.values = r_.values + at;
      // What was not asked for stays absent.
      if (r_.indices != nullptr) block.indices = r_.indices + at;
      if (r_.entropy != nullptr) block.entropy = r_.entropy + at;
      block.picks = r_.picks.data();
      block.num_picks = r_.picks.size();
      block.top_k = r_.top_k;
      table_.weights_block(block, memory_);
      first += rows;
    }
  }

  void add_up_cells(const RowRules& rules, const Head& head) {
    const std::span<const std::int32_t> starts = r_.row_cells.empty() ? std::span(all_rows_) : r_.row_cells;
    const auto start = [&](std::size_t k) { return static_cast<std::size_t>(starts[k]); };
    const std::size_t columns = column_cells(t_, r_);
    double* open = cells_;  // what earlier pieces gave to the cells that the next one goes on with
    double* piece = cells_ + columns;
    std::fill(open, open + columns, 0.0);
    if (seqlen_q_ == 0) write_cells(head, 0, 0, open);
    for (std::size_t first = 0, k = 0; first < seqlen_q_;) {
      const std::size_t end = std::min(seqlen_q_, first + kWeightsPiece);
      std::size_t last = k;  // cell of the piece's last row
      while (start(last + 1) < end) ++last;
      std::fill(piece, piece + (last - k + 1) * columns, 0.0);
      sum_piece(rules, head, starts.subspan(k), first, end, piece);
      for (double* line = piece; k <= last; ++k, line += columns) {
        add_cells(line, open, columns);
        if (start(k + 1) > end) break;
        write_cells(head, k, start(k + 1) - start(k), open);
        std::fill(open, open + columns, 0.0);
      }
      first = end;
    }
  }

  // Rows [first, end), the first of which lies in the first of `starts`.
  void sum_piece(const RowRules& rules, const Head& head, std::span<const std::int32_t> starts, std::size_t first,
                 std::size_t end, double* piece) {
    const WeightsUse use = r_.kind == WeightsKind::kMax ? WeightsUse::kMax : WeightsUse::kSum;
    for (std::size_t k = 0; first < end;) {
      const std::size_t rows = block_rows(end - first);
      while (static_cast<std::size_t>(starts[k + 1]) <= first) ++k;
      kernels::WeightsBlock block = block_at(rules, head, use, first, rows);
      block.row_cells = starts.data() + k;
      block.column_cells = r_.column_cells.empty() ? nullptr : r_.column_cells.data();
      block.num_column_cells = column_cells(t_, r_);
      block.first_row = first;
      block.cells = piece + k * block.num_column_cells;
      table_.weights_block(block, memory_);
      first += rows;
    }
  }

  void add_cells(const double* from, double* to, std::size_t count) const {
    for (std::size_t c = 0; c < count; ++c) {
      if (r_.kind != WeightsKind::kMax) {
        to[c] += from[c];
      } else if (from[c] > to[c] || std::isnan(from[c])) {
        to[c] = from[c];
      }
    }
  }

  void write_cells(const Head& head, std::size_t k, std::size_t rows, const double* cells) const {
    const std::size_t columns = column_cells(t_, r_);
    const std::size_t at = (head.result * row_cells(r_) + k) * columns;
    for (std::size_t c = 0; c < columns; ++c) {
      if (r_.sums != nullptr) {
        r_.sums[at + c] = cells[c];
        continue;
      }
      const std::size_t width =
          r_.column_cells.empty() ? 1 : static_cast<std::size_t>(r_.column_cells[c + 1] - r_.column_cells[c]);
      const double pairs = r_.kind == WeightsKind::kMean ? static_cast<double>(rows) * static_cast<double>(width) : 1.0;
      r_.values[at + c] = static_cast<float>(pairs == 0.0 ? 0.0 : cells[c] / pairs);
    }
  }

  const kernels::KernelTable& table_;
  const WeightsTensors& t_;
  const WeightsRequest& r_;
  const AttentionOptions& o_;
  AttentionTensors forward_;
  BlockBuilder builder_;
  double* cells_;
  float* memory_;
  std::size_t seqlen_q_;
  std::size_t seqlen_kv_;
  std::array<std::int32_t, 2> all_rows_;
};

}  // namespace

WorkspaceSize attention_weights_workspace_bytes(const kernels::KernelTable& table, const WeightsTensors& tensors,
                                                const WeightsRequest& request, const AttentionOptions& options) {
  WeightsPlan plan;
  Status status = validate_weights(tensors, request, options);
  if (status.ok()) status = make_weights_plan(table, tensors, request, plan);
  return {status, status.ok() ? plan.bytes() : 0};
}

Status attention_weights(const kernels::KernelTable& table, const WeightsTensors& tensors,
                         const WeightsRequest& request, const AttentionOptions& options,
                         std::span<std::byte> workspace) {
  WeightsPlan plan;
  Status status = validate_weights(tensors, request, options);
  if (status.ok()) status = make_weights_plan(table, tensors, request, plan);
  if (!status.ok() || tensors.query.extent(0) == 0 || tensors.query.extent(1) == 0) return status;
  const Status room = validate_workspace(workspace, plan.bytes());
  if (!room.ok()) return room;
  Driver(table, tensors, request, options, plan, workspace.data()).run();
  return StatusCode::kOk;
}

}  // namespace sdpa::core

namespace sdpa {

WorkspaceSize attention_weights_workspace_bytes(const WeightsTensors& tensors, const WeightsRequest& request,
                                                const AttentionOptions& options) {
  return core::attention_weights_workspace_bytes(*core::available_kernels().front(), tensors, request, options);
}

Status attention_weights(const WeightsTensors& tensors, const WeightsRequest& request, const AttentionOptions& options,
                         std::span<std::byte> workspace) {
  return core::attention_weights(*core::available_kernels().front(), tensors, request, options, workspace);
}

}  // namespace sdpa
