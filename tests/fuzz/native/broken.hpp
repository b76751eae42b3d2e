// What calls are broken with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "bytes.hpp"
#include "sdpa/options.hpp"
#include "sdpa/tensor_view.hpp"

namespace sdpa::fuzzing {

inline constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();

// A size at the edge of what there is, or of what can be.
std::size_t any_size(Bytes& bytes, std::size_t now);

// Numbers that lie in static memory: `usual` of them, or any other count.
std::span<const std::int32_t> any_list(Bytes& bytes, std::size_t usual);

// Breaks an option of a call with queries and keys of those extents.
void break_option(Bytes& bytes, const Extents& query, const Extents& key, AttentionOptions& options);

inline Extents with(const Extents& extents, std::size_t rank, std::size_t extent) {
  Extents result = extents;
  result[rank] = extent;
  return result;
}

inline InputView with_extent(const InputView& v, std::size_t rank, std::size_t extent) {
  return {v.data_handle(),
          v.dtype(),
          with(v.extents(), rank, extent),
          {v.stride(0), v.stride(1), v.stride(2), v.stride(3)}};
}

template <class T>
TensorView<T> with_extent(const TensorView<T>& v, std::size_t rank, std::size_t extent) {
  return {v.data_handle(), with(v.extents(), rank, extent), v.strides()};
}

// Whether no extent is larger than it was.
inline bool within(const Extents& now, const Extents& before) {
  for (std::size_t r = 0; r < 4; ++r) {
    if (now[r] > before[r]) return false;
  }
  return true;
}

// Whether the options' operands are where they were and no larger. Another number of keys is another order of tiles.
bool operands_within(const AttentionOptions& now, const AttentionOptions& before, bool same_keys);

}  // namespace sdpa::fuzzing
