// The frame of a matrix product: fewer numbers than a call for attention has, in the same memory. web/layers/gemm.js
// writes it.
#pragma once

#include <cstddef>
#include <cstdint>

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
  const auto number = [frame](GemmField field) { return frame[static_cast<std::size_t>(field)]; };
  const auto size = [number](GemmField field) { return static_cast<std::size_t>(number(field)); };
  const auto address = [number](GemmField field) { return static_cast<std::uintptr_t>(number(field)); };
  const auto matrix = [&](GemmField data, GemmField stride, GemmField form) {
    return MatrixView{reinterpret_cast<const float*>(address(data)), size(stride),
                      static_cast<MatrixForm>(static_cast<std::uint8_t>(number(form)))};
  };
  GemmFrame g;
  g.arguments = {matrix(GemmField::kA, GemmField::kAStride, GemmField::kAForm),
                 matrix(GemmField::kB, GemmField::kBStride, GemmField::kBForm),
                 reinterpret_cast<const float*>(address(GemmField::kBias)),
                 reinterpret_cast<float*>(address(GemmField::kC)),
                 size(GemmField::kCStride),
                 number(GemmField::kAccumulate) != 0,
                 size(GemmField::kRows),
                 size(GemmField::kColumns),
                 size(GemmField::kInner)};
  g.workspace = {reinterpret_cast<std::byte*>(address(GemmField::kWorkspace)), size(GemmField::kWorkspaceBytes)};
  return g;
}

}  // namespace sdpa::binding
