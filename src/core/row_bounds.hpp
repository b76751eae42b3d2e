// From positions, lengths and segments to the interval of keys that each query row sees, and the hole in it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sdpa/attention.hpp"

namespace sdpa::core {

/// Whether the result depends on where the queries stand.
bool is_positional(const AttentionOptions& options);

/// What each row of a block sees: keys [key_begin, key_end) less [hole_begin, hole_end); {0, 0} where nothing.
struct RowBounds {
  std::size_t* key_begin;
  std::size_t* key_end;
  std::size_t* hole_begin;
  std::size_t* hole_end;
  std::int64_t* position;  // on the axis of the keys
  bool has_holes;          // of some row of the block
};

/// The rows of one batch entry.
class RowRules {
 public:
  RowRules(const AttentionTensors& tensors, const AttentionOptions& options, std::size_t b);

  /// Fills rows [first, first + rows) in.
  void fill(std::size_t first, std::size_t rows, RowBounds& bounds) const;

  /// Segments that the intervals do not express: the kernel compares ids.
  bool compares_segments() const { return compares_segments_; }

 private:
  struct Row;
  Row row(std::size_t i) const;
  void fill_plain(std::size_t first, std::size_t rows, RowBounds& bounds) const;

  const AttentionOptions& options_;
  std::size_t b_;
  std::int64_t seqlen_q_;
  std::int64_t seqlen_kv_;
  std::int64_t queries_;
  std::int64_t keys_;
  std::int64_t offset_;
  std::int64_t held_from_ = 0;
  std::int64_t ring_begin_ = 0;
  bool compares_segments_ = false;
  bool has_sorted_segments_ = false;
  bool is_plain_ = false;
};

}  // namespace sdpa::core
