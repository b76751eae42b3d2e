// How far a result may be from the oracle: a bound from the sizes of what is added up, so that it holds for any small
// problem. How exact the results are, the tests of the kernels measure; a fuzzer looks for numbers of something else.
#pragma once

#include <cstddef>
#include <vector>

#include "support/gradients.hpp"
#include "support/kernels.hpp"

namespace sdpa::fuzzing {

using testing::Problem;
using Exact = reference::Result<double>;

struct Bounds {
  double score = 0;   // most by which a score may be off
  double weight = 0;  // most by which a weight may be, as a part of it
  double value = 0;   // largest |value|, over what dropout leaves
};
Bounds bounds_of(const Problem& problem, const Exact& exact);

// Whether `actual` is within `limit` of `exact`; of infinities and NaN, whether it is the same.
bool is_close(double exact, double actual, double limit);

// Outputs that are there, with the oracle's. Rows that see nothing have to be exactly 0.
bool outputs_are_close(const Problem& problem, const Exact& exact, const testing::Actual& actual, ScoresStage stage);

// Whether they are finite wherever the oracle and the plain float32 computation are.
bool outputs_are_finite(const testing::Expected& expected, const testing::Actual& actual);

// Terms are what each gradient would be if none of them cancelled; where there are none it has to be exactly 0.
bool gradients_are_close(const Bounds& bounds, const reference::Gradients<double>& exact,
                         const reference::Gradients<double>& terms, const reference::Gradients<float>& actual);

}  // namespace sdpa::fuzzing
