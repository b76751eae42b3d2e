// O = alpha * O + P V of a few query rows whose values are read where they lie, in any storage type and in runs.
//
// The sums of pv_tile.hpp in the same order. Values of 8 and 16 bits are widened in registers, to a power of two times
// what they are where that saves work: the weights then come divided by it, and every product is the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/pv_tile.hpp"
#include "kernels/row_runs.hpp"
#include "simd/narrow.hpp"

namespace sdpa::kernels {

/// Vectors of float32 as they are, with the interface of simd::Narrow.
template <class Arch>
struct Plain {
  SDPA_INLINE void pair(const float* from, simd::Batch<Arch> (&to)[2]) {
    to[0] = simd::load<Arch>(from);
    to[1] = simd::load<Arch>(from + simd::kWidth<Arch>);
  }
  bool all_finite() const { return true; }
};

template <class Arch, class Element>
struct WideningOf {
#if defined(__wasm_simd128__)
  using Type = simd::Narrow<Arch, Element>;
#endif
};
template <class Arch>
struct WideningOf<Arch, float> {
  using Type = Plain<Arch>;
};

/// kPairs column blocks from column `first` on. False where a value is infinite or NaN and that is lost in widening:
/// then `out` is as it was. Rows of out as in pv_register_tile().
template <class Arch, class Element, std::size_t kRows, std::size_t kPairs, std::size_t kKeyStep>
SDPA_NOINLINE bool pv_runs_tile(const float* weights, const RowRuns& value, std::size_t first, bool fresh,
                                const float* alpha, float* out) {
  static_assert(kNr == 2);
  constexpr std::size_t kW = simd::kWidth<Arch>;
  using V = simd::Batch<Arch>;
  const auto at = [](std::size_t r, std::size_t pair) {
    return pair * kScoreStride<Arch> * kColumnBlock<Arch> + r * kColumnBlock<Arch>;
  };
  V acc[kRows][kPairs][kNr];
  for (std::size_t r = 0; r < kRows; ++r) {
    const V a = simd::splat<Arch>(alpha[r]);
    for (std::size_t p = 0; p < kPairs; ++p) {
      for (std::size_t v = 0; v < kNr; ++v) {
        acc[r][p][v] = fresh ? V(0.0F) : simd::load<Arch>(out + at(r, p) + v * kW) * a;
      }
    }
  }
  typename WideningOf<Arch, Element>::Type widening;
  for (std::size_t i = 0; i < value.count; ++i) {
    const Element* from = static_cast<const Element*>(value.piece[i].data) + first;
    SDPA_NO_UNROLL
    for (std::size_t n = value.piece[i].rows; n != 0; --n) {
      for (std::size_t p = 0; p < kPairs; ++p) {
        V x[kNr];
        widening.pair(from + p * kColumnBlock<Arch>, x);
        for (std::size_t r = 0; r < kRows; ++r) {
          const V w = simd::splat<Arch>(weights[r]);
          for (std::size_t v = 0; v < kNr; ++v) acc[r][p][v] = simd::madd<Arch>(w, x[v], acc[r][p][v]);
        }
      }
      weights += kKeyStep;
      from += value.stride;
    }
  }
  if (!widening.all_finite()) return false;
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t p = 0; p < kPairs; ++p) {
      for (std::size_t v = 0; v < kNr; ++v) simd::store<Arch>(out + at(r, p) + v * kW, acc[r][p][v]);
    }
  }
  return true;
}

/// All columns, of which `first` are done; moves `first` on, and stops before a block with infinities or NaNs.
template <class Arch, class Element, std::size_t kRows, std::size_t kKeyStep>
void pv_runs(const float* weights, const RowRuns& value, std::size_t columns, bool fresh, const float* alpha,
             float* out, std::size_t& first) {
  constexpr std::size_t kPairs = kRows == 1 ? 4 : 1;
  constexpr std::size_t kColumns = kColumnBlock<Arch>;
  const auto go = [&]<std::size_t kAtOnce>() {
    while (first + kAtOnce * kColumns <= columns) {
      float* to = out + first * kScoreStride<Arch>;
      if (!pv_runs_tile<Arch, Element, kRows, kAtOnce, kKeyStep>(weights, value, first, fresh, alpha, to)) return false;
      first += kAtOnce * kColumns;
    }
    return true;
  };
  if constexpr (kPairs > 1) {
    if (!go.template operator()<kPairs>()) return;
  }
  go.template operator()<1>();
}

}  // namespace sdpa::kernels
