// Gradients of linear attention of one state, by three runs of the forward recurrence in other roles. With dS the
// gradient of the state, which runs backwards,
//
//   dq_t = S_t do_t                      keys v, values k, queries do, on S^T: its columns decay
//   dv_t = dS_t^T k_t                    keys q, values do, queries k, on dS = dS exp(g_{t+1}) + q_t (x) do_t
//   dk_t = dS_t v_t                      keys do, values q, queries v, on dS^T
//   dg_t = sum_{s >= t} (q_s dq_s - k_s dk_s) + S_T dS_T, for each column of the key, or their sum
//
// where do is times the scale or, of normalised rows, the gradient of numerator and divisor. Memory: chunks and one
// state, and two numbers for each normalised query.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "kernels/linear_call.hpp"
#include "kernels/linear_forward.hpp"
#include "kernels/linear_tokens.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

/// Parts of the workspace.
template <class Arch>
struct LinearBackwardWorkspace {
  Pieces pieces;
  LinearTokens<Arch> tokens;
  std::size_t out_wide;
  float* state;
  float* d_out;
  float* out;
  float* divisors;  // of each query: what d_out is times, and the gradient of the divisor
  double* totals;   // of each decaying column: sums of q dq - k dk so far

  LinearBackwardWorkspace(const LinearShape& shape, std::size_t queries, float* base)
      : pieces{base}, tokens(shape, pieces) {
    out_wide = std::max(tokens.key_wide, tokens.value_wide);
    state = pieces.take(std::max(shape.head_dim * tokens.value_wide, tokens.columns * tokens.key_wide));
    d_out = pieces.take(shape.readers * shape.chunk * tokens.value_wide);
    out = pieces.take(shape.readers * shape.chunk * out_wide);
    divisors = pieces.take(shape.normalised ? 2 * shape.readers * queries : 0);
    totals = reinterpret_cast<double*>(pieces.take(2 * shape.head_dim));
  }

  static std::size_t floats(const LinearShape& shape, std::size_t queries) {
    return LinearBackwardWorkspace(shape, queries, nullptr).pieces.used;
  }
};

template <class Arch>
class LinearGradient {
 public:
  LinearGradient(const LinearBackward& b, float* workspace)
      : b_(b), h_(b.forward), shape_(b.forward.shape), w_(shape_, h_.queries, workspace), t_(w_.tokens) {}

  void run() {
    if (shape_.normalised) pass(Role::kDivisors);
    pass(Role::kQueries);
    if (decays()) begin_totals();
    pass(Role::kValues);
    if (b_.d_first_state != nullptr) end_state();
    pass(Role::kKeys);
  }

 private:
  /// What a run is for.
  enum class Role : unsigned char { kDivisors, kQueries, kValues, kKeys };

  bool decays() const { return shape_.decay_columns != 0; }
  /// From a column of the key to the next among its decays: one decay may be that of all.
  std::size_t decay_step() const { return shape_.decay_columns == 1 ? 0 : 1; }

  /// Gradients of out, as they are, or of what was divided.
  SDPA_NOINLINE void bring_d_out(const LinearSpan& span, bool raw) const {
    const LinearRows rows{b_.d_out, DType::kFloat32, b_.d_out_stride, b_.d_out_head_stride};
    for (std::size_t r = 0; r < shape_.readers; ++r) {
      float* to = w_.d_out + r * shape_.chunk * t_.value_wide;
      read_rows<Arch>(rows, r, span, nullptr, shape_.head_dim_v, to, t_.value_wide);
      for (std::size_t i = 0; i < span.tokens; ++i, to += t_.value_wide) {
        std::fill(to + shape_.head_dim_v, to + t_.value_wide, 0.0F);
        if (raw) continue;
        const float* pair = w_.divisors + 2 * (r * h_.queries + span.row(i));
        const float factor = shape_.normalised ? pair[0] : h_.scale;
        SDPA_NO_UNROLL
        for (std::size_t c = 0; c < shape_.head_dim_v; ++c) to[c] *= factor;
        if (shape_.normalised) to[shape_.head_dim_v] = pair[1];
      }
    }
  }

