#include "sdpa/gemm.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/dispatch.hpp"
#include "core/validate.hpp"

namespace sdpa::core {
namespace {

constexpr std::size_t kMostFloats = std::numeric_limits<std::size_t>::max() / sizeof(float);

/// Whether n rows of `length`, `stride` apart, have an address each. Where there is but one, the stride does not count.
Status validate_rows(std::size_t n, std::size_t length, std::size_t stride) {
  if (n == 0 || length == 0) return StatusCode::kOk;
  if (length > kMostFloats) return StatusCode::kSizeOverflow;
  if (n == 1) return StatusCode::kOk;
  if (stride < length) return StatusCode::kColumnStride;
  return stride > (kMostFloats - length) / (n - 1) ? StatusCode::kSizeOverflow : StatusCode::kOk;
}

/// Floats of a packed matrix: whole panels.
Status packed_floats(const kernels::KernelTable& table, std::size_t inner, std::size_t columns, std::size_t& floats) {
  const std::size_t panel = 2 * table.width;
  if (columns > kMostFloats - panel) return StatusCode::kSizeOverflow;
  const std::size_t wide = kernels::round_up(columns, panel);
  if (inner != 0 && wide > kMostFloats / inner) return StatusCode::kSizeOverflow;
  floats = inner * wide;
  return StatusCode::kOk;
}

Status validate_operand(const kernels::KernelTable& table, const MatrixView& matrix, std::size_t rows,
                        std::size_t columns) {
  if (rows == 0 || columns == 0) return StatusCode::kOk;
  if (matrix.data == nullptr) return StatusCode::kMissingTensor;
  std::size_t floats = 0;
  switch (matrix.form) {
    case MatrixForm::kRows:
      return validate_rows(rows, columns, matrix.stride);
    case MatrixForm::kColumns:
      return validate_rows(columns, rows, matrix.stride);
    case MatrixForm::kPacked:
      return packed_floats(table, rows, columns, floats);
    case MatrixForm::kPackedColumns:
      return packed_floats(table, columns, rows, floats);
  }
  return StatusCode::kInvalidDtype;
}

Status validate(const kernels::KernelTable& table, const GemmArguments& g) {
  if (g.rows == 0 || g.columns == 0) return StatusCode::kOk;
  if (g.c == nullptr) return StatusCode::kMissingTensor;
  if (g.bias != nullptr && g.accumulate) return StatusCode::kInvalidRequest;
  if (g.a.form != MatrixForm::kRows && g.a.form != MatrixForm::kColumns) return StatusCode::kInvalidDtype;
  Status status = validate_operand(table, g.a, g.rows, g.inner);
  if (status.ok()) status = validate_operand(table, g.b, g.inner, g.columns);
  if (status.ok()) status = validate_rows(g.rows, g.columns, g.c_stride);
  // The workspace: a piece of b, packed, and less than as much again.
  std::size_t floats = 0;
  if (status.ok()) status = packed_floats(table, 2 * table.gemm_inner, g.columns, floats);
  return status;
}

kernels::Matrix matrix_of(const MatrixView& m) {
  return {m.data, m.stride, static_cast<kernels::MatrixForm>(static_cast<std::uint8_t>(m.form))};
}

kernels::GemmCall call_of(const GemmArguments& g) {
  kernels::GemmCall call{matrix_of(g.a), matrix_of(g.b), g.bias,    g.c,    std::max(g.c_stride, g.columns),
                         g.accumulate,   g.rows,         g.columns, g.inner};
  if (g.inner == 0) call.a = call.b = {nullptr, 0, kernels::MatrixForm::kRows};
  return call;
}

}  // namespace

WorkspaceSize gemm_packed_bytes(const kernels::KernelTable& table, std::size_t inner, std::size_t columns) {
  std::size_t floats = 0;
  const Status status = packed_floats(table, inner, columns, floats);
  return {status, floats * sizeof(float)};
}

Status gemm_pack(const kernels::KernelTable& table, const MatrixView& b, std::size_t inner, std::size_t columns,
                 std::span<float> to) {
  std::size_t floats = 0;
  Status status = packed_floats(table, inner, columns, floats);
  if (status.ok()) status = validate_operand(table, b, inner, columns);
  if (!status.ok()) return status;
  if (to.size() < floats) return StatusCode::kWorkspaceTooSmall;
  if (inner != 0 && columns != 0) table.gemm_pack(matrix_of(b), inner, columns, to.data());
  return StatusCode::kOk;
}

WorkspaceSize gemm_workspace_bytes(const kernels::KernelTable& table, const GemmArguments& g) {
  const Status status = validate(table, g);
  return {status, status.ok() ? table.gemm_workspace_floats(call_of(g)) * sizeof(float) : 0};
}

Status gemm(const kernels::KernelTable& table, const GemmArguments& g, std::span<std::byte> workspace) {
  const WorkspaceSize size = gemm_workspace_bytes(table, g);
  if (!size.status.ok()) return size.status;
  if (g.rows == 0 || g.columns == 0) return StatusCode::kOk;
  const Status room = validate_workspace(workspace, size.bytes);
  if (!room.ok()) return room;
  table.gemm(call_of(g), reinterpret_cast<float*>(workspace.data()));
  return StatusCode::kOk;
}

}  // namespace sdpa::core

namespace sdpa {

WorkspaceSize gemm_packed_bytes(std::size_t inner, std::size_t columns) {
  return core::gemm_packed_bytes(*core::available_kernels().front(), inner, columns);
}

Status gemm_pack(const MatrixView& b, std::size_t inner, std::size_t columns, std::span<float> to) {
  return core::gemm_pack(*core::available_kernels().front(), b, inner, columns, to);
}

WorkspaceSize gemm_workspace_bytes(const GemmArguments& arguments) {
  return core::gemm_workspace_bytes(*core::available_kernels().front(), arguments);
}

Status gemm(const GemmArguments& arguments, std::span<std::byte> workspace) {
  return core::gemm(*core::available_kernels().front(), arguments, workspace);
}

}  // namespace sdpa
