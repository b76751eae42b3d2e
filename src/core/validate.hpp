// Every rule about arguments, in one place.
#pragma once

#include <cstddef>
#include <span>

#include "sdpa/attention.hpp"

namespace sdpa::core {

/// kOk, or the first rule that the arguments break. Reads lengths and offsets, no tensor.
Status validate(const AttentionTensors& tensors, const AttentionOptions& options);

/// A workspace of so many bytes at least, aligned, or kWorkspaceTooSmall.
Status validate_workspace(std::span<std::byte> workspace, std::size_t bytes);

}  // namespace sdpa::core
