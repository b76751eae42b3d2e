// The largest errors of a kernel and of the plain float32 computation over the same rows.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "grids/call.hpp"
#include "grids/oracle.hpp"

namespace sdpa::grids {

// Errors are infinite where one number is finite, or NaN, and the other not, and where a row that sees nothing is not
// 0.
struct Errors {
  double out = 0;
  double plain_out = 0;
  double lse = 0;
  double plain_lse = 0;
  double largest_lse = 1;
  double rounding = 0;  // 2 max |(x + 0.3 - 0.3) - x| over the exact outputs x: twice the rounding of an addition
  std::string where;    // of `out`

  // Rows of one more call.
  void add(const Problem& p, const Outputs& outputs, std::span<const std::size_t> picks, const ChosenRows& rows);
};

}  // namespace sdpa::grids
