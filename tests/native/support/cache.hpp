// Keys and values as a KV cache stores them: in pages, in a ring, in int8 with a scale per row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "support/kernels.hpp"

namespace sdpa::testing {

struct CacheKind {
  DType key_dtype = DType::kFloat32;
  DType value_dtype = DType::kFloat32;
  std::size_t page_size = 0;  // 0: one stretch of memory for each batch row
  std::size_t ring_begin = 0;
  std::size_t ring_size = 0;  // 0: every key is held
};

// The rows of a problem, up to the key length of each batch row, stored. Everything else that the storage holds is NaN
// (int8: -128, with a scale of NaN), and entries of the table of pages that nobody needs are no pages.
class Cache {
 public:
  // Rounds the rows of `problem` to what the storage type holds.
  Cache(Problem& problem, const CacheKind& kind);

  // The arguments' key and value from now on. They point into this object.
  void install(Arguments& arguments) const;

  // The same question to the oracle: lost keys are masked and NaN.
  Problem oracle(const Problem& problem) const;

  // First key past ring_begin that batch row b still holds.
  std::int32_t held_from(std::size_t b) const { return held_from_[b]; }

 private:
  struct Store {
    std::size_t columns = 0;
    DType dtype = DType::kFloat32;
    std::unique_ptr<std::byte[]> data;
    std::unique_ptr<float[]> scales;  // kInt8
    Strides strides{};
  };

  std::size_t slot(std::size_t j) const;
  // Index of the storage's row of key j of (batch row, kv head).
  std::size_t row_index(std::size_t b, std::size_t g, std::size_t j) const;
  Store store(std::vector<float>& rows, std::size_t columns, DType dtype) const;

  CacheKind kind_;
  std::size_t batch_, heads_, keys_;
  std::vector<std::int32_t> lengths_, held_from_;
  std::size_t slots_ = 0;  // of a batch row
  std::size_t outer_ = 0;  // batch rows, or pages
  std::size_t inner_ = 0;  // rows of one of them
  std::size_t pages_per_row_ = 0;
  std::unique_ptr<std::int32_t[]> pages_;
  Store key_, value_;
};

// Runs the problem, whose rows are rounded first, with key and value in a cache, and compares with the oracle.
Actual run_cached(const KernelTable& table, Problem problem, const CacheKind& kind, const RunOptions& options = {});
void expect_cached_matches_reference(const KernelTable& table, Problem problem, const CacheKind& kind,
                                     const RunOptions& options = {});

}  // namespace sdpa::testing
