// The largest weights of each row and their keys, of equal ones the lowest keys.
//
// Where the result goes is a heap meanwhile, the least of the k on top; most weights are turned away by one comparison
// with it, a vector of rows at a time. The heap is sorted in place in the end.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/weights_tile.hpp"

namespace sdpa::kernels {

/// k weights and their keys; kNoWeight and -1 where there are fewer.
struct WeightHeap {
  float* values;
  std::int32_t* keys;
  std::size_t size;

  void clear() const {
    for (std::size_t n = 0; n < size; ++n) {
      values[n] = kNoWeight;
      keys[n] = -1;
    }
  }

  /// Puts a weight in place of the least.
  void replace_least(float value, std::int32_t key) const { sift_down(size, value, key); }

  /// The largest first.
  void sort() const {
    for (std::size_t n = size; n-- > 1;) {
      const float value = values[n];
      const std::int32_t key = keys[n];
      values[n] = values[0];
      keys[n] = keys[0];
      sift_down(n, value, key);
    }
  }

 private:
  bool less(std::size_t a, float value, std::int32_t key) const {
    return values[a] < value || (values[a] == value && keys[a] > key);
  }

  // The first `n` with (value, key) in place of the first.
  void sift_down(std::size_t n, float value, std::int32_t key) const {
    std::size_t at = 0;
    for (std::size_t child = 1; child < n; child = 2 * at + 1) {
      if (child + 1 < n && less(child + 1, values[child], keys[child])) ++child;
      if (!less(child, value, key)) break;
      values[at] = values[child];
      keys[at] = keys[child];
      at = child;
    }
    values[at] = value;
    keys[at] = key;
  }
};

inline WeightHeap heap_of_row(const WeightsBlock& b, std::size_t row) {
  return {b.values + row * b.top_k, b.indices + row * b.top_k, b.top_k};
}

/// Offers the weights of `keys` of a tile. least[row] is the least that its heap holds, +infinity in lanes without row.
template <class Arch>
SDPA_NOINLINE void offer_weights(const WeightsBlock& b, const Panel& panel, KeyRange keys, std::size_t tile_begin,
                                 const float* weights, float* least) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  for (std::size_t v = 0; v < panel.vectors; ++v) {
    const std::size_t first = panel.first + v * kW;
    auto bound = simd::load<Arch>(least + first);
    const float* w = weights + keys.begin * kScoreStride<Arch> + first;
    for (std::size_t j = keys.begin; j < keys.end; ++j, w += kScoreStride<Arch>) {
      if (!xsimd::any(simd::load<Arch>(w) > bound)) continue;
      for (std::size_t r = 0; r < kW; ++r) {
        if (!(w[r] > least[first + r])) continue;
        const WeightHeap heap = heap_of_row(b, first + r);
        heap.replace_least(w[r], static_cast<std::int32_t>(tile_begin + j));
        least[first + r] = heap.values[0];
      }
      bound = simd::load<Arch>(least + first);
    }
  }
}

inline void finish_top_k(const WeightsBlock& b, const float* lse) {
  for (std::size_t r = 0; r < b.attention.rows; ++r) {
    const WeightHeap heap = heap_of_row(b, r);
    heap.sort();
    const bool broken = std::isnan(lse[r]);
    for (std::size_t n = 0; n < heap.size; ++n) {
      if (broken) heap.keys[n] = -1;
      if (heap.keys[n] < 0) heap.values[n] = broken ? lse[r] : 0.0F;
    }
  }
}

}  // namespace sdpa::kernels
