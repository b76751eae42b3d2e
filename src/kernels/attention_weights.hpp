// Weights of one block of query rows, tile by tile, handed to whoever wants something of them:
//
//   S^T = K Q^T, softcap, bias, masks      the code of the forward pass     score_tile.hpp
//   P = exp(S - lse)                                                        weights_tile.hpp
//   rows, columns, statistics, largest, sums of cells                       weights_*.hpp
//
// Where lse is not given it is computed first by the steps of the forward pass: the same bits. Values are not touched.
// Per score: the product's head_dim multiply-adds and one exponential, twice without lse. What no row sees is not read.
#pragma once

#include <cstddef>

#include "kernels/attention_tiled.hpp"
#include "kernels/weights_cells.hpp"
#include "kernels/weights_lines.hpp"
#include "kernels/weights_stats.hpp"
#include "kernels/weights_tile.hpp"
#include "kernels/weights_top_k.hpp"

namespace sdpa::kernels {

/// Calls f(tile, cells) for each tile of keys that some row of the block sees.
template <class Arch, class F>
void for_each_seen_tile(const AttentionBlock& block, const BlockRanges<Arch>& ranges, F&& f) {
  TileCells<Arch> cells;
  for_each_tile<Arch>(block, ranges, [&](KeyRange tile) {
    classify_tile<Arch>(block, ranges, tile, cells);
    if (!cells.seen.empty()) f(tile, cells);
  });
}

/// What is subtracted from the scores of each row: lse, or +infinity in rows that see nothing and in lanes without row.
template <class Arch>
SDPA_NOINLINE void read_lse(const WeightsBlock& b, const ScoreMod& mod, const BlockRanges<Arch>& ranges,
                            const AttentionWorkspace<Arch>& workspace, float* lse) {
  const AttentionBlock& block = b.attention;
  if (b.lse == nullptr) {
    begin_rows<Arch>(block, workspace);
    for_each_seen_tile<Arch>(block, ranges, [&](KeyRange tile, TileCells<Arch>& cells) {
      weigh_tile<Arch>(block, mod, ranges, {}, tile, cells, nullptr, workspace);
    });
  }
  for (std::size_t r = 0; r < kScoreStride<Arch>; ++r) {
    float sum = kMasked;
    if (r < block.rows) {
      sum = b.lse != nullptr ? b.lse[r * b.lse_stride] : log_sum_exp(workspace.m[r], workspace.l[r]);
    }
    lse[r] = shift_of(sum);
  }
}

/// Rows that see nothing give zeros: results in which only cells that take part are written begin as such.
inline void clear_lines(const WeightsBlock& b, std::size_t width) {
  for (std::size_t n = 0; n < b.attention.rows * width; ++n) b.values[n] = 0.0F;
}

/// No values: the workspace of the forward pass without its accumulator.
inline WorkspaceShape weights_shape(const AttentionBlock& block) {
  return {block.head_dim, 0, block.map.active() || block.key.dtype != DType::kFloat32, false, false};
}

template <class Arch>
void weights_block(const WeightsBlock& b, float* memory) {
  using Workspace = AttentionWorkspace<Arch>;
  constexpr std::size_t kPanel = kNr * simd::kWidth<Arch>;
  const AttentionBlock& block = b.attention;
  const Workspace workspace = Workspace::at(memory, weights_shape(block));
  const ScoreMod mod = make_score_mod(block.scale, block.softcap);
  const BlockRanges<Arch> ranges(block);
  pack_queries<Arch>(block, mod.query_factor, workspace.queries);
  float lse[kScoreStride<Arch>];
  read_lse<Arch>(b, mod, ranges, workspace, lse);

  RowStats<Arch> stats;
  float least[kScoreStride<Arch>];
  switch (b.use) {
    case WeightsUse::kRows:
      clear_lines(b, block.num_keys);
      break;
    case WeightsUse::kColumns:
      clear_lines(b, b.num_picks);
      break;
    case WeightsUse::kTopK:
      for (std::size_t r = 0; r < block.rows; ++r) heap_of_row(b, r).clear();
      // Lanes without a row take nothing.
      for (std::size_t r = 0; r < kScoreStride<Arch>; ++r) least[r] = r < block.rows ? kNoWeight : -kMasked;
      break;
    default:
      break;
  }

  for_each_seen_tile<Arch>(block, ranges, [&](KeyRange tile, TileCells<Arch>& cells) {
    if (b.use == WeightsUse::kColumns) {
      for_each_run(b.picks, b.num_picks, tile, [&](KeyRange wanted, std::size_t first) {
        score_tile<Arch>(block, mod, ranges, tile, cells, wanted, workspace);
        write_weights<Arch>(block, cells, wanted, lse, workspace.scores, b.values + first, b.num_picks);
      });
      return;
    }
    const KeyRange whole{0, kBc};
    score_tile<Arch>(block, mod, ranges, tile, cells, whole, workspace);
    if (b.use == WeightsUse::kRows) {
      write_weights<Arch>(block, cells, whole, lse, workspace.scores, b.values + tile.begin, block.num_keys);
    } else if (b.use == WeightsUse::kSum) {
      add_to_cells<Arch, SumOfWeights>(b, tile, cells, lse, workspace.scores);
    } else if (b.use == WeightsUse::kMax) {
      add_to_cells<Arch, MaxOfWeights>(b, tile, cells, lse, workspace.scores);
    } else {
      for (std::size_t first = 0, p = 0; first < block.rows; first += kPanel, ++p) {
        const Panel panel = panel_at<Arch>(first, block.rows);
        const KeyRange keys = cells.keys[p];
        if (keys.empty()) continue;
        if (b.use == WeightsUse::kStats) {
          add_stats<Arch>(panel, keys, tile.begin, lse, workspace.scores, stats);
        } else {
          weigh_scores<Arch>(keys, panel.vectors, lse + first, kNoWeight, workspace.scores + first);
          offer_weights<Arch>(b, panel, keys, tile.begin, workspace.scores, least);
        }
      }
    }
  });

  if (b.use == WeightsUse::kStats) finish_stats<Arch>(b, lse, stats);
  if (b.use == WeightsUse::kTopK) finish_top_k(b, lse);
}

}  // namespace sdpa::kernels
