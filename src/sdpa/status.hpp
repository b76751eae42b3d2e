// What a call answers. Nothing in this library throws: a call that returns anything but kOk has written nothing.
//
// One table describes every code. JavaScript reads the same table through the module, and a test walks it from both
// sides, so that a code added here without a counterpart there is found.
#pragma once

#include <array>
#include <cstdint>

namespace sdpa {

enum class StatusCode : std::int32_t {
  kOk,
  kMissingTensor,       // query, key, value or out has no data although it has elements
  kInvalidDtype,        // a storage type that is not in DType, a form that the matrix may not have
  kBatchMismatch,       // query, key, value do not have one batch size
  kHeadsMismatch,       // key and value do not have one number of heads
  kHeadsNotMultiple,    // num_heads is not a multiple of num_kv_heads
  kSeqlenMismatch,      // key and value do not have one length
  kHeadDimMismatch,     // query and key do not have one head size
  kHeadDimZero,         // a head size of 0
  kColumnStride,        // the last dimension of query, key, value or out is not contiguous; rows of a matrix overlap
  kOutShape,            // out is not (batch, num_heads, seqlen_q, head_dim_v)
  kLseShape,            // lse is not (batch, num_heads, seqlen_q, 1)
  kScoresShape,         // scores is not (batch, num_heads, seqlen_q, seqlen_kv)
  kMaskShape,           // mask does not broadcast to (batch, num_heads, seqlen_q, seqlen_kv)
  kBiasShape,           // bias does not broadcast to (batch, num_heads, seqlen_q, seqlen_kv)
  kInvalidScale,        // scale is NaN or infinite
  kInvalidSoftcap,      // softcap is negative, NaN or infinite
  kInvalidWindow,       // a window bound below 0 (kUnlimited apart)
  kAlignRequired,       // seqlen_q != seqlen_kv, a positional option is used, and nothing says where query 0 stands
  kInvalidOffset,       // a query offset beyond +-2^31, or not one offset per batch
  kInvalidQueryLength,  // a query length outside 0 ... seqlen_q, or not one per batch
  kInvalidKvLength,     // a key length outside 0 ... seqlen_kv, or not one per batch
  kInvalidScoresStage,  // scores without a stage, or a stage without scores
  kInvalidChunk,        // a chunk below 0
  kInvalidGlobalKeys,   // a number of global keys below 0
  kInvalidSegments,     // segment ids that are not (batch, seqlen_q) and (batch, seqlen_kv)
  kInvalidStarts,   // starts of packed sequences that do not ascend from 0 within the lengths, or a batch that is not 1
  kBlockMaskShape,  // a block mask whose batch, heads or rows do not fit
  kInvalidDropout,  // a probability outside 0 ... 1
  kGradientShape,   // a gradient that has not the shape of what it is the gradient of
  kInvalidRequest,  // heads, rows, keys, cells, weights or decays that do not fit the sizes; a bias that adds to c
  kInvalidMap,      // int8 rows without scales, or a map of pages or of a ring that contradicts itself
  kSizeOverflow,    // a product of sizes does not fit std::size_t
  kWorkspaceTooSmall,  // fewer bytes than attention_workspace_bytes() asked for, or not 64-byte aligned
  kCount_,
};

struct StatusEntry {
  StatusCode code;
  const char* name;
  const char* error;  // the stable code of the JavaScript error: '' for kOk
};

inline constexpr std::array<StatusEntry, static_cast<std::size_t>(StatusCode::kCount_)> kStatusTable = {{
    {StatusCode::kOk, "ok", ""},
    {StatusCode::kMissingTensor, "missing_tensor", "type"},
    {StatusCode::kInvalidDtype, "invalid_dtype", "type"},
    {StatusCode::kBatchMismatch, "batch_mismatch", "shape"},
    {StatusCode::kHeadsMismatch, "heads_mismatch", "shape"},
    {StatusCode::kHeadsNotMultiple, "heads_not_multiple", "shape"},
    {StatusCode::kSeqlenMismatch, "seqlen_mismatch", "shape"},
    {StatusCode::kHeadDimMismatch, "head_dim_mismatch", "shape"},
    {StatusCode::kHeadDimZero, "head_dim_zero", "shape"},
    {StatusCode::kColumnStride, "column_stride", "shape"},
    {StatusCode::kOutShape, "out_shape", "shape"},
    {StatusCode::kLseShape, "lse_shape", "shape"},
    {StatusCode::kScoresShape, "scores_shape", "shape"},
    {StatusCode::kMaskShape, "mask_shape", "shape"},
    {StatusCode::kBiasShape, "bias_shape", "shape"},
    {StatusCode::kInvalidScale, "invalid_scale", "option"},
    {StatusCode::kInvalidSoftcap, "invalid_softcap", "option"},
    {StatusCode::kInvalidWindow, "invalid_window", "option"},
    {StatusCode::kAlignRequired, "align_required", "align-required"},
    {StatusCode::kInvalidOffset, "invalid_offset", "option"},
    {StatusCode::kInvalidQueryLength, "invalid_query_length", "option"},
    {StatusCode::kInvalidKvLength, "invalid_kv_length", "option"},
    {StatusCode::kInvalidScoresStage, "invalid_scores_stage", "option"},
    {StatusCode::kInvalidChunk, "invalid_chunk", "option"},
    {StatusCode::kInvalidGlobalKeys, "invalid_global_keys", "option"},
    {StatusCode::kInvalidSegments, "invalid_segments", "option"},
    {StatusCode::kInvalidStarts, "invalid_starts", "option"},
    {StatusCode::kBlockMaskShape, "block_mask_shape", "shape"},
    {StatusCode::kInvalidDropout, "invalid_dropout", "option"},
    {StatusCode::kGradientShape, "gradient_shape", "shape"},
    {StatusCode::kInvalidRequest, "invalid_request", "option"},
    {StatusCode::kInvalidMap, "invalid_map", "option"},
    {StatusCode::kSizeOverflow, "size_overflow", "shape"},
    {StatusCode::kWorkspaceTooSmall, "workspace_too_small", "out-of-memory"},
}};

class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr Status(StatusCode code) : code_(code) {}  // NOLINT(google-explicit-constructor): a code is a status

  constexpr bool ok() const { return code_ == StatusCode::kOk; }
  constexpr StatusCode code() const { return code_; }
  constexpr const char* name() const { return kStatusTable[static_cast<std::size_t>(code_)].name; }

  friend constexpr bool operator==(Status, Status) = default;

 private:
  StatusCode code_ = StatusCode::kOk;
};

}  // namespace sdpa
