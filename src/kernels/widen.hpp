// Rows of 8 and 16 bits to float32, whole vectors at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/pack.hpp"
#include "simd/widen.hpp"

namespace sdpa::kernels {

/// to[c] = from[c], c < n.
template <class Arch>
SDPA_INLINE void widen_int8(const std::int8_t* from, std::size_t n, float* to) {
  constexpr std::size_t kStep = simd::kInt8Step<Arch>;
  std::size_t c = 0;
  for (; c + kStep <= n; c += kStep) simd::widen_int8<Arch>(from + c, to + c);
  for (; c < n; ++c) to[c] = static_cast<float>(from[c]);
}

/// to[c] = from[c], c < n, exactly.
template <class Arch>
SDPA_INLINE void widen_float16(const std::uint16_t* from, std::size_t n, float* to) {
  const std::size_t whole = n - n % simd::kFloat16Step<Arch>;
  // A row with infinities or NaNs is rare and goes one by one.
  const bool finite = simd::widen_finite_float16<Arch>(from, whole, to);
  for (std::size_t c = finite ? whole : 0; c < n; ++c) to[c] = float16_to_float(from[c]);
}

}  // namespace sdpa::kernels
