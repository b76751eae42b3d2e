// The frame of linear attention, in the same memory as that of attention. web/linear/frame.js writes it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sdpa/linear.hpp"

namespace sdpa::binding {

/// Numbers in the order in which they lie. A pointer of 0: absent.
enum class LinearField : std::uint8_t {
  kQuery,
  kKey,
  kValue,
  kDecay,
  kBeta,
  kStep,
  kQueryDtype,
  kKeyDtype,
  kValueDtype,
  kDecayDtype,
  kBetaDtype,
  kStepDtype,
  kRate,
  kSkip,
  kKeyMask,
  kState,
  kNextState,
  kOut,
  kBatch,
  kHeads,
  kKeyHeads,
  kStates,
  kSeqlenQ,
  kSeqlenKv,
  kHeadDim,
  kHeadDimV,
  kDecayColumns,
  kBetaHeads,
  kLayout,
  kCausal,
  kNormalised,
  kScale,
  kEpsilon,
  kChunk,
  kWorkspace,
  kWorkspaceBytes,
  // Of a backward call.
  kDOut,
  kDNextState,
  kDQuery,
  kDKey,
  kDValue,
  kDDecay,
  kDStep,
  kDRate,
  kDSkip,
  kDState,
};

struct LinearCall {
  LinearTensors tensors;
  LinearOptions options;
  std::span<std::byte> workspace;
};

/// Decodes a frame. Values are not judged here, linear_attention() does that.
LinearCall decode_linear(const double* frame);

/// The gradients of a backward call, whose sizes are those of `tensors`.
LinearGradients decode_linear_gradients(const double* frame, const LinearTensors& tensors);

}  // namespace sdpa::binding
