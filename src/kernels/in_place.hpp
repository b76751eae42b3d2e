// What decode reads where it lies: keys and values of 8 and 16 bits, widened in registers, and rows in pages or in a
// ring, run by run. Larger blocks, which go over each row many times, and whatever does not fit here have their rows
// copied and widened a tile at a time (key_rows.hpp). Either way a row of the result has the same bits.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/ahead.hpp"
#include "kernels/attention_workspace.hpp"
#include "kernels/mask.hpp"
#include "kernels/pv_runs.hpp"
#include "kernels/qk_narrow.hpp"
#include "kernels/qk_row.hpp"
#include "kernels/qk_tile.hpp"
#include "kernels/row_runs.hpp"
#include "kernels/scales.hpp"
#include "simd/narrow.hpp"

namespace sdpa::kernels {

/// Whether blocks of several rows, too, up to a vector of them: a register tile holds all of these.
template <class Arch>
inline constexpr bool kStacksInPlace = simd::kWidth<Arch> == 4;

/// Which operands of a block.
struct InPlace {
  bool keys = false;
  bool values = false;
  const float* queries = nullptr;  // packed, times what keys of these bits leave to them
};

#if defined(__wasm_simd128__)
/// Writes `n` packed queries times what the keys leave to them; false where one is too large for that, or NaN.
template <class Arch, class Element>
bool prepare_queries(const float* from, std::size_t n, float* to) {
  using Narrow = simd::Narrow<Arch, Element>;
  bool fit = true;
  for (std::size_t k = 0; k < n; ++k) {
    fit = fit && std::fabs(from[k]) < Narrow::kLargest;
    to[k] = from[k] * Narrow::kBefore;
  }
  return fit;
}
#endif

template <class Arch>
InPlace choose_in_place(const AttentionBlock& block, const AttentionWorkspace<Arch>& workspace) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  if (block.rows != 1 && (block.rows > kW || !kStacksInPlace<Arch>)) return {};
  const bool pieces = block.map.active();
  // Rows of smaller pages are quicker copied.
  if (block.map.page_size != 0 && block.map.page_size < kBc / (RowRuns::kMost - 1)) return {};
  InPlace in_place{.queries = workspace.queries};
  if (block.key.dtype == DType::kFloat32) in_place.keys = pieces;
  if (block.head_dim_v % kColumnBlock<Arch> == 0) {
    in_place.values = block.value.dtype == DType::kFloat32
                          ? pieces || block.rows == 1
                          : simd::kWidensInRegisters<Arch> && block.value.dtype != DType::kBFloat16;
  }
#if defined(__wasm_simd128__)
  if constexpr (simd::kWidensInRegisters<Arch>) {
    const std::size_t n = kW * block.head_dim;
    float* queries = workspace.queries + n;  // the panels of a larger block would lie there
    static_assert(AttentionWorkspace<Arch>::kRows >= 2 * kW);
    if (block.key.dtype == DType::kFloat16 && block.head_dim % 8 == 0) {
      in_place.keys = prepare_queries<Arch, std::uint16_t>(workspace.queries, n, queries);
    }
    if (block.key.dtype == DType::kInt8 && block.head_dim % 16 == 0) {
      in_place.keys = prepare_queries<Arch, std::int8_t>(workspace.queries, n, queries);
    }
    if (in_place.keys && block.key.dtype != DType::kFloat32) in_place.queries = queries;
  }
#endif
  return in_place;
}

/// Scores of one run; kRows = 1: of a row alone, [key].
template <class Arch, std::size_t kRows>
bool scores_of_run(const AttentionBlock& block, const InPlace& in_place, const RowRuns::Piece& run, float factor,
                   [[maybe_unused]] const float* scales, KeysAndValuesAhead& ahead, float* scores) {
  const std::size_t stride = block.key.stride;
#if defined(__wasm_simd128__)
  if constexpr (simd::kWidensInRegisters<Arch>) {
    if (block.key.dtype == DType::kFloat16) {
      return qk_narrow<Arch, std::uint16_t, kRows>(static_cast<const std::uint16_t*>(run.data), stride, run.rows,
                                                   in_place.queries, block.head_dim, factor, nullptr, ahead, scores);
    }
    if (block.key.dtype == DType::kInt8) {
      return qk_narrow<Arch, std::int8_t, kRows>(static_cast<const std::int8_t*>(run.data), stride, run.rows,
                                                 in_place.queries, block.head_dim, factor, scales, ahead, scores);
    }
  }
#endif
  const float* key = static_cast<const float*>(run.data);
  if constexpr (kRows == 1) {
    qk_row<Arch>(key, stride, run.rows, in_place.queries, block.head_dim, factor, ahead, scores);
  } else {
    qk_single_panel<Arch>(key, stride, run.rows, in_place.queries, block.head_dim, factor, ahead, scores);
  }
  return true;
}

/// Scores of keys [first, first + keys), [key] for kRows = 1, else [key][row]. False, and nothing of use in `scores`,
/// where the keys have to be widened first.
template <class Arch, std::size_t kRows>
SDPA_NOINLINE bool scores_in_place(const AttentionBlock& block, const InPlace& in_place, float factor,
                                   std::size_t first, std::size_t keys, KeysAndValuesAhead ahead, float* scales,
                                   float* scores) {
  constexpr std::size_t kStep = kRows == 1 ? 1 : kScoreStride<Arch>;
  RowRuns runs;
  if (!in_place.keys || !runs.find(block.map, block.key, first, keys, block.head_dim)) return false;
  const float* scale = load_key_scales(block, first, keys, scales);
  for (std::size_t i = 0; i < runs.count; ++i) {
    if (!scores_of_run<Arch, kRows>(block, in_place, runs.piece[i], factor, scale, ahead, scores)) return false;
    scores += runs.piece[i].rows * kStep;
    if (scale != nullptr) scale += runs.piece[i].rows;
  }
  return true;
}

/// Step 4 of a tile that is seen as a whole. The answer is how many columns are done; the rest of the values has to be
/// widened first.
template <class Arch, std::size_t kRows, std::size_t kKeyStep>
SDPA_NOINLINE std::size_t accumulate_in_place(const AttentionBlock& block, const InPlace& in_place, std::size_t first,
                                              std::size_t keys, bool fresh, float* weights,
                                              const AttentionWorkspace<Arch>& workspace) {
  RowRuns runs;
  if (!in_place.values || !runs.find(block.map, block.value, first, keys, block.head_dim_v)) return 0;
  std::size_t done = 0;
  const auto go = [&](auto element) {
    pv_runs<Arch, decltype(element), kRows, kKeyStep>(weights, runs, block.head_dim_v, fresh, workspace.alpha,
                                                      workspace.out, done);
  };
#if defined(__wasm_simd128__)
  if constexpr (simd::kWidensInRegisters<Arch>) {
    if (block.value.dtype == DType::kInt8) {
      go(std::int8_t{});
      return done;
    }
    if (block.value.dtype == DType::kFloat16) {
      scale_all<Arch, kKeyStep>(keys, simd::Narrow<Arch, std::uint16_t>::kBefore, weights);
      go(std::uint16_t{});
      if (done != block.head_dim_v) {
        scale_all<Arch, kKeyStep>(keys, 1.0F / simd::Narrow<Arch, std::uint16_t>::kBefore, weights);
      }
      return done;
    }
  }
#endif
  go(float{});
  return done;
}

}  // namespace sdpa::kernels
