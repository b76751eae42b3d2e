// Questions about types, sizes and strides that several validations ask.
#pragma once

#include <cstddef>
#include <limits>

#include "sdpa/tensor_view.hpp"

namespace sdpa::core {

/// Types of any input; int8 needs the scales of a cache.
constexpr bool is_float(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

constexpr bool is_empty(const Extents& extents) {
  return extents[0] == 0 || extents[1] == 0 || extents[2] == 0 || extents[3] == 0;
}

/// Whether so many elements have an address each.
constexpr bool product_fits(const Extents& extents, std::size_t element_bytes) {
  std::size_t product = element_bytes;
  for (const std::size_t extent : extents) {
    if (extent == 0) return true;
    if (product > std::numeric_limits<std::size_t>::max() / extent) return false;
    product *= extent;
  }
  return true;
}

template <class View>
bool columns_are_contiguous(const View& view) {
  return view.extent(3) <= 1 || view.stride(3) == 1;
}

template <class View>
bool is_missing(const View& view) {
  return view.data_handle() == nullptr && !is_empty(view.extents());
}

}  // namespace sdpa::core
