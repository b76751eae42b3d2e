// The border's one argument: an array of float64 that JavaScript fills in wasm memory, decoded here into the public
// arguments. A double holds every pointer, size and option exactly, so nothing is signed, truncated or coerced on the
// way.
#pragma once

#include <cstdint>

#include "sdpa/attention.hpp"
#include "sdpa/gradients.hpp"
#include "sdpa/weights.hpp"
#include "sdpa/window.hpp"

namespace sdpa::binding {

/// Fields in the order in which they lie. JavaScript has the same list (web/frame.js) and compares it at load.
enum class Field : std::uint8_t {
  kQuery,
  kKey,
  kValue,
  kOut,
  kLse,
  kScores,
  kMask,
  kBias,
  kQueryLengths,
  kKvLengths,
  kQueryOffsets,
  kWorkspace,
  kWorkspaceBytes,
  kQueryDtype,
  kKeyDtype,
  kValueDtype,
  kBiasDtype,
  kBatch,
  kNumHeads,
  kNumKvHeads,
  kSeqlenQ,
  kSeqlenKv,
  kHeadDim,
  kHeadDimV,
  kLayout,
  kMaskBatch,
  kMaskHeads,
  kMaskRows,
  kMaskColumns,
  kBiasBatch,
  kBiasHeads,
  kBiasRows,
  kBiasColumns,
  kScale,
  kSoftcap,
  kCausal,
  kWindowLeft,
  kWindowRight,
  kAlign,
  kQueryOffset,
  kScoresStage,
  kAlibiSlopes,
  kSinks,
  kQuerySegments,
  kKeySegments,
  kQueryStarts,
  kKeyStarts,
  kBlockTiles,
  kBlockBits,
  kKeyScales,
  kValueScales,
  kPages,
  kHeldFrom,
  kAlibiBatch,
  kSinkBatch,
  kSequences,
  kBlockBatch,
  kBlockHeads,
  kBlockRows,
  kChunk,
  kGlobalKeys,
  kDropout,
  kSeedLow,
  kSeedHigh,
  kCellBatch,
  kCellHead,
  kCellRow,
  kKeyBatchStride,
  kKeyHeadStride,
  kKeyRowStride,
  kValueBatchStride,
  kValueHeadStride,
  kValueRowStride,
  kPageSize,
  kPagesPerRow,
  kRingBegin,
  kRingSize,
  kWeightsKind,
  kWeightsHeads,
  kWeightsNumHeads,
  kWeightsPicks,
  kWeightsNumPicks,
  kTopK,
  kRowCells,
  kNumRowCells,
  kColumnCells,
  kNumColumnCells,
  kWeightsValues,
  kWeightsIndices,
  kWeightsEntropy,
  kWeightsSums,
  kDOut,
  kDLse,
  kDQuery,
  kDKey,
  kDValue,
  kDBias,
  kDScale,
  kDSinks,
  kDAlibi,
  kWindowOrigins,
  kNumWindows,
  kImageWidth,
  kWindowHeight,
  kWindowWidth,
  kCount_,
};

inline constexpr const char* kFieldNames =
    "query,key,value,out,lse,scores,mask,bias,query_lengths,kv_lengths,query_offsets,workspace,workspace_bytes,"
    "query_dtype,key_dtype,value_dtype,bias_dtype,batch,num_heads,num_kv_heads,seqlen_q,seqlen_kv,head_dim,head_dim_v,"
    "layout,mask_batch,mask_heads,mask_rows,mask_columns,bias_batch,bias_heads,bias_rows,bias_columns,scale,softcap,"
    "causal,window_left,window_right,align,query_offset,scores_stage,alibi_slopes,sinks,query_segments,key_segments,"
    "query_starts,key_starts,block_tiles,block_bits,key_scales,value_scales,pages,held_from,alibi_batch,sink_batch,"
    "sequences,block_batch,block_heads,block_rows,chunk,global_keys,dropout,seed_low,seed_high,cell_batch,cell_head,"
    "cell_row,key_batch_stride,key_head_stride,key_row_stride,value_batch_stride,value_head_stride,value_row_stride,"
    "page_size,pages_per_row,ring_begin,ring_size,weights_kind,weights_heads,weights_num_heads,weights_picks,"
    "weights_num_picks,top_k,row_cells,num_row_cells,column_cells,num_column_cells,weights_values,weights_indices,"
    "weights_entropy,weights_sums,d_out,d_lse,d_query,d_key,d_value,d_bias,d_scale,d_sinks,d_alibi,"
    "window_origins,num_windows,image_width,window_height,window_width";

struct Call {
  AttentionTensors tensors;
  AttentionOptions options;
  std::span<std::byte> workspace;
};

/// Decodes a frame. Values are not judged here, attention() does that.
Call decode(const double* frame);

/// The windows of a call for windows.
Windows decode_windows(const double* frame);

struct WeightsCall {
  WeightsTensors tensors;
  WeightsRequest request;
  AttentionOptions options;
  std::span<std::byte> workspace;
};

/// The same of a call for weights, whose lse is an input.
WeightsCall decode_weights(const double* frame);

struct BackwardCall {
  BackwardTensors tensors;
  AttentionOptions options;
  std::span<std::byte> workspace;
};

/// The same of a backward call, whose out and lse are inputs.
BackwardCall decode_backward(const double* frame);

}  // namespace sdpa::binding
