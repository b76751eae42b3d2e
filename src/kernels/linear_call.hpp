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

}  // namespace sdpa::kernels
