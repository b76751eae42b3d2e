// Exact attention weights without their matrix: chosen rows or columns of
//
//   P = exp(S - lse),   S the scores of attention() after softcap, bias and masks
//
// and summaries of it, in O(result + tile) memory. The scores are computed by the code of attention(); P is 0 where a
// key takes no part and in rows that see nothing. Rows sum to 1, with a sink to less.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sdpa/attention.hpp"
#include "sdpa/options.hpp"
#include "sdpa/status.hpp"
#include "sdpa/tensor_view.hpp"

namespace sdpa {

/// What is wanted of the weights, (batch, num_heads, seqlen_q, seqlen_kv).
enum class WeightsKind : std::uint8_t {
  kRows,     // those of the picked query rows: (batch, heads, picks, seqlen_kv)
  kColumns,  // those of the picked keys: (batch, heads, seqlen_q, picks)
  kTopK,     // the largest of each row and their keys, largest first, the lower key first where they are equal:
             // (batch, heads, seqlen_q, top_k); 0 and -1 behind the last key that the row sees
  kStats,    // largest weight of each row, its key (the lowest; -1 where the row sees nothing), and the entropy
             // -sum P ln P over the keys, in nats: (batch, heads, seqlen_q)
  kSum,      // sums over cells of rows and keys: (batch, heads, row cells, column cells)
  kMean,     // means over all pairs of a cell
  kMax,      // the largest of each cell
};

/// Rows are added up in pieces of this many, each in double precision, and then the pieces in order: whoever splits a
/// call at multiples of it, and adds up the `sums` of its parts' pieces, gets the same bits.
inline constexpr std::size_t kWeightsPiece = 192;

struct WeightsTensors {
  InputView query;              // (batch, num_heads, seqlen_q, head_dim)
  InputView key;                // (batch, num_kv_heads, seqlen_kv, head_dim)
  TensorView<const float> lse;  // optional, of attention(): (batch, num_heads, seqlen_q, 1); computed where absent
  KeyValueMap map;              // key may lie in a cache
};

/// Results are contiguous, in the shapes that WeightsKind says.
struct WeightsRequest {
  WeightsKind kind = WeightsKind::kRows;
  std::span<const std::int32_t> heads;  // query heads in the order of the result; empty: all of them
  std::span<const std::int32_t> picks;  // kRows, kColumns: ascending
  std::size_t top_k = 0;                // kTopK: 1 or more
  // kSum, kMean, kMax: starts of the cells, ascending from 0, and the end, seqlen_q or seqlen_kv. Empty: all rows are
  // one cell; each key is one.
  std::span<const std::int32_t> row_cells;
  std::span<const std::int32_t> column_cells;

  float* values = nullptr;
  std::int32_t* indices = nullptr;  // kTopK, kStats
  float* entropy = nullptr;         // kStats
  double* sums = nullptr;           // kSum: where given, gets the sums in double precision in place of `values`
};

/// Bytes of scratch memory that attention_weights() needs for these arguments. Validates them as it does.
WorkspaceSize attention_weights_workspace_bytes(const WeightsTensors& tensors, const WeightsRequest& request,
                                                const AttentionOptions& options);

/// Weights for the options of the forward pass, dropout and scores_stage apart. The lse of an equal call to attention()
/// gives the same bits as none. A row of NaN gives NaN where it sees keys, and -1 for theirs. `workspace` as for
/// attention().
Status attention_weights(const WeightsTensors& tensors, const WeightsRequest& request, const AttentionOptions& options,
                         std::span<std::byte> workspace);

}  // namespace sdpa
