// Where the pieces of one block lie in its workspace. Every piece starts at a multiple of 64 bytes.
#pragma once

#include <cstddef>

#include "kernels/kernel_table.hpp"
#include "kernels/tile_size.hpp"

namespace sdpa::kernels {

template <class Arch>
struct AttentionWorkspace {
  static constexpr std::size_t kRows = kScoreStride<Arch>;

  float* queries;     // [panel][head_dim][2 vectors]
  float* scores;      // [kBc][kRows]: scores, then weights
  float* out;         // [column block][kRows][2 vectors]: the unnormalised accumulator
  float* tail;        // [kBc][2 vectors]: last columns of V, where head_dim_v is not a multiple of 2 vectors
  float* keys;        // [kBc][head_dim] where the key is not float32 or not one piece
  float* values;      // [kBc][head_dim_v], likewise
  float* key_scales;  // [kBc] and two vectors, of int8
  float* value_scales;
  float* m;  // [kRows] each
  float* l;
  float* alpha;

  static std::size_t floats(const WorkspaceShape& shape) { return AttentionWorkspace().lay_out(nullptr, shape); }
  static AttentionWorkspace at(float* base, const WorkspaceShape& shape) {
    AttentionWorkspace workspace;
    workspace.lay_out(base, shape);
    return workspace;
  }

 private:
  AttentionWorkspace() = default;

  std::size_t lay_out(float* base, const WorkspaceShape& shape) {
    Pieces pieces{base};
    queries = pieces.take(kRows * shape.head_dim);
    scores = pieces.take(kBc * kRows);
    out = pieces.take(kRows * round_up(shape.head_dim_v, kColumnBlock<Arch>));
    tail = pieces.take(kBc * tail_stride<Arch>(shape.head_dim_v));
    keys = pieces.take(shape.wide_key ? kBc * shape.head_dim : 0);
    values = pieces.take(shape.wide_value ? kBc * shape.head_dim_v : 0);
    key_scales = pieces.take(kBc + 2 * simd::kWidth<Arch>);
    value_scales = pieces.take(kBc + 2 * simd::kWidth<Arch>);
    m = pieces.take(kRows);
    l = pieces.take(kRows);
    alpha = pieces.take(kRows);
    return pieces.used;
  }
};

inline WorkspaceShape workspace_shape(const AttentionBlock& block) {
  const bool pieces = block.map.active();
  return {block.head_dim, block.head_dim_v, pieces || block.key.dtype != DType::kFloat32,
          pieces || block.value.dtype != DType::kFloat32, block.query.dtype != DType::kFloat32};
}

}  // namespace sdpa::kernels
