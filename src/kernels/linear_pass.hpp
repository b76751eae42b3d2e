// One token against one stripe of columns of a head's state: the inner loops of linear attention.
//
//   state[d][c] = decay[d] * state[d][c] + key[d] * value[c]
//   out[c]      = sum_d query[d] * state[d][c]
//
// Lanes along the columns; a stripe is four vectors wide, so that each splat of key, query and decay serves four, the
// sums over d are four chains and hide their latency, and four sums, four values and the splats fill 13 of the 16
// registers. A stripe of the state (4 KiB at 4 lanes and head_dim 64) stays in the first-level cache while a chunk of
// tokens passes.
//
// The recurrence itself, then, and no products of a chunk with itself: those are (chunk / 2) (head_dim + head_dim_v)
// multiply-adds a token on top of the 2 head_dim head_dim_v that either way takes, and pay only where multiply-adds are
// cheaper in large products. Here the state is read where it is fastest, the decay is one operation, nothing is
// divided by a decay that has vanished, and cutting a sequence anywhere changes no bit.
//
// A factor near 1 is kept as its difference from 1: rounded to float32 itself, the same error would be made at every
// token, 1e-5 of the state where it forgets over a thousand of them.
#pragma once

#include <cstddef>
#include <type_traits>

#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

/// Vectors of a stripe. Without vectors every lane is a register of its own.
template <class Arch>
inline constexpr std::size_t kStripe = 4;
template <>
inline constexpr std::size_t kStripe<simd::Scalar> = 1;

enum class Decay : unsigned char { kNone, kRows, kColumns };

/// What one token brings to a stripe. What a pass does not use may be nullptr.
struct LinearToken {
  const float* decay;  // kRows: of each row, decay_step apart; kColumns: of the stripe's columns
  std::size_t decay_step;
  const float* key;
  const float* value;
  const float* query;
  float* out;
};

/// A state's share that a factor of decay_rows() leaves: below 0 it is the difference from 1.
template <class Arch, bool kSlow>
SDPA_INLINE simd::Batch<Arch> decayed(simd::Batch<Arch> factor, simd::Batch<Arch> state) {
  return kSlow ? simd::madd<Arch>(factor, state, state) : factor * state;
}

/// kWrite: decay and the product of key and value go into the state. Without it the state stays, and what is read has
/// decayed.
template <class Arch, std::size_t kVectors, Decay kDecay, bool kWrite, bool kRead>
SDPA_NOINLINE void linear_pass(const LinearToken& token, float* state, std::size_t rows) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  using V = simd::Batch<Arch>;
  V value[kVectors];
  V sum[kVectors];
  for (std::size_t c = 0; c < kVectors; ++c) {
    if constexpr (kWrite) value[c] = simd::load<Arch>(token.value + c * kW);
    sum[c] = V(0.0F);
  }
  const float* key = token.key;
  const float* query = token.query;
  const float* factor = token.decay;
  const auto row = [&](auto is_slow) SDPA_INLINE_LAMBDA {
    constexpr bool kSlow = is_slow();
    V k;
    V q;
    V f;
    if constexpr (kWrite) k = simd::splat<Arch>(*key);
    if constexpr (kRead) q = simd::splat<Arch>(*query);
    if constexpr (kDecay == Decay::kRows) f = simd::splat<Arch>(*factor);
    for (std::size_t c = 0; c < kVectors; ++c) {
      V s = simd::load<Arch>(state + c * kW);
      if constexpr (kDecay == Decay::kRows) s = decayed<Arch, kSlow>(f, s);
      if constexpr (kDecay == Decay::kColumns) {
        const V d = simd::load<Arch>(token.decay + c * kW);
        s = xsimd::select(d < V(0.0F), decayed<Arch, true>(d, s), decayed<Arch, false>(d, s));
      }
      if constexpr (kWrite) {
        s = simd::madd<Arch>(k, value[c], s);
        simd::store<Arch>(state + c * kW, s);
      }
      if constexpr (kRead) sum[c] = simd::madd<Arch>(q, s, sum[c]);
    }
  };
  SDPA_NO_UNROLL
  for (; rows != 0; --rows) {
    if (kDecay == Decay::kRows && *factor < 0.0F) {
      row(std::true_type{});
    } else {
      row(std::false_type{});
    }
    state += kVectors * kW;
    if constexpr (kWrite) ++key;
    if constexpr (kRead) ++query;
    if constexpr (kDecay == Decay::kRows) factor += token.decay_step;
  }
  if constexpr (kRead) {
    for (std::size_t c = 0; c < kVectors; ++c) simd::store<Arch>(token.out + c * kW, sum[c]);
  }
}

