// The rules of linear attention, and what a call means for each of its states.
#pragma once

#include <cstddef>

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
  bool no_states() const { return batch == 0 || states == 0; }
};

Status validate_linear(const LinearTensors& tensors, const LinearOptions& options);

/// What the workspace depends on, for a call that is valid.
kernels::LinearShape linear_shape(const kernels::KernelTable& table, const LinearTensors& tensors,
                                  const LinearOptions& options);

/// State `state` of batch entry `batch`.
kernels::LinearHead linear_head(const LinearTensors& tensors, const LinearOptions& options,
                                const kernels::LinearShape& shape, std::size_t batch, std::size_t state);

/// The query head that reads a state first.
std::size_t first_reader(const LinearSizes& sizes, std::size_t state);

/// A workspace of so many bytes, or that it is too small.
Status validate_workspace(std::span<std::byte> workspace, std::size_t bytes);

}  // namespace sdpa::core
