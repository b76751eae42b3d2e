// The rules of linear attention, and what a call means for each of its states.
#pragma once

#include <cstddef>

#include "core/extents.hpp"
#include "kernels/kernel_table.hpp"
#include "sdpa/linear.hpp"

namespace sdpa::core {

/// Sizes of a call.
struct LinearSizes {
  std::size_t batch;
  std::size_t heads;  // of query
  std::size_t key_heads;
  std::size_t states;     // heads of value
  std::size_t out_heads;  // whichever are more
  std::size_t readers;    // query heads of a state
  std::size_t queries;
  std::size_t keys;
  std::size_t head_dim;
  std::size_t head_dim_v;
  std::size_t columns;  // of a state

  LinearSizes(const LinearTensors& tensors, const LinearOptions& options);
  Extents out_extents() const { return {batch, out_heads, queries, head_dim_v}; }
  bool no_states() const { return batch == 0 || states == 0; }
  /// The key head that writes a state.
  std::size_t key_head(std::size_t state) const { return state / (states / key_heads); }
  /// The query head that reads a state first.
  std::size_t first_reader(std::size_t state) const {
    return heads >= states ? state * readers : state / (states / heads);
  }
  /// Floats before a state, where all of them lie one behind the other.
  std::size_t state_offset(std::size_t b, std::size_t state) const { return (b * states + state) * head_dim * columns; }
};

/// Everything but out and the states.
Status validate_linear(const LinearTensors& tensors, const LinearOptions& options);

/// out or a gradient, which have to have these extents: else `otherwise`.
template <class View>
Status validate_result(const View& result, const Extents& extents, StatusCode otherwise) {
  if (result.extents() != extents) return otherwise;
  if (is_missing(result)) return StatusCode::kMissingTensor;
  return columns_are_contiguous(result) ? StatusCode::kOk : StatusCode::kColumnStride;
}

/// What the workspace depends on, for a call that is valid.
kernels::LinearShape linear_shape(const kernels::KernelTable& table, const LinearTensors& tensors,
                                  const LinearOptions& options);

/// State `state` of batch entry `batch`.
kernels::LinearHead linear_head(const LinearTensors& tensors, const LinearOptions& options,
                                const kernels::LinearShape& shape, std::size_t batch, std::size_t state);

/// Whether a workspace of `times` that of a forward call, generously, and `more` floats has an address.
bool workspace_fits(const kernels::LinearShape& shape, double times, double more);

}  // namespace sdpa::core
