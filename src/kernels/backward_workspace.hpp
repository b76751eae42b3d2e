// Where the pieces of the backward pass lie in its workspace. Every piece starts at a multiple of 64 bytes.
#pragma once

#include <cstddef>

#include "kernels/kernel_table.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

template <class Arch>
struct BackwardWorkspace {
  static constexpr std::size_t kRows = kScoreStride<Arch>;

  float* d_key;       // [column block][kBc][2 vectors]: what all blocks add to
  float* d_value;     // likewise
  float* queries;     // packed, [panel][head_dim][2 vectors]
  float* d_outs;      // packed, [panel][head_dim_v][2 vectors]
  float* weights;     // [kBc][kRows]: scores, then weights
  float* d_scores;    // [kBc][kRows]
  float* slopes;      // [kBc][kRows]: derivative of the softcap
  float* d_query;     // [column block][kRows][2 vectors]
  float* keys;        // [kBc][head_dim] where the key is not float32 or not one piece
  float* values;      // [kBc][head_dim_v], likewise
  float* query_rows;  // [kRows][head_dim] where the query is not float32
  float* key_tail;    // [kBc][2 vectors]: last columns where they are no block
  float* query_tail;  // [kRows][2 vectors]
  float* d_out_tail;  // [kRows][2 vectors]
  float* shift;       // kRows: lse, +infinity in rows that see nothing
  float* delta;       // kRows

  static std::size_t floats(const WorkspaceShape& shape) { return BackwardWorkspace().lay_out(nullptr, shape); }
  static BackwardWorkspace at(float* base, const WorkspaceShape& shape) {
    BackwardWorkspace workspace;
    workspace.lay_out(base, shape);
    return workspace;
  }

 private:
  BackwardWorkspace() = default;

  std::size_t lay_out(float* base, const WorkspaceShape& shape) {
    Pieces pieces{base};
    const std::size_t columns = round_up(shape.head_dim, kColumnBlock<Arch>);
    const std::size_t columns_v = round_up(shape.head_dim_v, kColumnBlock<Arch>);
    d_key = pieces.take(kBc * columns);
    d_value = pieces.take(kBc * columns_v);
    queries = pieces.take(kRows * shape.head_dim);
    d_outs = pieces.take(kRows * shape.head_dim_v);
    weights = pieces.take(kBc * kRows);
    d_scores = pieces.take(kBc * kRows);
    slopes = pieces.take(kBc * kRows);
    d_query = pieces.take(kRows * columns);
    keys = pieces.take(shape.wide_key ? kBc * shape.head_dim : 0);
    values = pieces.take(shape.wide_value ? kBc * shape.head_dim_v : 0);
    query_rows = pieces.take(shape.wide_query ? kRows * shape.head_dim : 0);
    key_tail = pieces.take(kBc * tail_stride<Arch>(shape.head_dim));
    query_tail = pieces.take(kRows * tail_stride<Arch>(shape.head_dim));
    d_out_tail = pieces.take(kRows * tail_stride<Arch>(shape.head_dim_v));
    shift = pieces.take(kRows);
    delta = pieces.take(kRows);
    return pieces.used;
  }
};

}  // namespace sdpa::kernels
