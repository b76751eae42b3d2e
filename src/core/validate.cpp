#include "core/validate.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/extents.hpp"
#include "core/row_bounds.hpp"

namespace sdpa::core {
namespace {

constexpr std::int64_t kOffsetLimit = std::int64_t{1} << 31;

bool broadcasts(const Extents& extents, const Extents& full) {
  for (std::size_t r = 0; r < 4; ++r) {
    if (extents[r] != 1 && extents[r] != full[r]) return false;
  }
  return true;
}

bool lengths_are_valid(std::span<const std::int32_t> lengths, std::size_t batch, std::size_t limit) {
  if (lengths.empty()) return true;
  if (lengths.size() != batch) return false;
  for (const std::int32_t length : lengths) {
    if (length < 0 || static_cast<std::size_t>(length) > limit) return false;
  }
  return true;
}

bool is_stored_dtype(DType dtype) { return is_float(dtype) || dtype == DType::kInt8; }

// What a cache says of its own rows. It made them, so its pages are not walked.
Status validate_map(const AttentionTensors& t) {
  const KeyValueMap& map = t.map;
  if ((t.key.dtype() == DType::kInt8 && map.key_scales == nullptr) ||
      (t.value.dtype() == DType::kInt8 && map.value_scales == nullptr)) {
    return StatusCode::kInvalidMap;
  }
  if (map.page_size != 0 && (map.pages == nullptr || map.ring_size != 0)) return StatusCode::kInvalidMap;
  const std::size_t keys = t.key.extent(2);
  if (map.page_size != 0 && keys != 0 && map.pages_per_row <= (keys - 1) / map.page_size) {
    return StatusCode::kInvalidMap;
  }
  if (map.held_from != nullptr) {
    for (std::size_t b = 0; b < t.query.extent(0); ++b) {
      if (map.held_from[b] < 0) return StatusCode::kInvalidMap;
    }
  }
  return StatusCode::kOk;
}

Status validate_shapes(const AttentionTensors& t) {
  const auto &q = t.query, &k = t.key, &v = t.value;
  if (!is_float(q.dtype()) || !is_stored_dtype(k.dtype()) || !is_stored_dtype(v.dtype())) {
    return StatusCode::kInvalidDtype;
  }
  if (k.extent(0) != q.extent(0) || v.extent(0) != q.extent(0)) return StatusCode::kBatchMismatch;
  if (k.extent(1) != v.extent(1)) return StatusCode::kHeadsMismatch;
  if (k.extent(1) == 0 ? q.extent(1) != 0 : q.extent(1) % k.extent(1) != 0) return StatusCode::kHeadsNotMultiple;
  if (k.extent(2) != v.extent(2)) return StatusCode::kSeqlenMismatch;
  if (k.extent(3) != q.extent(3)) return StatusCode::kHeadDimMismatch;
  if (q.extent(3) == 0 || v.extent(3) == 0) return StatusCode::kHeadDimZero;
  const Extents out{q.extent(0), q.extent(1), q.extent(2), v.extent(3)};
  if (t.out.extents() != out) return StatusCode::kOutShape;
  if (!columns_are_contiguous(q) || !columns_are_contiguous(k) || !columns_are_contiguous(v) ||
      !columns_are_contiguous(t.out)) {
    return StatusCode::kColumnStride;
  }
  const Extents lse{q.extent(0), q.extent(1), q.extent(2), 1};
  if (t.lse.data_handle() != nullptr && t.lse.extents() != lse) return StatusCode::kLseShape;
  const Extents full{q.extent(0), q.extent(1), q.extent(2), k.extent(2)};
  if (t.scores.data_handle() != nullptr &&
      (t.scores.extents() != full || (!is_empty(full) && !columns_are_contiguous(t.scores)))) {
    return StatusCode::kScoresShape;
  }
  if (!product_fits(q.extents(), size_of(q.dtype())) || !product_fits(k.extents(), size_of(k.dtype())) ||
      !product_fits(v.extents(), size_of(v.dtype())) || !product_fits(out, sizeof(float)) ||
      (t.scores.data_handle() != nullptr && !product_fits(full, sizeof(float)))) {
    return StatusCode::kSizeOverflow;
  }
  if (is_missing(q) || is_missing(k) || is_missing(v) || is_missing(t.out)) return StatusCode::kMissingTensor;
  return StatusCode::kOk;
}

// Whether `count` from `first` on are among the first `all`; the sum may not fit.
bool lie_within(std::size_t first, std::size_t count, std::size_t all) { return count <= all && first <= all - count; }

// Ascending from 0 to at most `length`.
bool starts_are_valid(std::span<const std::int32_t> starts, std::size_t length) {
  if (starts.empty() || starts.front() != 0) return false;
  for (std::size_t s = 1; s < starts.size(); ++s) {
    if (starts[s] < starts[s - 1]) return false;
  }
  return static_cast<std::size_t>(starts.back()) <= length;
}

Status validate_packing(const AttentionTensors& t, const AttentionOptions& o) {
  const std::size_t batch = t.query.extent(0);
  const std::size_t seqlen_q = t.query.extent(2);
  const std::size_t seqlen_kv = t.key.extent(2);
  const bool has_segments = !o.query_segments.empty() || !o.key_segments.empty();
  if (has_segments && (o.query_segments.size() != batch * seqlen_q || o.key_segments.size() != batch * seqlen_kv)) {
    return StatusCode::kInvalidSegments;
  }
  const bool is_packed = !o.query_starts.empty() || !o.key_starts.empty();
  if (is_packed && (batch != 1 || o.query_starts.size() != o.key_starts.size() ||
                    // A piece of a call has the starts of the whole: its own rows may be fewer.
                    !starts_are_valid(o.query_starts, std::numeric_limits<std::int32_t>::max()) ||
                    !starts_are_valid(o.key_starts, seqlen_kv))) {
    return StatusCode::kInvalidStarts;
  }
  const BlockMask& mask = o.block_mask;
  if (mask.tiles != nullptr && ((mask.batch != 1 && !lie_within(o.origin.batch, batch, mask.batch)) ||
                                (mask.heads != 1 && !lie_within(o.origin.head, t.query.extent(1), mask.heads)) ||
                                !lie_within(o.origin.row, seqlen_q, mask.rows))) {
    return StatusCode::kBlockMaskShape;
  }
  return StatusCode::kOk;
}

Status validate_options(const AttentionTensors& t, const AttentionOptions& o) {
  const std::size_t batch = t.query.extent(0);
  const std::size_t seqlen_q = t.query.extent(2);
  const std::size_t seqlen_kv = t.key.extent(2);
  const Extents full{batch, t.query.extent(1), seqlen_q, seqlen_kv};
  if (o.mask.data_handle() != nullptr && !broadcasts(o.mask.extents(), full)) return StatusCode::kMaskShape;
  if (o.bias.data_handle() != nullptr) {
    if (!is_float(o.bias.dtype())) return StatusCode::kInvalidDtype;
    if (!broadcasts(o.bias.extents(), full)) return StatusCode::kBiasShape;
  }
  if (o.scale.has_value() && !std::isfinite(*o.scale)) return StatusCode::kInvalidScale;
  if (!std::isfinite(o.softcap) || o.softcap < 0) return StatusCode::kInvalidSoftcap;
  if (o.window_left < 0 || o.window_right < 0) return StatusCode::kInvalidWindow;
  if (!o.query_offsets.empty() && (o.align != Align::kOffset || o.query_offsets.size() != batch))
    return StatusCode::kInvalidOffset;
  if (o.align > Align::kOffset) return StatusCode::kInvalidOffset;
  if (o.query_offset < -kOffsetLimit || o.query_offset > kOffsetLimit) return StatusCode::kInvalidOffset;
  // No query, no question.
  if (o.chunk < 0) return StatusCode::kInvalidChunk;
  if (o.global_keys < 0) return StatusCode::kInvalidGlobalKeys;
  if (!(o.dropout.probability >= 0 && o.dropout.probability <= 1)) return StatusCode::kInvalidDropout;
  if (const Status status = validate_packing(t, o); !status.ok()) return status;
  if (o.align == Align::kUnset && seqlen_q != seqlen_kv && is_positional(o) && o.query_starts.empty() &&
      !is_empty({batch, full[1], seqlen_q, 1})) {
    return StatusCode::kAlignRequired;
  }
  if (!lengths_are_valid(o.query_lengths, batch, seqlen_q)) return StatusCode::kInvalidQueryLength;
  if (!lengths_are_valid(o.kv_lengths, batch, seqlen_kv)) return StatusCode::kInvalidKvLength;
  if (o.scores_stage > ScoresStage::kWeights) return StatusCode::kInvalidScoresStage;
  const bool has_scores = t.scores.data_handle() != nullptr;
  if (has_scores != (o.scores_stage != ScoresStage::kNone) && !is_empty(full)) return StatusCode::kInvalidScoresStage;
  return StatusCode::kOk;
}

}  // namespace

Status validate(const AttentionTensors& tensors, const AttentionOptions& options) {
  Status status = validate_shapes(tensors);
  if (status.ok()) status = validate_map(tensors);
  return status.ok() ? validate_options(tensors, options) : status;
}

Status validate_workspace(std::span<std::byte> workspace, std::size_t bytes) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(workspace.data()) % kWorkspaceAlignment == 0;
  return workspace.size() < bytes || !aligned ? StatusCode::kWorkspaceTooSmall : StatusCode::kOk;
}

}  // namespace sdpa::core
