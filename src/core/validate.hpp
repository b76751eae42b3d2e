// Every rule about arguments, in one place.
#pragma once

#include "sdpa/attention.hpp"

namespace sdpa::core {

/// kOk, or the first rule that the arguments break. Reads lengths and offsets, no tensor.
Status validate(const AttentionTensors& tensors, const AttentionOptions& options);

}  // namespace sdpa::core
