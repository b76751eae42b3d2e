#include "operands.hpp"

#include <cmath>
#include <random>

namespace sdpa::bench {
namespace {

class Random {
 public:
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  // Standard normal, by Box and Muller's formula.
  float normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return static_cast<float>(radius * std::cos(2 * 3.141592653589793 * uniform()));
  }

 private:
  std::mt19937_64 engine_{1};
};

std::size_t size(const Extents& extents) { return extents[0] * extents[1] * extents[2] * extents[3]; }

AlignedArray<float> normals(Random& random, std::size_t count) {
  auto values = make_aligned<float>(count);
  for (std::size_t n = 0; n < count; ++n) values[n] = random.normal();
  return values;
}

}  // namespace

Operands::Operands(const cases::Case& c) {
  const Extents q{c.batch, c.num_heads, c.seqlen_q, c.head_dim};
  const Extents kv{c.batch, c.num_kv_heads, c.seqlen_kv, c.head_dim};
  const Extents plane{1, 1, c.seqlen_q, c.seqlen_kv};
  Random random;
  query_ = normals(random, size(q));
  key_ = normals(random, size(kv));
  value_ = normals(random, size(kv));
  out_ = make_aligned<float>(size(q));
  tensors.query = InputView(query_.get(), DType::kFloat32, q);
  tensors.key = InputView(key_.get(), DType::kFloat32, kv);
  tensors.value = InputView(value_.get(), DType::kFloat32, kv);
  tensors.out = TensorView<float>(out_.get(), q);

  options.align = Align::kLowerRight;
  switch (c.option) {
    case cases::Option::kDense:
      break;
    case cases::Option::kCausal:
      options.causal = true;
      break;
    case cases::Option::kMask:
      mask_ = make_aligned<std::uint8_t>(size(plane));
      for (std::size_t n = 0; n < size(plane); ++n) mask_[n] = random.uniform() < 0.9 ? 1 : 0;
      options.mask = TensorView<const std::uint8_t>(mask_.get(), plane, broadcast_strides(plane));
      break;
    case cases::Option::kBias:
      bias_ = normals(random, size(plane));
      options.bias = InputView(bias_.get(), DType::kFloat32, plane, broadcast_strides(plane));
      break;
    case cases::Option::kSoftcap:
      options.softcap = cases::kSoftcap;
      break;
    case cases::Option::kWindow:
      options.window_left = cases::kWindowLeft;
      options.window_right = 0;
      break;
  }
}

}  // namespace sdpa::bench
