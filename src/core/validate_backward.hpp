// The rules of a backward call, beyond those of its forward pass.
#pragma once

#include "sdpa/gradients.hpp"

namespace sdpa::core {

/// What the forward pass read.
AttentionTensors forward_inputs(const BackwardTensors& tensors);

/// Every rule of attention_backward(), its workspace apart.
Status validate_backward(const BackwardTensors& tensors, const AttentionOptions& options);

}  // namespace sdpa::core
