#include "support/slices.hpp"

#include <algorithm>
#include <cstdint>

namespace sdpa::testing {
namespace {

template <class T>
Broadcast<T> rows_of(const Broadcast<T>& whole, std::size_t first, std::size_t count) {
  if (!whole.present() || whole.extents[2] == 1) return whole;
  Broadcast<T> part;
  part.extents = whole.extents;
  part.extents[2] = count;
  for (std::size_t b = 0; b < part.extents[0]; ++b) {
    for (std::size_t h = 0; h < part.extents[1]; ++h) {
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t j = 0; j < part.extents[3]; ++j) part.data.push_back(whole.at(b, h, first + i, j));
      }
    }
  }
  return part;
}

// The plane of (b, h).
template <class T>
Broadcast<T> plane_of(const Broadcast<T>& whole, std::size_t b, std::size_t h) {
  if (!whole.present()) return whole;
  Broadcast<T> part;
  part.extents = {1, 1, whole.extents[2], whole.extents[3]};
  for (std::size_t i = 0; i < part.extents[2]; ++i) {
    for (std::size_t j = 0; j < part.extents[3]; ++j) part.data.push_back(whole.at(b, h, i, j));
  }
  return part;
}

// Slice `index` of values that are slices of `size`.
template <class T>
std::vector<T> slice(const std::vector<T>& values, std::size_t index, std::size_t size) {
  const auto begin = values.begin() + static_cast<long>(index * size);
  return {begin, begin + static_cast<long>(size)};
}

void keep_head(reference::PerHead& values, std::size_t b, std::size_t h, std::size_t num_heads) {
  if (values.present()) values = {{values.at(b, h, num_heads)}, false};
}

}  // namespace

Problem query_rows(const Problem& p, std::size_t first, std::size_t count) {
  Problem part = p;
  part.seqlen_q = count;
  part.query = rows_of(p.query, p, first, count, p.head_dim);
  part.mask = rows_of(p.mask, first, count);
  part.bias = rows_of(p.bias, first, count);
  part.origin.row += first;
  part.query_segments.clear();
  // Packed sequences know where they stand by the origin.
  const bool is_packed = !p.query_starts.empty();
  if (!is_packed) {
    part.align = Align::kOffset;
    part.query_offsets.clear();
  }
  for (std::size_t b = 0; b < p.batch; ++b) {
    if (!is_packed) {
      part.query_offsets.push_back(static_cast<std::int32_t>(p.offset(b) + static_cast<std::int64_t>(first)));
    }
    if (!p.query_segments.empty()) {
      const auto begin = p.query_segments.begin() + static_cast<long>(b * p.seqlen_q + first);
      part.query_segments.insert(part.query_segments.end(), begin, begin + static_cast<long>(count));
    }
    if (!p.query_lengths.empty()) {
      const auto left = std::int64_t{p.query_lengths[b]} - static_cast<std::int64_t>(first);
      part.query_lengths[b] =
          static_cast<std::int32_t>(std::clamp<std::int64_t>(left, 0, static_cast<std::int64_t>(count)));
    }
  }
  return part;
}

Problem one_head(const Problem& p, std::size_t b, std::size_t h) {
  Problem part = p;
  part.batch = part.num_heads = part.num_kv_heads = 1;
  const std::size_t g = b * p.num_kv_heads + h / (p.num_heads / p.num_kv_heads);
  part.query = slice(p.query, b * p.num_heads + h, p.seqlen_q * p.head_dim);
  part.key = slice(p.key, g, p.seqlen_kv * p.head_dim);
  part.value = slice(p.value, g, p.seqlen_kv * p.head_dim_v);
  part.mask = plane_of(p.mask, b, h);
  part.bias = plane_of(p.bias, b, h);
  part.origin.batch += b;
  part.origin.head += h;
  keep_head(part.alibi_slopes, b, h, p.num_heads);
  keep_head(part.sinks, b, h, p.num_heads);
  for (auto* values : {&part.query_offsets, &part.query_lengths, &part.kv_lengths}) {
    if (!values->empty()) *values = {(*values)[b]};
  }
  if (!p.query_segments.empty()) part.query_segments = slice(p.query_segments, b, p.seqlen_q);
  if (!p.key_segments.empty()) part.key_segments = slice(p.key_segments, b, p.seqlen_kv);
  return part;
}

std::vector<float> rows_of(const std::vector<float>& values, const Problem& p, std::size_t first, std::size_t count,
                           std::size_t width) {
  std::vector<float> result;
  for (std::size_t head = 0; head < p.batch * p.num_heads; ++head) {
    const auto begin = values.begin() + static_cast<long>((head * p.seqlen_q + first) * width);
    result.insert(result.end(), begin, begin + static_cast<long>(count * width));
  }
  return result;
}

}  // namespace sdpa::testing
