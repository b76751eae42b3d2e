// Options of attention(). Each is off as it stands.
#pragma once

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

inline constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

struct AttentionOptions {
  std::optional<double> scale;  // 1/sqrt(head_dim) where absent; any finite number, 0 and negative too
  double softcap = 0;           // t = softcap * tanh(t / softcap); 0 = off

  TensorView<const std::uint8_t> mask;  // non-zero = attend; each extent 1 or full
  InputView bias;                       // added to the capped scores; each extent 1 or full

  bool causal = false;                     // key j <= position p
  std::int64_t window_left = kUnlimited;   // p - window_left <= j; the query's own position is not counted
  std::int64_t window_right = kUnlimited;  // j <= p + window_right
  Align align = Align::kUnset;
  std::int64_t query_offset = 0;
  std::span<const std::int32_t> query_offsets;  // one per batch row, or empty

  std::span<const std::int32_t> query_lengths;  // one per batch row: later rows are empty rows
  std::span<const std::int32_t> kv_lengths;     // one per batch row: later keys do not take part and are not read

  ScoresStage scores_stage = ScoresStage::kNone;
};

}  // namespace sdpa
