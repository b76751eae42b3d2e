#include "core/validate_backward.hpp"

#include <cstddef>
#include <limits>

#include "core/extents.hpp"
#include "core/validate.hpp"

namespace sdpa::core {
namespace {

// The gradients are float32 whatever the inputs are, and the kernel's pieces are a few hundred rows of either head
// size.
bool sizes_fit(const BackwardTensors& t) {
  constexpr std::size_t kMostRows = 4096;
  constexpr std::size_t kFloats = std::numeric_limits<std::size_t>::max() / sizeof(float);
  if (t.query.extent(3) > kFloats / 4 / kMostRows || t.value.extent(3) > kFloats / 4 / kMostRows) return false;
  return product_fits(t.query.extents(), sizeof(float)) && product_fits(t.key.extents(), sizeof(float)) &&
         product_fits(t.value.extents(), sizeof(float));
}

// Of a gradient that is not asked for nothing counts.
template <class View>
bool is_absent_or_contiguous(const View& view) {
  return view.data_handle() == nullptr || columns_are_contiguous(view);
}

// What attention() does not look at.
Status validate_gradients(const BackwardTensors& t, const AttentionOptions& o) {
  const Extents out{t.query.extent(0), t.query.extent(1), t.query.extent(2), t.value.extent(3)};
  const Extents lse{out[0], out[1], out[2], 1};
  if (t.d_out.extents() != out) return StatusCode::kOutShape;
  if (t.lse.extents() != lse) return StatusCode::kLseShape;
  if (t.d_lse.data_handle() != nullptr && t.d_lse.extents() != lse) return StatusCode::kLseShape;
  if (t.d_query.extents() != t.query.extents() || t.d_key.extents() != t.key.extents() ||
      t.d_value.extents() != t.value.extents()) {
    return StatusCode::kGradientShape;
  }
  if (t.d_bias.data_handle() != nullptr &&
      (o.bias.data_handle() == nullptr || t.d_bias.extents() != o.bias.extents())) {
    return StatusCode::kGradientShape;
  }
  const std::size_t heads = out[0] * out[1];
  for (const auto& numbers : {t.d_scale, t.d_sinks, t.d_alibi_slopes}) {
    if (!numbers.empty() && numbers.size() != heads) return StatusCode::kGradientShape;
  }
  if ((!t.d_sinks.empty() && o.sinks.data == nullptr) ||
      (!t.d_alibi_slopes.empty() && o.alibi_slopes.data == nullptr)) {
    return StatusCode::kGradientShape;
  }
  if (!is_absent_or_contiguous(t.d_out) || !is_absent_or_contiguous(t.d_query) || !is_absent_or_contiguous(t.d_key) ||
      !is_absent_or_contiguous(t.d_value) || !is_absent_or_contiguous(t.d_bias)) {
    return StatusCode::kColumnStride;
  }
  if (is_missing(t.lse) || is_missing(t.d_out) || is_missing(t.d_query) || is_missing(t.d_key) ||
      is_missing(t.d_value)) {
    return StatusCode::kMissingTensor;
  }
  if (!sizes_fit(t)) return StatusCode::kSizeOverflow;
  if (o.scores_stage != ScoresStage::kNone) return StatusCode::kInvalidScoresStage;
  return StatusCode::kOk;
}

}  // namespace

AttentionTensors forward_inputs(const BackwardTensors& t) {
  AttentionTensors forward;
  forward.query = t.query;
  forward.key = t.key;
  forward.value = t.value;
  return forward;
}

Status validate_backward(const BackwardTensors& t, const AttentionOptions& o) {
  AttentionTensors forward = forward_inputs(t);
  // Looked at, never written.
  forward.out = {const_cast<float*>(t.out.data_handle()), t.out.extents(), t.out.strides()};
  const Status status = validate(forward, o);
  return status.ok() ? validate_gradients(t, o) : status;
}

}  // namespace sdpa::core