  /// One run of the recurrence: forwards, keys write and queries read; backwards, queries write and keys read.
  SDPA_NOINLINE void pass(Role role) const {
    const bool by_value = role == Role::kQueries || role == Role::kKeys;
    const bool back = role == Role::kValues || role == Role::kKeys;
    LinearChunk c = forward_chunk(h_, t_, w_.out);
    c.beta = nullptr;
    if (by_value) {
      c.rows = t_.columns;
      c.row_stride = t_.value_wide;
      c.columns = t_.key_wide;
      if (shape_.decay_columns > 1) c.decay_kind = Decay::kColumns;
      c.key = t_.value;
      c.value = t_.key;
      c.query = w_.d_out;
    }
    if (back) {
      c.query = c.key;
      c.key = by_value ? w_.d_out : t_.query;
      c.value = by_value ? t_.query : w_.d_out;
      std::swap(c.writers, c.readers);
    }
    const StatePlace columns{t_.columns, shape_.head_dim, 1, t_.columns};
    move_state<Arch>(w_.state, by_value ? columns : t_.place(shape_), c.columns, back ? b_.d_state : h_.state, nullptr);
    run_chunks<Arch>(
        h_, c, w_.state, back ? h_.queries : h_.keys, back ? h_.keys : h_.queries, back,
        [&](const LinearSpan& span, bool writing, bool reading) {
          if (back ? reading : writing) bring_keys(h_, t_, span);
          if (writing) bring_decays(h_, t_, span, back);
          if (!(back ? writing : reading)) return;
          bring_queries(h_, t_, span);
          bring_d_out(span, role == Role::kDivisors);
        },
        [&](const LinearSpan& span) {
          for (std::size_t r = 0; r < (back ? 1 : shape_.readers); ++r) {
            for (std::size_t i = 0; i < span.tokens; ++i) {
              const Token token{r, r * shape_.chunk + i, span.row(i)};
              float* out = w_.out + token.at * c.columns;
              if (role == Role::kDivisors) take_divisor(token, out);
              if (role == Role::kQueries) take_query(token, out);
              if (role == Role::kValues) take_value(token, out);
              if (role == Role::kKeys) take_key(token, out);
            }
          }
        });
  }

  /// Token `row` of reader `reader`, `at` in the chunk.
  struct Token {
    std::size_t reader;
    std::size_t at;
    std::size_t row;
  };

  /// Of a normalised query: o = n / z, so dn = do / z and dz = -sum do n / z^2.
  void take_divisor(const Token& token, const float* out) const {
    const float* d_out = w_.d_out + token.at * t_.value_wide;
    const float sum = out[shape_.head_dim_v] + h_.epsilon;
    const float inverse = sum == 0.0F ? 0.0F : 1.0F / sum;
    float product = 0.0F;
    SDPA_NO_UNROLL
    for (std::size_t c = 0; c < shape_.head_dim_v; ++c) product += d_out[c] * (out[c] * inverse);
    float* pair = w_.divisors + 2 * (token.reader * h_.queries + token.row);
    pair[0] = inverse;
    pair[1] = -inverse * product;
  }

  void take_query(const Token& token, const float* d_query) const {
    const float* query = t_.query + token.at * t_.key_wide;
    if (decays()) begin_decay(query, d_query, token);
    put(d_query, shape_.normalised ? query : nullptr, shape_.head_dim,
        b_.d_query + token.reader * b_.d_query_head_stride + token.row * b_.d_query_stride, b_.add_query);
  }

  void take_value(const Token& token, float* d_value) const {
    for (std::size_t r = 0; b_.d_skip != nullptr && r < shape_.readers; ++r) {
      const float* d_out = w_.d_out + (r * shape_.chunk + token.at) * t_.value_wide;
      const float* value = t_.value + token.at * t_.value_wide;
      SDPA_NO_UNROLL
      for (std::size_t e = 0; e < shape_.head_dim_v; ++e) {
        *b_.d_skip += static_cast<double>(d_out[e]) * value[e];
        d_value[e] += h_.skip * d_out[e];
      }
    }
    put(d_value, nullptr, shape_.head_dim_v, b_.d_value + token.row * b_.d_value_stride, false);
  }

  void take_key(const Token& token, float* d_key) const {
    const float* key = t_.key + token.at * t_.key_wide;
    if (decays()) end_decay(key, d_key, token.row);
    if (h_.steps) end_step(d_key, t_.beta[token.at], token.row);
    put(d_key, shape_.normalised ? key : nullptr, shape_.head_dim, b_.d_key + token.row * b_.d_key_stride, b_.add_key);
  }

