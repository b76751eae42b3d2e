#include "core/weights_plan.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "core/block_builder.hpp"
#include "core/extents.hpp"
#include "core/plan.hpp"
#include "core/validate.hpp"

namespace sdpa::core {
namespace {

constexpr std::size_t kMostIndex = std::numeric_limits<std::int32_t>::max();

bool sums_cells(WeightsKind kind) {
  return kind == WeightsKind::kSum || kind == WeightsKind::kMean || kind == WeightsKind::kMax;
}

std::size_t cells_of(std::span<const std::int32_t> starts, std::size_t otherwise) {
  return starts.empty() ? otherwise : starts.size() - 1;
}

bool ascend_within(std::span<const std::int32_t> numbers, std::size_t limit) {
  std::int64_t before = -1;
  for (const std::int32_t n : numbers) {
    if (n <= before || static_cast<std::size_t>(n) >= limit) return false;
    before = n;
  }
  return true;
}

bool are_cells(std::span<const std::int32_t> starts, std::size_t length) {
  if (starts.empty()) return true;
  return starts.size() > 1 && starts.front() == 0 && static_cast<std::size_t>(starts.back()) == length &&
         ascend_within(starts, length + 1);
}

Status validate_results(const WeightsRequest& r) {
  const bool indices = r.kind == WeightsKind::kTopK || r.kind == WeightsKind::kStats;
  if ((indices && r.indices == nullptr) || (r.kind == WeightsKind::kStats && r.entropy == nullptr)) {
    return StatusCode::kMissingTensor;
  }
  if (r.sums != nullptr) return r.kind == WeightsKind::kSum ? StatusCode::kOk : StatusCode::kInvalidRequest;
  return r.values == nullptr ? StatusCode::kMissingTensor : StatusCode::kOk;
}

Status validate_request(const WeightsTensors& t, const WeightsRequest& r) {
  const std::size_t num_heads = t.query.extent(1);
  const std::size_t seqlen_q = t.query.extent(2);
  const std::size_t seqlen_kv = t.key.extent(2);
  if (seqlen_q >= kMostIndex || seqlen_kv >= kMostIndex) return StatusCode::kSizeOverflow;
  for (const std::int32_t h : r.heads) {
    if (h < 0 || static_cast<std::size_t>(h) >= num_heads) return StatusCode::kInvalidRequest;
  }
  // Rows of a result, and what each has.
  std::size_t rows = seqlen_q;
  std::size_t width = 1;
  switch (r.kind) {
    case WeightsKind::kRows:
      if (!ascend_within(r.picks, seqlen_q)) return StatusCode::kInvalidRequest;
      rows = r.picks.size();
      width = seqlen_kv;
      break;
    case WeightsKind::kColumns:
      if (!ascend_within(r.picks, seqlen_kv)) return StatusCode::kInvalidRequest;
      width = r.picks.size();
      break;
    case WeightsKind::kTopK:
      if (r.top_k == 0) return StatusCode::kInvalidRequest;
      width = r.top_k;
      break;
    case WeightsKind::kStats:
      break;
    case WeightsKind::kSum:
    case WeightsKind::kMean:
    case WeightsKind::kMax:
      if (!are_cells(r.row_cells, seqlen_q) || !are_cells(r.column_cells, seqlen_kv)) {
        return StatusCode::kInvalidRequest;
      }
      rows = row_cells(r);
      width = column_cells(t, r);
      break;
    default:
      return StatusCode::kInvalidRequest;
  }
  const Extents result{t.query.extent(0), r.heads.empty() ? num_heads : r.heads.size(), rows, width};
  if (!product_fits(result, r.sums != nullptr ? sizeof(double) : sizeof(float))) return StatusCode::kSizeOverflow;
  return is_empty(result) ? StatusCode::kOk : validate_results(r);
}

}  // namespace

AttentionTensors forward_call(const WeightsTensors& t) {
  AttentionTensors forward;
  forward.query = t.query;
  forward.key = t.key;
  forward.value = t.key;
  forward.map = t.map;
  forward.map.value_scales = t.map.key_scales;
  forward.out = {const_cast<float*>(static_cast<const float*>(t.query.data_handle())), t.query.extents()};
  return forward;
}

std::size_t row_cells(const WeightsRequest& r) { return cells_of(r.row_cells, 1); }

std::size_t column_cells(const WeightsTensors& t, const WeightsRequest& r) {
  return cells_of(r.column_cells, t.key.extent(2));
}

Status validate_weights(const WeightsTensors& t, const WeightsRequest& r, const AttentionOptions& o) {
  const Status status = validate(forward_call(t), o);
  if (!status.ok()) return status;
  const Extents lse{t.query.extent(0), t.query.extent(1), t.query.extent(2), 1};
  if (t.lse.data_handle() != nullptr && t.lse.extents() != lse) return StatusCode::kLseShape;
  if (o.dropout.probability != 0) return StatusCode::kInvalidDropout;
  if (o.scores_stage != ScoresStage::kNone) return StatusCode::kInvalidScoresStage;
  return validate_request(t, r);
}

Status make_weights_plan(const kernels::KernelTable& table, const WeightsTensors& t, const WeightsRequest& r,
                         WeightsPlan& plan) {
  const std::size_t head_dim = t.query.extent(3);
  if (!head_sizes_fit(head_dim, 0)) return StatusCode::kSizeOverflow;
  const bool pieces = t.map.page_size != 0 || t.map.ring_size != 0;
  plan.bounds_bytes = BlockBuilder::bytes_for(table);
  plan.kernel_bytes =
      table.workspace_floats({head_dim, 0, pieces || t.key.dtype() != DType::kFloat32, false, false}) * sizeof(float);
  if (!sums_cells(r.kind)) return StatusCode::kOk;
  const std::size_t lines = std::min(row_cells(r), kWeightsPiece) + 1;
  const std::size_t columns = column_cells(t, r);
  if (columns > std::numeric_limits<std::size_t>::max() / 2 / sizeof(double) / lines) return StatusCode::kSizeOverflow;
  plan.cells_bytes = kernels::round_up(lines * columns * sizeof(double), kWorkspaceAlignment);
  return StatusCode::kOk;
}

}  // namespace sdpa::core
