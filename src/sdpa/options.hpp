// Options of attention(). Each is off as it stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "sdpa/tensor_view.hpp"

namespace sdpa {

/// Where query 0 stands among the keys: the position of query i is i + offset.
enum class Align : std::uint8_t {
  kUnset,       // offset 0; allowed only where seqlen_q = seqlen_kv or nothing depends on the position
  kLowerRight,  // offset = key length - seqlen_q: the last query stands at the last key (per batch row)
  kUpperLeft,   // offset = 0
  kOffset,      // query_offsets where given, else query_offset
};

/// A stage of the scores that attention() can write out as a whole (batch, num_heads, seqlen_q, seqlen_kv) tensor.
enum class ScoresStage : std::uint8_t {
  kNone,
  kScaled,   // scale * q.k, of every pair, allowed or not
  kCapped,   // after the softcap
  kBiased,   // after bias and masks: -infinity where the key does not take part
  kWeights,  // after the softmax: 0 where the key does not take part, rows that see nothing are 0
};

/// One number per query head: element (b, h) is data[b * batch_stride + h]; data = nullptr where absent.
struct PerHead {
  const float* data = nullptr;
  std::size_t batch_stride = 0;  // 0: the same heads in every batch row
};

/// Which tiles of kBlockMaskTile x kBlockMaskTile cells take part. `tiles` is (batch, heads, row tiles, column tiles):
/// 0 = no cell, 1 = every cell, n + 2 = the cells of partial tile n. `bits` is (partial tiles, kBlockMaskTile rows, 2
/// words of 32 keys, the lowest bit first); bits beyond the rows and keys of the call are 0.
struct BlockMask {
  const std::uint32_t* tiles = nullptr;
  const std::uint32_t* bits = nullptr;
  std::size_t batch = 1;  // 1 or that of the call
  std::size_t heads = 1;  // 1 or num_heads
  std::size_t rows = 0;   // query rows that it covers
};
inline constexpr std::size_t kBlockMaskTile = 64;

/// Drops cells of the weights, after the softmax, with this probability; kept ones are times 1 / (1 - probability).
/// Cell (b, h, i, j) is dropped where word j % 4 of Philox 4x32-10 (Salmon et al. 2011) of counter (j / 4, i, h, b) and
/// key (seed_low, seed_high) is less than probability * 2^32, so the same seed drops the same cells in any split.
struct Dropout {
  double probability = 0;  // 0 = off, at most 1
  std::uint32_t seed_low = 0;
  std::uint32_t seed_high = 0;
};

/// Where batch entry 0, query head 0, query row 0 of a call stand in a larger call that it is a piece of. Counts for
/// dropout, block masks and packed sequences.
struct CellOrigin {
  std::size_t batch = 0;
  std::size_t head = 0;
  std::size_t row = 0;
};

inline constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

struct AttentionOptions {
  std::optional<double> scale;  // 1/sqrt(head_dim) where absent; any finite number, 0 and negative too
  double softcap = 0;           // t = softcap * tanh(t / softcap); 0 = off

  TensorView<const std::uint8_t> mask;  // non-zero = attend; each extent 1 or full
  InputView bias;                       // added to the capped scores; each extent 1 or full

  bool causal = false;                     // key j <= position p
  std::int64_t window_left = kUnlimited;   // p - window_left <= j; the query's own position is not counted
  std::int64_t window_right = kUnlimited;  // j <= p + window_right
  std::int64_t chunk = 0;                  // floor(p / chunk) = floor(j / chunk); 0 = off
  std::int64_t global_keys = 0;  // the first keys, visible in spite of the window's left bound and of the chunk
  PerHead alibi_slopes;          // -slope |p - j| is added beside the bias
  Align align = Align::kUnset;
  std::int64_t query_offset = 0;
  std::span<const std::int32_t> query_offsets;  // one per batch row, or empty

  std::span<const std::int32_t> query_lengths;  // one per batch row: later rows are empty rows
  std::span<const std::int32_t> kv_lengths;     // one per batch row: later keys do not take part and are not read

  // Packed sequences, batch 1: sequence s has query rows [query_starts[s], query_starts[s + 1]) and likewise keys.
  // Positions count from its own starts, lower-right where align is kUnset.
  std::span<const std::int32_t> query_starts;
  std::span<const std::int32_t> key_starts;

  // (batch, seqlen_q) and (batch, seqlen_kv): a query sees the keys of its own segment.
  std::span<const std::int32_t> query_segments;
  std::span<const std::int32_t> key_segments;
  BlockMask block_mask;

  PerHead sinks;  // one more logit a head in the denominator, without a value: a number, or -infinity = none
  Dropout dropout;
  CellOrigin origin;

  ScoresStage scores_stage = ScoresStage::kNone;
};

}  // namespace sdpa
