// Pieces of a problem as problems of their own: what a worker is given.
#pragma once

#include <cstddef>
#include <vector>

#include "support/problems.hpp"

namespace sdpa::testing {

// Query rows first ... first + count of every head, at the positions that they have in the whole.
Problem query_rows(const Problem& whole, std::size_t first, std::size_t count);

// Head h of batch row b, alone.
Problem one_head(const Problem& whole, std::size_t b, std::size_t h);

// Rows first ... first + count of every head of a whole result with `width` numbers a row.
std::vector<float> rows_of(const std::vector<float>& values, const Problem& whole, std::size_t first, std::size_t count,
                           std::size_t width);

}  // namespace sdpa::testing
