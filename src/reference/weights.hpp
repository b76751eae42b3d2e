// Chosen weights and summaries of weights, from the whole matrix: the oracle for what the library computes without it.
//
//   P = exp(s - lse), 0 where a key takes no part
//
// In double this is the softmax; in float it is the plain float32 computation of this formula.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/attention.hpp"

namespace sdpa::reference {

enum class Summary { kRows, kColumns, kTopK, kStats, kSum, kMean, kMax };

struct Choice {
  Summary summary = Summary::kRows;
  std::vector<std::size_t> heads;  // in the order of the result
  std::vector<std::size_t> picks;  // rows or columns
  std::size_t top_k = 0;
  std::vector<std::size_t> row_cells;     // starts of cells, and the end
  std::vector<std::size_t> column_cells;  // likewise
};

// Shapes as in sdpa/weights.hpp. Indices of the largest weights; entropy in nats, over the keys.
template <class Real>
struct Summarised {
  std::vector<Real> values;
  std::vector<std::int64_t> indices;
  std::vector<Real> entropy;
};

// (B, Hq, L, S).
template <class Real>
std::vector<Real> weights(const Result<Real>& result);

// `result` is that of the problem.
template <class Real>
Summarised<Real> summarise(const Problem& problem, const Result<Real>& result, const Choice& choice);

}  // namespace sdpa::reference
