// What weights ask of a call: the rules on the request, what it counts as, and the memory that it needs.
#pragma once

#include <cstddef>

#include "kernels/kernel_table.hpp"
#include "sdpa/weights.hpp"

namespace sdpa::core {

/// A call to attention() of the same scores, to be looked at and not run: keys stand for the values, the query's
/// address for that of the output.
AttentionTensors forward_call(const WeightsTensors& tensors);

/// Cells of rows and of keys that are summed.
std::size_t row_cells(const WeightsRequest& request);
std::size_t column_cells(const WeightsTensors& tensors, const WeightsRequest& request);

/// kOk, or the first rule that the arguments break.
Status validate_weights(const WeightsTensors& tensors, const WeightsRequest& request, const AttentionOptions& options);

struct WeightsPlan {
  std::size_t bounds_bytes = 0;
  std::size_t cells_bytes = 0;  // one double for each cell of a piece, and for each of a row of cells
  std::size_t kernel_bytes = 0;
  std::size_t bytes() const { return bounds_bytes + cells_bytes + kernel_bytes; }
};

/// Arguments have passed validate_weights(). kSizeOverflow where the workspace does not fit std::size_t.
Status make_weights_plan(const kernels::KernelTable& table, const WeightsTensors& tensors,
                         const WeightsRequest& request, WeightsPlan& plan);

}  // namespace sdpa::core
