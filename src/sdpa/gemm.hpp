// Products of float32 matrices: the projections of a multi-head layer and their gradients.
//
//   c = a b + bias,  or  c += a b
//
// A layer computes y = x W^T + b with W of (outputs, inputs), or y = x W + b with W of (inputs, outputs); going back,
// dx = dy W, dW = dy^T x. Transposed operands are read as they lie. A matrix that is used often, such as W, can be kept
// packed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sdpa/attention.hpp"
#include "sdpa/status.hpp"

namespace sdpa {

/// How a matrix lies in memory.
enum class MatrixForm : std::uint8_t {
  kRows,           // row by row, element (i, j) at i * stride + j
  kColumns,        // column by column, element (i, j) at j * stride + i: the transpose of a matrix in rows
  kPacked,         // as gemm_pack() leaves it; for b
  kPackedColumns,  // the transpose of a packed matrix; for b
};

struct MatrixView {
  const float* data = nullptr;
  std::size_t stride = 0;  // counts where the form has one
  MatrixForm form = MatrixForm::kRows;
};

struct GemmArguments {
  MatrixView a;                 // (rows, inner)
  MatrixView b;                 // (inner, columns)
  const float* bias = nullptr;  // optional (columns), added to every row; not together with `accumulate`
  float* c = nullptr;           // (rows, columns)
  std::size_t c_stride = 0;     // from one row to the next
  bool accumulate = false;      // adds to c instead of overwriting it
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t inner = 0;
};

/// Bytes of a packed matrix.
WorkspaceSize gemm_packed_bytes(std::size_t inner, std::size_t columns);

/// Packs b (inner, columns) into `to`, gemm_packed_bytes() bytes. With inner = 0 or columns = 0 there is nothing to do.
Status gemm_pack(const MatrixView& b, std::size_t inner, std::size_t columns, std::span<float> to);

/// Bytes of scratch memory that gemm() needs for these arguments. Validates them as gemm() does.
WorkspaceSize gemm_workspace_bytes(const GemmArguments& arguments);

/// The product. An element's terms are added in an order that depends on `inner` alone, so its bits are the same for
/// any form of the operands and any cut into calls by rows or columns. c must not overlap the operands. `workspace` as
/// for attention(). Anything but kOk: nothing was written.
Status gemm(const GemmArguments& arguments, std::span<std::byte> workspace);

}  // namespace sdpa