  /// A row of a gradient to its place. `features`: phi of what it is the gradient of, whose slope is at most 1.
  void put(const float* from, const float* features, std::size_t columns, float* to, bool add) const {
    SDPA_NO_UNROLL
    for (std::size_t d = 0; d < columns; ++d) {
      float x = from[d];
      if (features != nullptr && features[d] < 1.0F) x *= features[d];
      to[d] = add ? to[d] + x : x;
    }
  }

  /// q dq of one token, where the gradient of its decay will be.
  void begin_decay(const float* query, const float* d_query, const Token& token) const {
    float* to = b_.d_decay + token.row * b_.d_decay_stride;
    const std::size_t step = decay_step();
    if (token.reader == 0) std::fill_n(to, shape_.decay_columns, 0.0F);
    SDPA_NO_UNROLL
    for (std::size_t d = 0; d < shape_.head_dim; ++d) to[d * step] += query[d] * d_query[d];
  }

  /// S_T dS_T.
  void begin_totals() const {
    const std::size_t step = decay_step();
    std::fill_n(w_.totals, shape_.head_dim, 0.0);
    if (b_.d_state == nullptr) return;
    // The state lies in stripes of columns of the key.
    for_each_stripe<Arch>(t_.key_wide, [&](std::size_t column, std::size_t vectors) {
      const std::size_t width = vectors * simd::kWidth<Arch>;
      for (std::size_t e = 0; e < t_.columns; ++e) {
        const float* row = w_.state + column * t_.columns + e * width;
        SDPA_NO_UNROLL
        for (std::size_t c = 0; c < width && column + c < shape_.head_dim; ++c) {
          const std::size_t d = column + c;
          w_.totals[d * step] += static_cast<double>(row[c]) * b_.d_state[d * t_.columns + e];
        }
      }
    });
  }

  /// The gradient of the first state: dS with the first token's decay, by a token that writes nothing.
  void end_state() const {
    if (decays() && h_.keys != 0) {
      bring_decays(h_, t_, {0, 1, false}, false);
      std::fill_n(w_.out, w_.out_wide, 0.0F);
      LinearChunk c = forward_chunk(h_, t_, w_.out);
      c.tokens = 1;
      c.readers = 0;
      c.key = c.value = w_.out;
      c.beta = nullptr;
      linear_chunk<Arch>(c, w_.state);
    }
    move_state<Arch>(w_.state, t_.place(shape_), t_.value_wide, nullptr, b_.d_first_state);
  }

  void end_decay(const float* key, const float* d_key, std::size_t row) const {
    float* to = b_.d_decay + row * b_.d_decay_stride;
    const std::size_t step = decay_step();
    SDPA_NO_UNROLL
    for (std::size_t d = 0; d < shape_.decay_columns; ++d) w_.totals[d] += to[d];
    SDPA_NO_UNROLL
    for (std::size_t d = 0; d < shape_.head_dim; ++d) w_.totals[d * step] -= static_cast<double>(key[d]) * d_key[d];
    SDPA_NO_UNROLL
    for (std::size_t d = 0; d < shape_.decay_columns; ++d) to[d] = static_cast<float>(w_.totals[d]);
  }

  /// The key was times the step, and the log of the decay is rate times it.
  void end_step(float* d_key, float step, std::size_t row) const {
    const double d_decay = w_.totals[0];
    double sum = h_.rate * d_decay;
    read_rows<Arch>(h_.key, 0, {row, 1, false}, nullptr, shape_.head_dim, t_.query, 0);
    SDPA_NO_UNROLL
    for (std::size_t d = 0; d < shape_.head_dim; ++d) {
      sum += static_cast<double>(d_key[d]) * t_.query[d];
      d_key[d] *= step;
    }
    *b_.d_rate += step * d_decay;
    b_.d_decay[row * b_.d_decay_stride] = static_cast<float>(sum);
  }

  const LinearBackward& b_;
  const LinearHead& h_;
  const LinearShape& shape_;
  const LinearBackwardWorkspace<Arch> w_;
  const LinearTokens<Arch>& t_;
};

template <class Arch>
void linear_backward_head(const LinearBackward& b, float* workspace) {
  LinearGradient<Arch>(b, workspace).run();
}

}  // namespace sdpa::kernels
