// Brings the rows of a chunk of tokens in, widened, and the state into stripes and back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/linear_call.hpp"
#include "kernels/linear_pass.hpp"
#include "kernels/pack.hpp"
#include "simd/math.hpp"

namespace sdpa::kernels {

/// Tokens of a chunk, in the order in which they are taken: token i is row first + i, or first - i.
struct LinearSpan {
  std::size_t first;
  std::size_t tokens;
  bool backwards;

  constexpr std::size_t row(std::size_t i) const { return backwards ? first - i : first + i; }
};

/// `columns` columns of each token, `stride` floats apart; rows that `mask` excludes are not read, and zeros.
template <class Arch>
SDPA_NOINLINE void read_rows(const LinearRows& rows, std::size_t head, const LinearSpan& span, const std::uint8_t* mask,
                             std::size_t columns, float* to, std::size_t stride) {
  for (std::size_t i = 0; i < span.tokens; ++i, to += stride) {
    const std::size_t row = span.row(i);
    const std::size_t at = head * rows.head_stride + row * rows.stride;
    if (mask != nullptr && mask[row] == 0) {
      std::fill_n(to, columns, 0.0F);
    } else if (rows.dtype == DType::kFloat32) {
      std::copy_n(static_cast<const float*>(rows.data) + at, columns, to);
    } else {
      SDPA_NO_UNROLL
      for (std::size_t c = 0; c < columns; ++c) to[c] = read_element(rows.data, rows.dtype, at + c);
    }
  }
}

/// phi(x) = elu(x) + 1 in place, x + 1 above 0 and exp(x) up to there; n numbers rounded up to whole vectors.
template <class Arch>
SDPA_NOINLINE void feature_rows(float* x, std::size_t n) {
  const auto k = simd::ExpConstants<Arch>::load();
  const auto zero = simd::splat<Arch>(0.0F);
  SDPA_NO_UNROLL
  for (std::size_t i = 0; i < n; i += simd::kWidth<Arch>) {
    const auto v = simd::load<Arch>(x + i);
    const auto rises = v > zero;
    const auto e = simd::exp_nonpositive<Arch>(xsimd::select(rises, zero, v), k);
    simd::store<Arch>(x + i, xsimd::select(rises, v + k.one, e));
  }
}

/// Logs to factors in place: exp(x), which is 0 and infinity from -69.3 and 69.3 on; where it is less than 1 by less
/// than 0.29, exp(x) - 1, below 0, exact to 2e-7 of itself.
template <class Arch>
SDPA_NOINLINE void decay_rows(float* x, std::size_t n) {
  const auto k = simd::ExpConstants<Arch>::load();
  const auto zero = simd::splat<Arch>(0.0F);
  const auto half = simd::splat<Arch>(-0.5F);
  SDPA_NO_UNROLL
  for (std::size_t i = 0; i < n; i += simd::kWidth<Arch>) {
    const auto v = simd::load<Arch>(x + i);
    const auto rises = v > zero;
    const auto e = simd::exp_nonpositive<Arch>(xsimd::select(rises, zero - v, v), k);
    // Without the 1 of 2^r, where r is not reduced.
    const auto r = v * k.log2e;
    const auto slow = (r < zero) & (r > half);
    simd::store<Arch>(x + i, xsimd::select(slow, simd::exp2_slope<Arch>(r, k) * r, xsimd::select(rises, k.one / e, e)));
  }
}

/// A state whose element (d, c) lies at d * row_step + c * column_step.
struct StatePlace {
  std::size_t rows;
  std::size_t columns;
  std::size_t row_step;
  std::size_t column_step;
};

/// Into stripes of `wide` columns in all, zeros where there is nothing, or back.
template <class Arch>
SDPA_NOINLINE void move_state(float* stripes, const StatePlace& place, std::size_t wide, const float* from, float* to) {
  for_each_stripe<Arch>(wide, [&](std::size_t column, std::size_t vectors) {
    for (std::size_t d = 0; d < place.rows; ++d) {
      SDPA_NO_UNROLL
      for (std::size_t c = column; c < column + vectors * simd::kWidth<Arch>; ++c, ++stripes) {
        const bool there = c < place.columns;
        const std::size_t at = d * place.row_step + c * place.column_step;
        if (to == nullptr) {
          *stripes = there && from != nullptr ? from[at] : 0.0F;
        } else if (there) {
          to[at] = *stripes;
        }
      }
    }
  });
}

}  // namespace sdpa::kernels
