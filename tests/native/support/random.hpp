// Numbers for tests: the same on every machine and standard library (the distributions of <random> are not).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace sdpa::testing {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  // Uniform in [0, 1).
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

  // Uniform among the integers low..high, both included.
  std::int64_t integer(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(uniform() * static_cast<double>(high - low + 1));
  }

  bool chance(double probability) { return uniform() < probability; }

  // Standard normal, by Box and Muller's formula.
  float normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return static_cast<float>(radius * std::cos(2 * 3.141592653589793 * uniform()));
  }

  template <class T>
  T choose(std::initializer_list<T> values) {
    return values.begin()[integer(0, static_cast<std::int64_t>(values.size()) - 1)];
  }

  std::vector<float> normals(std::size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = normal();
    return values;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace sdpa::testing
