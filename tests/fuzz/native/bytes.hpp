// Bytes of a fuzzer read as numbers: each draw takes some from the front, and behind the end all are 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace sdpa::fuzzing {

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}

  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const std::uint8_t first = rest_.front();
    rest_ = rest_.subspan(1);
    return first;
  }

  std::uint64_t word(int bytes) {
    std::uint64_t value = 0;
    for (int n = 0; n < bytes; ++n) value = value << 8 | byte();
    return value;
  }

  // Among low ... high, both included, at most 65536 of them.
  std::int64_t integer(std::int64_t low, std::int64_t high) {
    const auto choices = static_cast<std::uint64_t>(high - low + 1);
    return low + static_cast<std::int64_t>(word(choices > 256 ? 2 : 1) % choices);
  }
  std::size_t size(std::size_t low, std::size_t high) {
    return static_cast<std::size_t>(integer(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)));
  }

  // True for that many of 256 bytes, and never behind the end.
  bool chance(int of256) { return 255 - byte() < of256; }

  template <class T>
  T choose(std::initializer_list<T> values) {
    return values.begin()[size(0, values.size() - 1)];
  }

 private:
  std::span<const std::uint8_t> rest_;
};

}  // namespace sdpa::fuzzing
