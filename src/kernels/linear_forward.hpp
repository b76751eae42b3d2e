// Linear attention of one state: a chunk of tokens is brought in, runs through the state stripe by stripe, and what was
// read goes out. See linear_pass.hpp for the arithmetic.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/linear_call.hpp"
#include "kernels/linear_pass.hpp"
#include "kernels/linear_rows.hpp"
#include "kernels/linear_tokens.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

/// Parts of the workspace.
template <class Arch>
struct LinearWorkspace {
  Pieces pieces;
  LinearTokens<Arch> tokens;
  float* state;
  float* out;

  LinearWorkspace(const LinearShape& shape, float* base) : pieces{base}, tokens(shape, pieces) {
    state = pieces.take(shape.head_dim * tokens.value_wide);
    out = pieces.take(shape.readers * shape.chunk * tokens.value_wide);
  }

  static std::size_t floats(const LinearShape& shape) { return LinearWorkspace(shape, nullptr).pieces.used; }
};

/// What the queries of `h` read out of what its keys wrote.
template <class Arch>
LinearChunk forward_chunk(const LinearHead& h, const LinearTokens<Arch>& tokens, float* out) {
  LinearChunk c{};
  c.capacity = h.shape.chunk;
  c.rows = h.shape.head_dim;
  c.row_stride = tokens.key_wide;
  c.columns = tokens.value_wide;
  c.writers = 1;
  c.readers = h.shape.readers;
  c.key = tokens.key;
  c.value = tokens.value;
  c.query = tokens.query;
  c.out = out;
  c.decay_kind = h.shape.decay_columns == 0 ? Decay::kNone : Decay::kRows;
  c.decay = tokens.decay;
  c.decay_stride = tokens.decay_stride;
  if (h.beta.data != nullptr) c.beta = tokens.beta;
  return c;
}

/// Rows of one reader, scaled or divided, to their places.
template <class Arch>
SDPA_NOINLINE void take_out(const LinearHead& h, const LinearWorkspace<Arch>& w, const LinearSpan& span,
                            std::size_t reader) {
  const std::size_t wide = w.tokens.value_wide;
  float* from = w.out + reader * h.shape.chunk * wide;
  const float* value = w.tokens.value;
  for (std::size_t i = 0; i < span.tokens; ++i, from += wide, value += wide) {
    float scale = h.scale;
    float divisor = 1.0F;
    if (h.shape.normalised) {
      divisor = from[h.shape.head_dim_v] + h.epsilon;
      if (divisor == 0.0F) scale = 0.0F;
      if (divisor == 0.0F) divisor = 1.0F;
    }
    const auto factor = simd::splat<Arch>(scale);
    const auto quotient = simd::splat<Arch>(divisor);
    SDPA_NO_UNROLL
    for (std::size_t c = 0; c < wide; c += simd::kWidth<Arch>) {
      auto x = simd::load<Arch>(from + c) * factor / quotient;
      if (h.skip != 0.0F) x = simd::madd<Arch>(simd::splat<Arch>(h.skip), simd::load<Arch>(value + c), x);
      simd::store<Arch>(from + c, x);
    }
    std::copy_n(from, h.shape.head_dim_v, h.out + reader * h.out_head_stride + span.row(i) * h.out_stride);
  }
}

template <class Arch>
void linear_head(const LinearHead& h, float* workspace) {
  const LinearWorkspace<Arch> w(h.shape, workspace);
  const StatePlace place = w.tokens.place(h.shape);
  move_state<Arch>(w.state, place, w.tokens.value_wide, h.state, nullptr);
  run_chunks<Arch>(
      h, forward_chunk(h, w.tokens, w.out), w.state, h.keys, h.queries, false,
      [&](const LinearSpan& span, bool writing, bool reading) {
        if (writing) bring_keys(h, w.tokens, span);
        if (writing) bring_decays(h, w.tokens, span, false);
        if (reading) bring_queries(h, w.tokens, span);
      },
      [&](const LinearSpan& span) {
        for (std::size_t r = 0; r < h.shape.readers; ++r) take_out(h, w, span, r);
      });
  if (h.next_state != nullptr) move_state<Arch>(w.state, place, w.tokens.value_wide, nullptr, h.next_state);
}

}  // namespace sdpa::kernels
