// Non-owning, strided, rank-4 views with the vocabulary of std::mdspan (extent, stride, data_handle).
//
// Index order is always (batch, head, row, column). A memory order such as (batch, row, head, column) is a matter of
// strides alone, and so is broadcasting: a dimension that is repeated has stride 0. Strides count elements.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sdpa {

using Extents = std::array<std::size_t, 4>;
using Strides = std::array<std::size_t, 4>;

/// How (batch, head, row, column) tensors lie in memory.
enum class Layout : std::uint8_t {
  kBhld,  // (batch, head, row, column)
  kBlhd,  // (batch, row, head, column)
};

/// Storage types of floating-point inputs. Arithmetic is float32 whatever the storage. kInt8 is for the keys and values
/// of a cache, with a scale per row.
enum class DType : std::uint8_t { kFloat32, kFloat16, kBFloat16, kInt8 };

/// Bytes of one element.
constexpr std::size_t size_of(DType dtype) { return dtype == DType::kFloat32 ? 4 : dtype == DType::kInt8 ? 1 : 2; }

/// Strides of a tensor without gaps. `extents` is in index order.
constexpr Strides contiguous_strides(const Extents& extents, Layout layout = Layout::kBhld) {
  const auto [batch, heads, rows, columns] = extents;
  static_cast<void>(batch);
  if (layout == Layout::kBhld) return {heads * rows * columns, rows * columns, columns, 1};
  return {rows * heads * columns, columns, heads * columns, 1};
}

/// Strides of a tensor without gaps whose dimensions of extent 1 are repeated (stride 0).
constexpr Strides broadcast_strides(const Extents& extents) {
  Strides strides = contiguous_strides(extents);
  for (std::size_t r = 0; r < 4; ++r) {
    if (extents[r] == 1) strides[r] = 0;
  }
  return strides;
}

template <class T>
class TensorView {
 public:
  using element_type = T;

  constexpr TensorView() = default;
  constexpr TensorView(T* data, const Extents& extents, const Strides& strides)
      : data_(data), extents_(extents), strides_(strides) {}
  constexpr TensorView(T* data, const Extents& extents) : TensorView(data, extents, contiguous_strides(extents)) {}

  /// nullptr means: this optional tensor is absent.
  constexpr T* data_handle() const { return data_; }
  constexpr std::size_t extent(std::size_t rank) const { return extents_[rank]; }
  constexpr std::size_t stride(std::size_t rank) const { return strides_[rank]; }
  constexpr const Extents& extents() const { return extents_; }
  constexpr const Strides& strides() const { return strides_; }

  constexpr std::size_t offset(std::size_t b, std::size_t h, std::size_t i, std::size_t j) const {
    return b * strides_[0] + h * strides_[1] + i * strides_[2] + j * strides_[3];
  }
  constexpr T& operator()(std::size_t b, std::size_t h, std::size_t i, std::size_t j) const {
    return data_[offset(b, h, i, j)];
  }

 private:
  T* data_ = nullptr;
  Extents extents_{};
  Strides strides_{};
};

/// A floating-point input in one of its storage types: a TensorView whose element type is known at run time.
class InputView {
 public:
  constexpr InputView() = default;
  constexpr InputView(const void* data, DType dtype, const Extents& extents, const Strides& strides)
      : data_(data), dtype_(dtype), extents_(extents), strides_(strides) {}
  constexpr InputView(const void* data, DType dtype, const Extents& extents, Layout layout = Layout::kBhld)
      : InputView(data, dtype, extents, contiguous_strides(extents, layout)) {}

  constexpr const void* data_handle() const { return data_; }
  constexpr DType dtype() const { return dtype_; }
  constexpr std::size_t extent(std::size_t rank) const { return extents_[rank]; }
  constexpr std::size_t stride(std::size_t rank) const { return strides_[rank]; }
  constexpr const Extents& extents() const { return extents_; }

  /// Address of element (b, h, 0, 0).
  const void* head(std::size_t b, std::size_t h) const {
    return static_cast<const char*>(data_) + (b * strides_[0] + h * strides_[1]) * size_of(dtype_);
  }

 private:
  const void* data_ = nullptr;
  DType dtype_ = DType::kFloat32;
  Extents extents_{};
  Strides strides_{};
};

}  // namespace sdpa
