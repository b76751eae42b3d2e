// The tokens of a chunk of one state, brought in for either direction: keys with what goes with them, and queries.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/linear_call.hpp"
#include "kernels/linear_rows.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

// Tokens of a chunk: each stripe goes over all of them, so that keys, queries and decays of a chunk should stay near,
// and the state, which is read once a chunk, be read seldom.
inline constexpr std::size_t kLinearChunk = 32;

/// Where they go: rows of key_wide and value_wide floats, whole vectors.
template <class Arch>
struct LinearTokens {
  std::size_t columns;     // of a state
  std::size_t key_wide;    // head_dim in whole vectors
  std::size_t value_wide;  // columns likewise
  std::size_t decay_stride;
  float* key;
  float* value;
  float* query;
  float* decay;
  float* beta;

  LinearTokens(const LinearShape& shape, Pieces& pieces) {
    columns = shape.head_dim_v + (shape.normalised ? 1 : 0);
    key_wide = round_up(shape.head_dim, simd::kWidth<Arch>);
    value_wide = round_up(columns, simd::kWidth<Arch>);
    decay_stride = shape.decay_columns <= 1 ? shape.decay_columns : key_wide;
    key = pieces.take(shape.chunk * key_wide);
    value = pieces.take(shape.chunk * value_wide);
    query = pieces.take(shape.readers * shape.chunk * key_wide);
    decay = pieces.take(shape.chunk * decay_stride);
    beta = pieces.take(shape.chunk);
  }

  /// A state as the caller has it.
  StatePlace place(const LinearShape& shape) const { return {shape.head_dim, columns, columns, 1}; }
  float* query_of(const LinearHead& h, std::size_t reader) const { return query + reader * h.shape.chunk * key_wide; }
};

/// Keys, values and betas. A normalised value is followed by a 1, which sums up the keys.
template <class Arch>
SDPA_NOINLINE void bring_keys(const LinearHead& h, const LinearTokens<Arch>& to, const LinearSpan& span) {
  const std::size_t head_dim = h.shape.head_dim;
  const std::size_t head_dim_v = h.shape.head_dim_v;
  read_rows<Arch>(h.key, 0, span, h.key_mask, head_dim, to.key, to.key_wide);
  if (h.shape.normalised) feature_rows<Arch>(to.key, span.tokens * to.key_wide);
  read_rows<Arch>(h.value, 0, span, h.key_mask, head_dim_v, to.value, to.value_wide);
  if (h.beta.data != nullptr) read_rows<Arch>(h.beta, 0, span, nullptr, 1, to.beta, 1);
  if (h.steps) read_rows<Arch>(h.decay, 0, span, nullptr, 1, to.beta, 1);
  for (std::size_t i = 0; i < span.tokens; ++i) {
    float* key = to.key + i * to.key_wide;
    float* behind = to.value + i * to.value_wide + head_dim_v;
    std::fill(behind, to.value + (i + 1) * to.value_wide, 0.0F);
    if (h.shape.normalised) *behind = 1.0F;
    if (h.key_mask != nullptr && h.key_mask[span.row(i)] == 0) std::fill_n(key, head_dim, 0.0F);
    if (!h.steps) continue;
    SDPA_NO_UNROLL
    for (std::size_t d = 0; d < head_dim; ++d) key[d] *= to.beta[i];
  }
}

/// Factors by which the state decays before each token, or `next`: behind it, 1 behind the last.
template <class Arch>
SDPA_NOINLINE void bring_decays(const LinearHead& h, const LinearTokens<Arch>& to, const LinearSpan& span, bool next) {
  const std::size_t columns = h.shape.decay_columns;
  if (columns == 0) return;
  for (std::size_t i = 0; i < span.tokens; ++i) {
    const std::size_t row = span.row(i) + (next ? 1 : 0);
    float* decay = to.decay + i * to.decay_stride;
    if (row == h.keys) {
      std::fill_n(decay, columns, 0.0F);
    } else {
      read_rows<Arch>(h.decay, 0, {row, 1, false}, nullptr, columns, decay, 0);
      if (h.steps) *decay *= h.rate;
    }
  }
  decay_rows<Arch>(to.decay, span.tokens * to.decay_stride);
}

template <class Arch>
SDPA_NOINLINE void bring_queries(const LinearHead& h, const LinearTokens<Arch>& to, const LinearSpan& span) {
  for (std::size_t r = 0; r < h.shape.readers; ++r) {
    float* query = to.query_of(h, r);
    read_rows<Arch>(h.query, r, span, nullptr, h.shape.head_dim, query, to.key_wide);
    if (h.shape.normalised) feature_rows<Arch>(query, span.tokens * to.key_wide);
  }
}

/// Runs the chunks of a call through a state: write and read token by token where `h` is causal, else all writes before
/// all reads. bring(span, writes, reads), then linear_chunk(), then take(span) where something was read.
template <class Arch, class Bring, class Take>
SDPA_INLINE void run_chunks(const LinearHead& h, LinearChunk c, float* state, std::size_t writes, std::size_t reads,
                            bool backwards, Bring&& bring, Take&& take) {
  const std::size_t writers = c.writers;
  const std::size_t readers = c.readers;
  for (int phase = 0; phase < (h.causal ? 1 : 2); ++phase) {
    const bool writing = phase == 0;
    const bool reading = h.causal || phase == 1;
    c.writers = writing ? writers : 0;
    c.readers = reading ? readers : 0;
    const std::size_t tokens = writing ? writes : reads;
    for (std::size_t done = 0; done < tokens; done += c.capacity) {
      const LinearSpan span{backwards ? tokens - 1 - done : done, std::min(c.capacity, tokens - done), backwards};
      c.tokens = span.tokens;
      bring(span, writing, reading);
      linear_chunk<Arch>(c, state);
      if (reading) take(span);
    }
  }
}

}  // namespace sdpa::kernels
