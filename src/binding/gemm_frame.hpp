// The frame of a matrix product: fewer numbers than a call for attention has, in the same memory. web/layers/gemm.js
// writes it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "binding/reader.hpp"
#include "sdpa/gemm.hpp"

namespace sdpa::binding {

/// Numbers in the order in which they lie.
enum class GemmField : std::uint8_t {
  kA,
  kAStride,
  kAForm,
  kB,
  kBStride,
  kBForm,
  kBias,
  kC,
  kCStride,
  kAccumulate,
  kRows,
  kColumns,
  kInner,
  kWorkspace,
  kWorkspaceBytes,
};

struct GemmFrame {
  GemmArguments arguments;
  std::span<std::byte> workspace;
};

inline GemmFrame decode_gemm(const double* frame) {
  const FrameReader<GemmField> f(frame);
  const auto matrix = [&f](GemmField data, GemmField stride, GemmField form) {
    return MatrixView{f.pointer<const float>(data), f.size(stride), f.choice<MatrixForm>(form)};
  };
  GemmFrame g;
  g.arguments = {matrix(GemmField::kA, GemmField::kAStride, GemmField::kAForm),
                 matrix(GemmField::kB, GemmField::kBStride, GemmField::kBForm),
                 f.pointer<const float>(GemmField::kBias),
                 f.pointer<float>(GemmField::kC),
                 f.size(GemmField::kCStride),
                 f.flag(GemmField::kAccumulate),
                 f.size(GemmField::kRows),
                 f.size(GemmField::kColumns),
                 f.size(GemmField::kInner)};
  g.workspace = {f.pointer<std::byte>(GemmField::kWorkspace), f.size(GemmField::kWorkspaceBytes)};
  return g;
}

}  // namespace sdpa::binding
