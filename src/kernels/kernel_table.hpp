// The door between rules and kernels: a table of function pointers per instruction set, and the plain structs that they
// take. core/ includes this header and no other of kernels/.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/linear_call.hpp"
#include "sdpa/tensor_view.hpp"

namespace sdpa::kernels {

constexpr std::size_t round_up(std::size_t n, std::size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// Rows of a matrix in one of the storage types; `stride` counts elements between rows, columns are contiguous.
struct InputRows {
  const void* data;
  DType dtype;
  std::size_t stride;
  std::size_t page_stride;  // elements between pages, see RowMap
  const float* scales;      // kInt8: one per row, laid out as the rows are
};

/// Where the rows of key and value lie: row j in slot j, from ring_begin on in slot ring_begin + (j - ring_begin) %
/// ring_size where that is not 0; with page_size, slot s is row s % page_size of page pages[s / page_size].
struct RowMap {
  const std::int32_t* pages;
  std::size_t page_size;
  std::size_t ring_begin;
  std::size_t ring_size;
  bool active() const { return page_size != 0 || ring_size != 0; }
};

/// What the block behind this one reads and writes, in whatever type, for a kernel that brings it into the caches
/// meanwhile: query, key, value, out.
struct NextBlock {
  struct Piece {
    const char* begin;
    const char* end;
  };
  Piece operands[4];
  bool is_empty() const { return operands[0].begin == nullptr; }
};

/// Rows and keys of a tile of a block mask.
inline constexpr std::size_t kMaskTile = 64;

/// A block mask from the row of the block's row 0 on, see BlockMask in sdpa/options.hpp; tiles = nullptr where absent.
struct BlockMaskRows {
  const std::uint32_t* tiles;
  const std::uint32_t* bits;
  std::size_t head_stride;  // tiles between heads
  std::size_t columns;      // tiles of a row of tiles
  std::size_t first_row;
};

/// Philox dropout of the weights, see Dropout in sdpa/options.hpp; threshold = 0: off.
struct DropoutCells {
  std::uint64_t threshold;  // a word below it drops its cell
  float factor;             // 1 / (1 - probability)
  std::uint32_t seed_low;
  std::uint32_t seed_high;
  std::uint32_t batch;
  std::uint32_t head;  // of the block's first head
  std::uint32_t row;   // of the block's row 0
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
/// count elements between heads and between rows. Row r may attend to keys key_begin[r] <= j < key_end[r], less
/// hole_begin[r] <= j < hole_end[r], lost_begin <= j < lost_end, those of other segments, those that a mask excludes
/// and those whose bias is -infinity.
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
  const float* alibi;            // nullptr or a slope for each head of the block
  const std::int64_t* position;  // of each row on the axis of the keys; where alibi is given
  const float* sinks;            // nullptr or a logit for each head of the block
  BlockMaskRows block_mask;
  const std::int32_t* query_segments;  // nullptr or one for each row of a head
  const std::int32_t* key_segments;    // one for each key
  DropoutCells dropout;
  const std::size_t* key_begin;
  const std::size_t* key_end;
  const std::size_t* hole_begin;  // nullptr: no row has a hole
  const std::size_t* hole_end;
  std::size_t lost_begin;  // keys that a ring has lost
  std::size_t lost_end;
  RowMap map;        // of key and value
  std::size_t rows;  // 1 ... KernelTable::rows_per_block
  std::size_t rows_per_head;
  std::size_t num_keys;
  std::size_t head_dim;
  std::size_t head_dim_v;
  double scale;
  double softcap;  // 0 = off
  NextBlock next;  // zeros where there is none, or none that is small
  bool streams;    // the keys and values of the whole call are more than the caches hold from one call to the next

  /// Offset of row r of an operand with these strides.
  constexpr std::size_t row_offset(std::size_t r, std::size_t head_stride, std::size_t row_stride) const {
    // Saves the division where heads are not stacked, or follow each other.
    if (r < rows_per_head || head_stride == rows_per_head * row_stride) return r * row_stride;
    return r / rows_per_head * head_stride + r % rows_per_head * row_stride;
  }
  /// Head, counted from the block's first, and row of row r.
  constexpr std::size_t head_of(std::size_t r) const { return r < rows_per_head ? 0 : r / rows_per_head; }
  constexpr std::size_t row_of(std::size_t r) const { return r < rows_per_head ? r : r % rows_per_head; }

  /// Whether something other than the rows' intervals and the bias excludes cells.
  constexpr bool has_cells() const {
    return mask.data != nullptr || block_mask.tiles != nullptr || query_segments != nullptr || hole_begin != nullptr ||
           lost_begin < lost_end;
  }
};

/// AttentionBlock::row_offset() of one row after the other, without a division.
class RowOffsets {
 public:
  RowOffsets(const AttentionBlock& block, std::size_t head_stride, std::size_t row_stride)
      : rows_per_head_(block.rows_per_head), head_stride_(head_stride), row_stride_(row_stride) {}

  /// Of the row at hand, and on to the next.
  std::size_t take() {
    const std::size_t offset = offset_;
    offset_ += row_stride_;
    if (++row_ == rows_per_head_) {
      row_ = 0;
      offset_ = head_ += head_stride_;
    }
    return offset;
  }

 private:
  std::size_t rows_per_head_;
  std::size_t head_stride_;
  std::size_t row_stride_;
  std::size_t row_ = 0;
  std::size_t head_ = 0;
  std::size_t offset_ = 0;
};

/// One block of query rows of one head for the backward pass. `attention` says what the forward pass was (its out, lse
/// and scores are not used); rows of d_out, lse and delta are those of the block.
struct BackwardBlock {
  AttentionBlock attention;
  const float* d_out;
  std::size_t d_out_stride;
  const float* lse;  // of the forward pass
  std::size_t lse_stride;
  const float* delta;  // rowsum(d_out * out) less the gradient of lse
  float* d_query;      // added to; times scale it is the gradient
  std::size_t d_query_stride;
  float* d_bias;                  // nullptr or where row 0, key 0 of the bias's gradient is; added to
  std::size_t d_bias_row_stride;  // 0 where it is repeated, as for the column
  std::size_t d_bias_column_stride;
  double* d_alibi;  // nullptr or the sum of dS |p - j|; added to
};

/// Where the gradients of a tile of keys go.
struct BackwardKeys {
  float* d_key;
  std::size_t d_key_stride;
  float* d_value;
  std::size_t d_value_stride;
  std::size_t head_dim;
  std::size_t head_dim_v;
  double scale;
};

/// What is wanted of the weights of a block, see WeightsKind in sdpa/weights.hpp.
enum class WeightsUse : std::uint8_t { kRows, kColumns, kTopK, kStats, kSum, kMax };

/// One block of query rows of one head, of whose weights something is wanted. `attention` says what the forward pass is
/// (its value, out, lse, scores and dropout are not used). Results of the block's rows lie one behind the other.
struct WeightsBlock {
  AttentionBlock attention;
  const float* lse;  // of the forward pass; nullptr: computed
  std::size_t lse_stride;
  WeightsUse use;
  float* values;              // num_keys, num_picks, top_k or 1 a row
  std::int32_t* indices;      // top_k or 1 a row
  float* entropy;             // 1 a row
  const std::int32_t* picks;  // kColumns: keys, ascending
  std::size_t num_picks;
  std::size_t top_k;
  const std::int32_t* row_cells;     // kSum, kMax: starts of cells of rows, from the one of the block's row 0 on
  const std::int32_t* column_cells;  // num_column_cells + 1 starts of cells of keys; nullptr: each key is one
  std::size_t num_column_cells;
  std::size_t first_row;  // the block's row 0 as row_cells count
  double* cells;          // (row cells, num_column_cells); added to
};

/// A matrix operand, see MatrixView in sdpa/gemm.hpp (the forms are the same).
enum class MatrixForm : std::uint8_t { kRows, kColumns, kPacked, kPackedColumns };
struct Matrix {
  const float* data;
  std::size_t stride;
  MatrixForm form;
};

/// c = a b + bias or c += a b, see GemmArguments in sdpa/gemm.hpp. rows and columns are not 0.
struct GemmCall {
  Matrix a;
  Matrix b;
  const float* bias;
  float* c;
  std::size_t c_stride;
  bool accumulate;
  std::size_t rows;
  std::size_t columns;
  std::size_t inner;
};

/// What the size of a workspace depends on.
struct WorkspaceShape {
  std::size_t head_dim;
  std::size_t head_dim_v;
  bool wide_key;    // key is not float32, or not one piece
  bool wide_value;  // value is not float32, or not one piece
  bool wide_query;  // query is not float32: the backward pass has its rows widened
};

/// Pieces of the kernels' arithmetic, for tests and benches.
struct Probes {
  /// a * b + c in every lane, as the kernels compute it; lane 0 comes back.
  float (*madd)(float a, float b, float c);
  /// exp(x) for x <= 0 as the softmax computes it, and tanh(x) as the softcap does; n numbers.
  void (*exp)(const float* x, float* y, std::size_t n);
  void (*tanh)(const float* x, float* y, std::size_t n);
  /// Runs `steps` steps of independent multiply-adds held in registers; returns the number of FLOPs.
  double (*peak_flops)(std::size_t steps);
};

struct KernelTable {
  const char* name;
  std::size_t width;           // float32 lanes of a vector
  bool fused;                  // multiply-add rounds once (a claim; probes->madd() shows it)
  std::size_t rows_per_block;  // most query rows of one block
  std::size_t keys_per_tile;

  /// Floats of workspace for one block. The caller checks that the sizes do not overflow.
  std::size_t (*workspace_floats)(const WorkspaceShape&);
  /// Computes one block. `workspace` is 64-byte aligned.
  void (*attention_block)(const AttentionBlock&, float* workspace);

  /// The backward pass goes by tiles of keys: begin, every block of every query head that shares the keys, end.
  std::size_t (*backward_workspace_floats)(const WorkspaceShape&);
  void (*backward_begin)(const WorkspaceShape&, float* workspace);
  /// Adds what the keys [tile_begin, tile_begin + keys_per_tile) and one block have to do with each other.
  void (*backward_block)(const BackwardBlock&, std::size_t tile_begin, float* workspace);
  /// Writes the gradients of `keys` keys, the tile's.
  void (*backward_end)(const WorkspaceShape&, const BackwardKeys&, std::size_t keys, float* workspace);

  /// Hands one block's weights out. Its workspace is that of attention_block() with a head_dim_v of 0.
  void (*weights_block)(const WeightsBlock&, float* workspace);

  std::size_t gemm_inner;  // terms of a sum that is kept in registers
  std::size_t (*gemm_workspace_floats)(const GemmCall&);
  void (*gemm)(const GemmCall&, float* workspace);
  /// Packs (inner, columns) into panels of two vectors of columns.
  void (*gemm_pack)(const Matrix& b, std::size_t inner, std::size_t columns, float* to);

  std::size_t linear_chunk;  // tokens that linear attention brings in at a time, where the caller does not say
  std::size_t (*linear_workspace_floats)(const LinearShape&);
  /// Linear attention of one state and the query heads that read it.
  void (*linear_head)(const LinearHead&, float* workspace);
  std::size_t (*linear_backward_workspace_floats)(const LinearShape&, std::size_t queries);
  void (*linear_backward_head)(const LinearBackward&, float* workspace);

  /// to = factor * from / max(|from|, 1e-12) for rows of `columns` floats that lie `stride` apart.
  void (*normalize_rows)(const float* from, std::size_t stride, std::size_t rows, std::size_t columns, double factor,
                         float* to);

  /// One element of a tensor, widened.
  float (*read_element)(const void* data, DType dtype, std::size_t index);

  const Probes* probes;  // nullptr in WebAssembly, where nobody asks and every byte is downloaded
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
