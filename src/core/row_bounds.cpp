#include "core/row_bounds.hpp"

#include <algorithm>

namespace sdpa::core {
namespace {

// Windows this wide reach past every position there can be, and sums with a position stay far from overflow.
constexpr std::int64_t kFar = std::int64_t{1} << 60;

// Where a sequence of these lengths has its query 0.
std::int64_t offset_of(const AttentionOptions& options, std::size_t b, std::int64_t queries, std::int64_t keys,
                       Align unset) {
  switch (options.align == Align::kUnset ? unset : options.align) {
    case Align::kLowerRight:
      return keys - queries;
    case Align::kOffset:
      return options.query_offsets.empty() ? options.query_offset : options.query_offsets[b];
    case Align::kUnset:
    case Align::kUpperLeft:
      break;
  }
  return 0;
}

std::int64_t floor_multiple(std::int64_t x, std::int64_t of) {
  const std::int64_t rest = x % of;
  return x - (rest < 0 ? rest + of : rest);
}

}  // namespace

bool is_positional(const AttentionOptions& options) {
  return options.causal || options.window_left != kUnlimited || options.window_right != kUnlimited ||
         options.chunk != 0 || options.alibi_slopes.data != nullptr;
}

// What limits one row before windows: its keys [begin, end), the key that positions count from, its own position.
struct RowRules::Row {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t base = 0;
  std::int64_t position = 0;
};

RowRules::RowRules(const AttentionTensors& tensors, const AttentionOptions& options, std::size_t b)
    : options_(options),
      b_(b),
      seqlen_q_(static_cast<std::int64_t>(tensors.query.extent(2))),
      seqlen_kv_(static_cast<std::int64_t>(tensors.key.extent(2))) {
  queries_ = options.query_lengths.empty() ? seqlen_q_ : options.query_lengths[b];
  keys_ = options.kv_lengths.empty() ? seqlen_kv_ : options.kv_lengths[b];
  offset_ = offset_of(options, b, seqlen_q_, keys_, Align::kUpperLeft);
  if (tensors.map.held_from != nullptr) {
    held_from_ = tensors.map.held_from[b];
    ring_begin_ = static_cast<std::int64_t>(tensors.map.ring_begin);
  }
  if (!options.key_segments.empty()) {
    const std::int32_t* ids = options.key_segments.data() + b * static_cast<std::size_t>(seqlen_kv_);
    has_sorted_segments_ = std::is_sorted(ids, ids + keys_);
    compares_segments_ = !has_sorted_segments_;
  }
  is_plain_ = options.chunk == 0 && options.global_keys == 0 && options.query_starts.empty() && !has_sorted_segments_ &&
              tensors.map.held_from == nullptr;
}

RowRules::Row RowRules::row(std::size_t i) const {
  const auto index = static_cast<std::int64_t>(i);
  Row row{0, keys_, 0, index + offset_};
  if (index >= queries_) row.end = 0;
  if (!options_.query_starts.empty()) {
    const auto& starts = options_.query_starts;
    const auto& key_starts = options_.key_starts;
    const std::int64_t whole = index + static_cast<std::int64_t>(options_.origin.row);
    const auto next = std::upper_bound(starts.begin(), starts.end(), whole);
    if (next == starts.end() || next == starts.begin()) {
      row.end = 0;
      return row;
    }
    const auto s = static_cast<std::size_t>(next - starts.begin()) - 1;
    row.base = key_starts[s];
    row.begin = row.base;
    row.end = std::min<std::int64_t>(row.end, key_starts[s + 1]);
    const std::int64_t offset = offset_of(options_, b_, std::int64_t{starts[s + 1]} - starts[s],
                                          std::int64_t{key_starts[s + 1]} - key_starts[s], Align::kLowerRight);
    row.position = row.base + whole - starts[s] + offset;
  }
  if (has_sorted_segments_) {
    const std::int32_t id = options_.query_segments[b_ * static_cast<std::size_t>(seqlen_q_) + i];
    const std::int32_t* ids = options_.key_segments.data() + b_ * static_cast<std::size_t>(seqlen_kv_);
    const auto [low, high] = std::equal_range(ids, ids + keys_, id);
    row.begin = std::max<std::int64_t>(row.begin, low - ids);
    row.end = std::min<std::int64_t>(row.end, high - ids);
  }
  return row;
}

// Lengths, causal and a window alone, as most calls have it.
void RowRules::fill_plain(std::size_t first, std::size_t rows, RowBounds& bounds) const {
  const std::int64_t left = std::min(options_.window_left, kFar);
  const std::int64_t right = options_.causal ? 0 : std::min(options_.window_right, kFar);
  for (std::size_t r = 0; r < rows; ++r) {
    const auto i = static_cast<std::int64_t>(first + r);
    const std::int64_t position = i + offset_;
    const std::int64_t begin = std::max<std::int64_t>(0, position - left);
    const std::int64_t end = std::min(keys_, position + right + 1);
    const bool empty = i >= queries_ || begin >= end;
    bounds.key_begin[r] = empty ? 0 : static_cast<std::size_t>(begin);
    bounds.key_end[r] = empty ? 0 : static_cast<std::size_t>(end);
    bounds.position[r] = position;
  }
}

void RowRules::fill(std::size_t first, std::size_t rows, RowBounds& bounds) const {
  if (is_plain_) {
    bounds.has_holes = false;
    fill_plain(first, rows, bounds);
    return;
  }
  const std::int64_t left = std::min(options_.window_left, kFar);
  // Causal is a window that ends at the query itself.
  const std::int64_t right =
      options_.causal ? std::min<std::int64_t>(options_.window_right, 0) : std::min(options_.window_right, kFar);
  bounds.has_holes = false;
  for (std::size_t r = 0; r < rows; ++r) {
    const Row row = this->row(first + r);
    bounds.position[r] = row.position;
    const std::int64_t last = std::min(row.end, row.position + right + 1);
    // The row's own keys: window and chunk.
    std::int64_t begin = std::max(row.begin, row.position - left);
    std::int64_t end = last;
    if (options_.chunk != 0) {
      const std::int64_t chunk = row.base + floor_multiple(row.position - row.base, options_.chunk);
      begin = std::max(begin, chunk);
      end = std::min(end, chunk + options_.chunk);
    }
    // The global ones stand before them, with a hole between where they do not meet.
    const std::int64_t global_end = std::min(last, row.base + std::min(options_.global_keys, kFar));
    std::int64_t hole_begin = 0;
    std::int64_t hole_end = 0;
    if (global_end > row.begin) {
      if (begin >= end) {
        begin = row.begin;
        end = global_end;
      } else if (begin > global_end) {
        hole_begin = global_end;
        hole_end = begin;
        begin = row.begin;
      } else {
        begin = row.begin;
        end = std::max(end, global_end);
      }
    }
    if (begin >= ring_begin_ && begin < held_from_) begin = held_from_;
    const bool empty = begin >= end;
    bounds.key_begin[r] = empty ? 0 : static_cast<std::size_t>(begin);
    bounds.key_end[r] = empty ? 0 : static_cast<std::size_t>(end);
    bounds.hole_begin[r] = empty ? 0 : static_cast<std::size_t>(hole_begin);
    bounds.hole_end[r] = empty ? 0 : static_cast<std::size_t>(hole_end);
    if (!empty && hole_begin < hole_end) bounds.has_holes = true;
  }
}

}  // namespace sdpa::core
