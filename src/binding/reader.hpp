// Numbers of a frame as what they stand for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sdpa::binding {

/// Field: an enumeration of the numbers in the order in which they lie.
template <class Field>
class FrameReader {
 public:
  explicit FrameReader(const double* frame) : frame_(frame) {}

  double number(Field field) const { return at(static_cast<std::size_t>(field)); }
  std::size_t size(Field field) const { return static_cast<std::size_t>(number(field)); }
  bool flag(Field field) const { return number(field) != 0; }

  template <class T>
  T* pointer(Field field) const {
    return reinterpret_cast<T*>(static_cast<std::uintptr_t>(number(field)));
  }

  template <class Enum>
  Enum choice(Field field) const {
    return static_cast<Enum>(static_cast<std::uint8_t>(number(field)));
  }

 protected:
  double at(std::size_t index) const { return frame_[index]; }

 private:
  const double* frame_;
};

}  // namespace sdpa::binding
