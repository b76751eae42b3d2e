// The exponential of the sink's gradient: x = k ln 2 + r with |r| <= ln 2 / 2, and e^x = 2^k (1 + r + r^2 / 2! + ... ),
// of which what is left out after r^10 is below 2^-40. The C library's is exact to the last bit, of which the float32
// log-sum-exp in the argument leaves nothing, and brings a table of 2 KB.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace sdpa::core {

/// e^x, relative error at most 2^-39; 0 below -708, where it is not a normal number, and infinity above 709.
inline double exp_of(double x) {
  if (std::isnan(x)) return x;
  if (x < -708.0) return 0.0;
  if (x > 709.0) return std::numeric_limits<double>::infinity();
  const int k = static_cast<int>(x * 1.4426950408889634 + (x < 0 ? -0.5 : 0.5));
  // ln 2 in two parts: the product with the first is exact.
  const double r = (x - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33;
  double sum = 1.0;
  for (int n = 10; n > 0; --n) sum = 1.0 + sum * r / n;
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);
}

}  // namespace sdpa::core
