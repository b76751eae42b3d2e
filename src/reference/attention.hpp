// A clear, slow computation of attention: the oracle of the tests and benches.
//
//   P = softmax(select(allowed, cap(scale * Q K^T) + bias - slope |p - j|)),   O = drop(P) V,   LSE = m + ln Z
//
// where Z has one more term exp(sink - m) for a head with a sink.
//
// It is written in numbered passes over whole rows and shares nothing with the kernels: no tile, no online softmax, no
// vector type, no header of the library. Masking is selection: a key that is not allowed is skipped, never added to.
//
// The same passes exist in two precisions. In double they are the truth; in float they are the "plain float32
// computation" that a kernel's error is measured against.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace sdpa::reference {

// Where key positions start relative to the queries: the absolute position of query i is p = i + offset. In packed
// sequences all of it counts from the sequence's own first query and first key.
enum class Align {
  kNone,        // offset = 0; of packed sequences lower-right
  kLowerRight,  // offset = (key length of the batch row or of the packed sequence) - (its number of queries)
  kUpperLeft,   // offset = 0
  kOffset,      // offset = query_offsets[b] where given, else query_offset
};

// A contiguous (B, H, L, S) operand; each extent is full or 1 (broadcast). Empty data means absent.
template <class T>
struct Broadcast {
  std::vector<T> data;
  std::array<std::size_t, 4> extents{1, 1, 1, 1};

  bool present() const { return !data.empty(); }
  const T& at(std::size_t b, std::size_t h, std::size_t i, std::size_t j) const {
    const std::size_t batch = extents[0] == 1 ? 0 : b;
    const std::size_t head = extents[1] == 1 ? 0 : h;
    const std::size_t row = extents[2] == 1 ? 0 : i;
    const std::size_t column = extents[3] == 1 ? 0 : j;
    return data[((batch * extents[1] + head) * extents[2] + row) * extents[3] + column];
  }
};

// One number for each query head, of every batch row alike or of each its own. Empty data means absent.
struct PerHead {
  std::vector<float> data;  // (Hq) or (B, Hq)
  bool per_batch = false;

  bool present() const { return !data.empty(); }
  float at(std::size_t b, std::size_t h, std::size_t num_heads) const {
    return data[per_batch ? b * num_heads + h : h];
  }
};

// Cell (b, h, i, j) of the weights is dropped where word j % 4 of Philox 4x32-10 of counter (j / 4, i, h, b) under the
// key (low, high half of the seed) is below floor(probability * 2^32). The others are times 1 / (1 - probability).
struct Dropout {
  double probability = 0;  // 0: off
  std::uint64_t seed = 0;
};

// Where batch row 0, query head 0, query 0 of a problem stand in the whole that it was cut from.
struct Origin {
  std::size_t batch = 0;
  std::size_t head = 0;
  std::size_t row = 0;
};

struct Problem {
  std::size_t batch = 1;
  std::size_t num_heads = 1;
  std::size_t num_kv_heads = 1;
  std::size_t seqlen_q = 1;
  std::size_t seqlen_kv = 1;
  std::size_t head_dim = 1;
  std::size_t head_dim_v = 1;

  std::vector<float> query;  // (B, Hq,  L, D)
  std::vector<float> key;    // (B, Hkv, S, D)
  std::vector<float> value;  // (B, Hkv, S, Dv)

  std::optional<float> scale;     // absent: 1 / sqrt(D)
  float softcap = 0;              // 0: off
  Broadcast<std::uint8_t> mask;   // non-zero: attend
  Broadcast<float> bias;          // added; -infinity: masked
  bool causal = false;            // j <= p
  std::int64_t window_left = -1;  // p - left <= j; -1: unlimited
  std::int64_t window_right = -1;
  std::int64_t chunk = 0;        // floor(p / chunk) = floor(j / chunk); 0: off
  std::int64_t global_keys = 0;  // keys j < global_keys: in spite of the window's left bound and of the chunk
  PerHead alibi_slopes;          // -slope |p - j| is added beside the bias
  PerHead sinks;                 // a logit more in the denominator; -infinity: none
  Align align = Align::kNone;
  std::int64_t query_offset = 0;
  std::vector<std::int32_t> query_offsets;  // (B) or empty
  std::vector<std::int32_t> query_lengths;  // (B) or empty
  std::vector<std::int32_t> kv_lengths;     // (B) or empty

  std::vector<std::int32_t> query_segments;  // (B, L) or empty: a query sees the keys of its own segment
  std::vector<std::int32_t> key_segments;    // (B, S)
  std::vector<std::int32_t> query_starts;    // (sequences + 1) or empty: packed sequences, B = 1; rows of the whole
  std::vector<std::int32_t> key_starts;      // (sequences + 1)
  Broadcast<std::uint8_t> block_mask;        // (1 or B, 1 or H, L, S) of the whole; non-zero: attend
  Dropout dropout;
  Origin origin;  // counts for query_starts, block_mask and dropout

  // Position of query 0 of batch row b on the axis of the keys, where sequences are not packed.
  std::int64_t offset(std::size_t b) const;
  // Where query i of batch row b and key j stand; nothing where they lie in no packed sequence together.
  struct Positions {
    std::int64_t query;
    std::int64_t key;
  };
  std::optional<Positions> positions(std::size_t b, std::size_t i, std::size_t j) const;
  // Whether query i of batch row b, head h may attend to key j: every rule but a bias of -infinity.
  bool allowed(std::size_t b, std::size_t h, std::size_t i, std::size_t j) const;
  // Whether dropout takes the weight of that cell away.
  bool dropped(std::size_t b, std::size_t h, std::size_t i, std::size_t j) const;
};

// All arrays contiguous. `scaled` and `capped` cover every pair, allowed or not; `biased` is -infinity and `weights` 0
// for keys that take no part. `weights` and `lse` are those before dropout.
template <class Real>
struct Result {
  std::vector<Real> out;      // (B, Hq, L, Dv)
  std::vector<Real> lse;      // (B, Hq, L)
  std::vector<Real> scaled;   // (B, Hq, L, S)
  std::vector<Real> capped;   // (B, Hq, L, S)
  std::vector<Real> biased;   // (B, Hq, L, S)
  std::vector<Real> weights;  // (B, Hq, L, S)
};

// The truth: every operation in double.
Result<double> attention(const Problem& problem);

// The same passes with every operation rounded to float.
Result<float> attention_float32(const Problem& problem);

}  // namespace sdpa::reference
