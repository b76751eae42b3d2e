// The reference's computation of some rows alone, with the same operations in the same order, so that the rows of a
// long call need not be computed all, nor its whole matrix of scores be held. A test compares the bits with the
// reference's.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "reference/attention.hpp"

namespace sdpa::grids {

// Rows of every batch row and query head, in this order: index (b * num_heads + h) * picks + n is row picks[n].
template <class Real>
struct RowsOf {
  std::vector<Real> out;  // (B, Hq, picks, Dv)
  std::vector<Real> lse;  // (B, Hq, picks)
};

struct ChosenRows {
  RowsOf<double> exact;
  RowsOf<float> plain;
};

ChosenRows chosen_rows(const reference::Problem& problem, std::span<const std::size_t> picks);

}  // namespace sdpa::grids
