// The door between rules and kernels: a table of function pointers per instruction set, and the plain structs that they
// take. core/ includes this header and no other of kernels/.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sdpa/tensor_view.hpp"

namespace sdpa::kernels {

/// Rows of a matrix in one of the storage types; `stride` counts elements between rows, columns are contiguous.
struct InputRows {
  const void* data;
  DType dtype;
  std::size_t stride;
};

/// A (head, row, column) operand that may be repeated along any dimension (stride 0); data = nullptr where absent.
template <class T>
struct BroadcastRows {
  const T* data;
  std::size_t head_stride;
  std::size_t row_stride;
  std::size_t column_stride;
};

/// What to write of the scores, see ScoresStage in sdpa/options.hpp (the values are the same).
enum class Stage : std::uint8_t { kNone, kScaled, kCapped, kBiased, kWeights };

/// One block of query rows that share a key head: rows of one query head, or all rows of a few heads stacked, so that
/// the keys and values are read once for all of them. Row r is row r % rows_per_head of head r / rows_per_head; strides
/// count elements between heads and between rows. Row r may attend to keys key_begin[r] <= j < key_end[r], less those
/// that the mask excludes and those whose bias is -infinity.
struct AttentionBlock {
  InputRows query;  // `rows` rows
  std::size_t query_head_stride;
  InputRows
      key;  // `num_keys` rows; rows outside every [key_begin, key_end) are read for scores of kScaled, kCapped only
  InputRows value;
  float* out;
  std::size_t out_head_stride;
  std::size_t out_stride;
  float* lse;  // nullptr or `rows` numbers
  std::size_t lse_head_stride;
  std::size_t lse_stride;
  float* scores;  // nullptr or `rows` rows of num_keys
  std::size_t scores_head_stride;
  std::size_t scores_stride;
  Stage stage;
  BroadcastRows<std::uint8_t> mask;
  BroadcastRows<void> bias;
  DType bias_dtype;
  const std::size_t* key_begin;
  const std::size_t* key_end;
  std::size_t rows;  // 1 ... KernelTable::rows_per_block
  std::size_t rows_per_head;
  std::size_t num_keys;
  std::size_t head_dim;
  std::size_t head_dim_v;
  double scale;
  double softcap;  // 0 = off
  bool streams;    // the keys and values of the whole call are more than the caches hold from one call to the next

  /// Offset of row r of an operand with these strides.
  constexpr std::size_t row_offset(std::size_t r, std::size_t head_stride, std::size_t row_stride) const {
    if (r < rows_per_head) return r * row_stride;  // saves the division where heads are not stacked
    return r / rows_per_head * head_stride + r % rows_per_head * row_stride;
  }
};

/// What the size of a workspace depends on.
struct WorkspaceShape {
  std::size_t head_dim;
  std::size_t head_dim_v;
  bool wide_key;    // key is not float32
  bool wide_value;  // value is not float32
};

struct KernelTable {
  const char* name;
  std::size_t width;           // float32 lanes of a vector
  bool fused;                  // multiply-add rounds once (a claim; madd() shows it)
  std::size_t rows_per_block;  // most query rows of one block
  std::size_t keys_per_tile;

  /// Floats of workspace for one block. The caller checks that the sizes do not overflow.
  std::size_t (*workspace_floats)(const WorkspaceShape&);
  /// Computes one block. `workspace` is 64-byte aligned.
  void (*attention_block)(const AttentionBlock&, float* workspace);

  /// a * b + c in every lane, as the kernels compute it; lane 0 comes back. For tests.
  float (*madd)(float a, float b, float c);
  /// exp(x) for x <= 0 as the softmax computes it, and tanh(x) as the softcap does; n numbers. For tests.
  void (*exp)(const float* x, float* y, std::size_t n);
  void (*tanh)(const float* x, float* y, std::size_t n);
  /// Runs `steps` steps of independent multiply-adds held in registers; returns the number of FLOPs. For benches.
  double (*peak_flops)(std::size_t steps);
};

}  // namespace sdpa::kernels

// The tables themselves, one per file of arch/; CMake decides which exist (SDPA_ARCH_*).
namespace sdpa::arch {
extern const kernels::KernelTable scalar;
extern const kernels::KernelTable sse42;
extern const kernels::KernelTable avx2_fma;
extern const kernels::KernelTable avx512;
extern const kernels::KernelTable neon64;
extern const kernels::KernelTable wasm;
}  // namespace sdpa::arch