/// Tokens brought in: rows of `rows` floats, `row_stride` apart (key, query), and of `columns`, whole vectors (value,
/// out). Those of writer w or reader r begin `capacity` tokens behind those of the one before.
struct LinearChunk {
  std::size_t tokens;
  std::size_t capacity;
  std::size_t rows;
  std::size_t row_stride;
  std::size_t columns;
  std::size_t writers;
  std::size_t readers;
  const float* key;
  const float* value;
  const float* query;
  float* out;
  Decay decay_kind;
  const float* decay;  // factors: of each token, decay_stride apart; 1: one factor for all rows
  std::size_t decay_stride;
  const float* beta;  // nullptr, or one a token: the delta rule, of one writer
};

/// The tokens of a chunk, in order, against the stripe that begins at `column`: each is written, then read.
template <class Arch, std::size_t kVectors>
SDPA_NOINLINE void linear_stripe(const LinearChunk& c, std::size_t column, float* state) {
  using Pass = void (*)(const LinearToken&, float*, std::size_t);
  struct Passes {
    Pass write, write_and_read, read;
  };
  static constexpr Passes kPasses[] = {
      {&linear_pass<Arch, kVectors, Decay::kNone, true, false>, &linear_pass<Arch, kVectors, Decay::kNone, true, true>,
       &linear_pass<Arch, kVectors, Decay::kNone, false, true>},
      {&linear_pass<Arch, kVectors, Decay::kRows, true, false>, &linear_pass<Arch, kVectors, Decay::kRows, true, true>,
       &linear_pass<Arch, kVectors, Decay::kRows, false, true>},
      {&linear_pass<Arch, kVectors, Decay::kColumns, true, false>,
       &linear_pass<Arch, kVectors, Decay::kColumns, true, true>, nullptr},
  };
  constexpr std::size_t kColumns = kVectors * simd::kWidth<Arch>;
  const Passes& decayed = kPasses[static_cast<std::size_t>(c.decay_kind)];
  const Passes& plain = kPasses[0];
  float difference[kColumns];
  for (std::size_t t = 0; t < c.tokens; ++t) {
    LinearToken token{};
    token.decay = c.decay + t * c.decay_stride + (c.decay_kind == Decay::kColumns ? column : 0);
    token.decay_step = c.decay_stride == 1 ? 0 : 1;
    const auto point_at = [&](std::size_t row) {
      const std::size_t at = row * c.capacity + t;
      token.query = c.query + at * c.row_stride;
      token.out = c.out + at * c.columns + column;
    };
    const Passes* passes = &decayed;
    for (std::size_t w = 0; w < c.writers; ++w, passes = &plain) {
      const std::size_t at = w * c.capacity + t;
      token.key = c.key + at * c.row_stride;
      token.value = c.value + at * c.columns + column;
      if (c.beta != nullptr) {
        token.query = token.key;
        token.out = difference;
        passes->read(token, state, c.rows);
        const auto beta = simd::splat<Arch>(c.beta[t]);
        SDPA_NO_UNROLL
        for (std::size_t i = 0; i < kColumns; i += simd::kWidth<Arch>) {
          const auto error = simd::load<Arch>(token.value + i) - simd::load<Arch>(difference + i);
          simd::store<Arch>(difference + i, beta * error);
        }
        token.value = difference;
      }
      if (w + 1 == c.writers && c.readers != 0) {
        point_at(0);
        passes->write_and_read(token, state, c.rows);
      } else {
        passes->write(token, state, c.rows);
      }
    }
    for (std::size_t r = c.writers == 0 ? 0 : 1; r < c.readers; ++r) {
      point_at(r);
      plain.read(token, state, c.rows);
    }
  }
}

/// f(column, vectors) for each stripe of a state: stripes of kStripe vectors, and single vectors behind them. A stripe
/// begins at column * rows floats of the state and is [row][its columns].
template <class Arch, class F>
SDPA_INLINE void for_each_stripe(std::size_t columns, F&& f) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  for (std::size_t c = 0; c < columns;) {
    const std::size_t vectors = c + kStripe<Arch> * kW <= columns ? kStripe<Arch> : 1;
    f(c, vectors);
    c += vectors * kW;
  }
}

template <class Arch>
void linear_chunk(const LinearChunk& c, float* state) {
  for_each_stripe<Arch>(c.columns, [&](std::size_t column, std::size_t vectors) {
    float* stripe = state + column * c.rows;
    if (vectors == 1) {
      linear_stripe<Arch, 1>(c, column, stripe);
    } else {
      linear_stripe<Arch, kStripe<Arch>>(c, column, stripe);
    }
  });
}

}  // namespace sdpa::kernels
