// What linear attention hands from the rules to the kernels: one head's state and the rows that write to and read from
// it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sdpa/tensor_view.hpp"

namespace sdpa::kernels {

/// Rows of one or more heads; strides count elements. data = nullptr where absent.
struct LinearRows {
  const void* data;
  DType dtype;
  std::size_t stride;
  std::size_t head_stride;
};

/// What the size of a workspace depends on.
struct LinearShape {
  std::size_t head_dim;
  std::size_t head_dim_v;
  std::size_t readers;        // query heads of the state
  std::size_t decay_columns;  // 0 (none), 1 or head_dim
  std::size_t chunk;          // tokens that are brought in at a time, 1 or more
  bool normalised;
};

/// See LinearTensors and LinearOptions in sdpa/linear.hpp.
struct LinearHead {
  LinearShape shape;
  LinearRows query;
  LinearRows key;
  LinearRows value;
  LinearRows decay;  // decay_columns of them; where step is given: step
  LinearRows beta;
  bool steps;  // decay holds steps: the log of the decay is rate times it, and it multiplies the value
  float rate;
  float skip;
  const std::uint8_t* key_mask;
  const float* state;
  float* next_state;
  float* out;
  std::size_t out_stride;
  std::size_t out_head_stride;
  std::size_t queries;
  std::size_t keys;
  float scale;
  float epsilon;
  bool causal;
};

/// See LinearGradients in sdpa/linear.hpp. `forward` says what the forward pass was (its out and next_state are not
/// used).
struct LinearBackward {
  LinearHead forward;
  const float* d_out;
  std::size_t d_out_stride;
  std::size_t d_out_head_stride;
  const float* d_state;  // nullptr: 0
  float* d_query;
  std::size_t d_query_stride;
  std::size_t d_query_head_stride;
  bool add_query;  // another state has begun the gradient
  float* d_key;
  std::size_t d_key_stride;
  bool add_key;
  float* d_value;
  std::size_t d_value_stride;
  float* d_decay;  // rows of decay_columns; that of the steps where there are such
  std::size_t d_decay_stride;
  double* d_rate;  // added to, as d_skip
  double* d_skip;
  float* d_first_state;  // nullptr: not wanted
};

}  // namespace sdpa::kernels
