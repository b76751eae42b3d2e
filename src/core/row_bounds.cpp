#include "core/row_bounds.hpp"

#include <algorithm>

namespace sdpa::core {
namespace {

// Windows this wide reach past every position there can be, and sums with a position stay far from overflow.
constexpr std::int64_t kFar = std::int64_t{1} << 60;

std::size_t kv_length(const AttentionOptions& options, std::size_t b, std::size_t seqlen_kv) {
  return options.kv_lengths.empty() ? seqlen_kv : static_cast<std::size_t>(options.kv_lengths[b]);
}

}  // namespace

std::int64_t query_offset(const AttentionOptions& options, std::size_t b, std::size_t seqlen_q, std::size_t seqlen_kv) {
  switch (options.align) {
    case Align::kLowerRight:
      return static_cast<std::int64_t>(kv_length(options, b, seqlen_kv)) - static_cast<std::int64_t>(seqlen_q);
    case Align::kOffset:
      return options.query_offsets.empty() ? options.query_offset : options.query_offsets[b];
    case Align::kUnset:
    case Align::kUpperLeft:
      break;
  }
  return 0;
}

bool is_positional(const AttentionOptions& options) {
  return options.causal || options.window_left != kUnlimited || options.window_right != kUnlimited;
}

void row_bounds(const AttentionOptions& options, std::size_t b, std::size_t seqlen_q, std::size_t seqlen_kv,
                std::size_t first, std::size_t rows, std::size_t* key_begin, std::size_t* key_end) {
  const std::int64_t offset = query_offset(options, b, seqlen_q, seqlen_kv);
  const auto keys = static_cast<std::int64_t>(kv_length(options, b, seqlen_kv));
  const std::size_t queries =
      options.query_lengths.empty() ? seqlen_q : static_cast<std::size_t>(options.query_lengths[b]);
  const std::int64_t left = std::min(options.window_left, kFar);
  // Causal is a window that ends at the query itself.
  const std::int64_t right = options.causal ? 0 : std::min(options.window_right, kFar);
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t i = first + r;
    const std::int64_t position = static_cast<std::int64_t>(i) + offset;
    const std::int64_t begin = std::max<std::int64_t>(0, position - left);
    const std::int64_t end = std::min(keys, position + right + 1);
    const bool empty = i >= queries || begin >= end;
    key_begin[r] = empty ? 0 : static_cast<std::size_t>(begin);
    key_end[r] = empty ? 0 : static_cast<std::size_t>(end);
  }
}

}  // namespace sdpa::core
