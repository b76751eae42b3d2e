// The machine's limit of the kernels' own arithmetic: independent multiply-adds that never leave the registers.
// Twelve chains hide the latency of one multiply-add and fit 16 registers with both operands.
#pragma once

#include <cstddef>

#include "kernels/tile_size.hpp"
#include "simd/math.hpp"

namespace sdpa::kernels {

template <class Arch>
double peak_flops(std::size_t steps) {
  constexpr std::size_t kChains = 12;
  static constexpr float kFactors[2] = {0.999F, 0.001F};
  const float* factors = simd::opaque(&kFactors[0]);
  const auto x = simd::splat<Arch>(factors[0]);
  const auto y = simd::splat<Arch>(factors[1]);
  simd::Batch<Arch> chain[kChains];
  for (std::size_t i = 0; i < kChains; ++i) chain[i] = simd::splat<Arch>(static_cast<float>(i));
  SDPA_NO_UNROLL
  for (std::size_t s = 0; s < steps; ++s) {
    for (std::size_t i = 0; i < kChains; ++i) chain[i] = simd::madd<Arch>(chain[i], x, y);
  }
  auto sum = chain[0];
  for (std::size_t i = 1; i < kChains; ++i) sum = sum + chain[i];
  float lanes[simd::kWidth<Arch>];
  simd::store<Arch>(lanes, sum);
  asm volatile("" : : "r"(&lanes[0]) : "memory");  // the sums are used: the loop must run
  return static_cast<double>(steps) * kChains * 2 * static_cast<double>(simd::kWidth<Arch>);
}

template <class Arch>
float madd_probe(float a, float b, float c) {
  float lanes[simd::kWidth<Arch>];
  simd::store<Arch>(lanes, simd::madd<Arch>(simd::splat<Arch>(a), simd::splat<Arch>(b), simd::splat<Arch>(c)));
  return lanes[0];
}

/// exp(x) for x <= 0 as the softmax computes it.
template <class Arch>
void exp_probe(const float* x, float* y, std::size_t n) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const auto k = simd::ExpConstants<Arch>::load();
  for (std::size_t i = 0; i < n; i += kW) {
    float lanes[kW] = {};
    for (std::size_t j = 0; j < kW && i + j < n; ++j) lanes[j] = x[i + j];
    simd::store<Arch>(lanes, simd::exp_nonpositive<Arch>(simd::load<Arch>(lanes), k));
    for (std::size_t j = 0; j < kW && i + j < n; ++j) y[i + j] = lanes[j];
  }
}

template <class Arch>
void tanh_probe(const float* x, float* y, std::size_t n) {
  constexpr std::size_t kW = simd::kWidth<Arch>;
  const auto t = simd::TanhConstants<Arch>::load();
  for (std::size_t i = 0; i < n; i += kW) {
    float lanes[kW] = {};
    for (std::size_t j = 0; j < kW && i + j < n; ++j) lanes[j] = x[i + j] * static_cast<float>(simd::kTanhUnit);
    simd::store<Arch>(lanes, simd::tanh_times<Arch>(simd::splat<Arch>(1.0F), simd::load<Arch>(lanes), t));
    for (std::size_t j = 0; j < kW && i + j < n; ++j) y[i + j] = lanes[j];
  }
}

}  // namespace sdpa::kernels
