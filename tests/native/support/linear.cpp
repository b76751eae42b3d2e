#include "support/linear.hpp"

#include <cmath>

namespace sdpa::testing {
namespace {

InputView view(const std::vector<float>& data, const Extents& extents, Layout layout) {
  // A vector without elements has no address; an empty tensor needs none.
  return {data.data(), DType::kFloat32, extents, layout};
}

// Element (b, h, i, j) of numbers that lie in the problem's layout.
double at(const LinearProblem& p, const std::vector<float>& data, const Extents& extents, std::size_t b, std::size_t h,
          std::size_t i, std::size_t j) {
  const Strides s = contiguous_strides(extents, p.layout);
  return data[b * s[0] + h * s[1] + i * s[2] + j * s[3]];
}

double feature(const LinearProblem& p, double x) {
  if (!p.options.normalised) return x;
  return x > 0 ? x + 1 : std::exp(x);
}

}  // namespace

void fill(LinearProblem& p, std::uint64_t seed) {
  Random random(seed);
  const auto uniforms = [&](std::size_t n, double factor) {
    std::vector<float> numbers(n);
    for (float& x : numbers) x = static_cast<float>(factor * random.uniform());
    return numbers;
  };
  p.query = random.normals(count(p.query_extents()));
  p.key = random.normals(count(p.key_extents()));
  p.value = random.normals(count(p.value_extents()));
  if (!p.options.normalised) {
    // Longer keys let the delta rule's state grow without bounds.
    for (std::size_t row = 0; row < p.key.size(); row += p.head_dim) {
      double square = 0;
      for (std::size_t d = 0; d < p.head_dim; ++d) square += static_cast<double>(p.key[row + d]) * p.key[row + d];
      for (std::size_t d = 0; d < p.head_dim; ++d) p.key[row + d] /= static_cast<float>(std::sqrt(square));
    }
  }
  const std::size_t tokens = p.batch * p.states * p.keys;
  if (p.decay_columns != 0) p.decay = uniforms(tokens * p.decay_columns, -0.7);
  if (p.beta_heads != 0) p.beta = uniforms(p.batch * p.beta_heads * p.keys, 1);
  if (p.steps) {
    p.step = uniforms(tokens, 1);
    p.rate = uniforms(p.states, -2);
  }
  if (p.with_skip) p.skip = random.normals(p.states);
  if (p.with_state) p.state = random.normals(p.state_size());
  // A divisor is a sum of positive numbers.
  for (std::size_t i = p.columns() - 1; p.options.normalised && i < p.state.size(); i += p.columns()) {
    p.state[i] = std::abs(p.state[i]);
  }
  if (p.masked) {
    p.mask.resize(p.batch * p.keys);
    for (std::uint8_t& m : p.mask) m = random.chance(0.6) ? 1 : 0;
  }
}

LinearTensors tensors_of(const LinearProblem& p) {
  LinearTensors t;
  t.query = view(p.query, p.query_extents(), p.layout);
  t.key = view(p.key, p.key_extents(), p.layout);
  t.value = view(p.value, p.value_extents(), p.layout);
  if (p.decay_columns != 0) t.decay = view(p.decay, {p.batch, p.states, p.keys, p.decay_columns}, p.layout);
  if (p.beta_heads != 0) t.beta = view(p.beta, {p.batch, p.beta_heads, p.keys, 1}, p.layout);
  if (p.steps) t.step = view(p.step, {p.batch, p.states, p.keys, 1}, p.layout);
  if (p.steps) t.rate = p.rate.data();
  if (p.with_skip) t.skip = p.skip.data();
  if (p.masked) t.key_mask = p.mask.data();
  if (p.with_state) t.state = p.state.data();
  return t;
}

LinearResult linear_reference(const LinearProblem& p) {
  const std::size_t columns = p.columns();
  const Strides out_strides = contiguous_strides(p.out_extents(), p.layout);
  const std::size_t readers = p.out_heads() / p.states;
  LinearResult result{std::vector<double>(count(p.out_extents())), std::vector<double>(p.state_size())};
  for (std::size_t i = 0; i < p.state.size(); ++i) result.state[i] = p.state[i];
  const auto write = [&](std::size_t b, std::size_t s, std::size_t t, double* state) {
    if (p.masked && p.mask[b * p.keys + t] == 0) return;
    const double step = p.steps ? at(p, p.step, {p.batch, p.states, p.keys, 1}, b, s, t, 0) : 1;
    std::vector<double> key(p.head_dim);
    std::vector<double> value(columns, 1);
    for (std::size_t d = 0; d < p.head_dim; ++d) {
      key[d] = feature(p, at(p, p.key, p.key_extents(), b, s / (p.states / p.key_heads), t, d));
      double g = p.steps ? step * p.rate[s] : 0;
      if (p.decay_columns != 0) {
        g = at(p, p.decay, {p.batch, p.states, p.keys, p.decay_columns}, b, s, t, p.decay_columns == 1 ? 0 : d);
      }
      for (std::size_t e = 0; e < columns; ++e) state[d * columns + e] *= std::exp(g);
    }
    for (std::size_t e = 0; e < p.head_dim_v; ++e) {
      value[e] = step * at(p, p.value, p.value_extents(), b, s, t, e);
      if (p.beta_heads == 0) continue;
      double held = 0;
      for (std::size_t d = 0; d < p.head_dim; ++d) held += key[d] * state[d * columns + e];
      const std::size_t h = p.beta_heads == 1 ? 0 : s;
      value[e] = at(p, p.beta, {p.batch, p.beta_heads, p.keys, 1}, b, h, t, 0) * (value[e] - held);
    }
    for (std::size_t d = 0; d < p.head_dim; ++d) {
      for (std::size_t e = 0; e < columns; ++e) state[d * columns + e] += key[d] * value[e];
    }
  };
  const auto read = [&](std::size_t b, std::size_t s, std::size_t t, const double* state) {
    for (std::size_t r = 0; r < readers; ++r) {
      const std::size_t head = p.heads >= p.states ? s * readers + r : s / (p.states / p.heads);
      std::vector<double> sums(columns);
      for (std::size_t d = 0; d < p.head_dim; ++d) {
        const double q = feature(p, at(p, p.query, p.query_extents(), b, head, t, d));
        for (std::size_t e = 0; e < columns; ++e) sums[e] += q * state[d * columns + e];
      }
      double* out = result.out.data() + b * out_strides[0] + (s * readers + r) * out_strides[1] + t * out_strides[2];
      for (std::size_t e = 0; e < p.head_dim_v; ++e) {
        out[e] = (p.steps ? 1 : p.options.scale) * sums[e];
        if (p.options.normalised)
          out[e] = sums[columns - 1] == 0 ? 0 : sums[e] / (sums[columns - 1] + p.options.epsilon);
        if (p.with_skip) out[e] += p.skip[s] * at(p, p.value, p.value_extents(), b, s, t, e);
      }
    }
  };
  for (std::size_t b = 0; b < p.batch; ++b) {
    for (std::size_t s = 0; s < p.states; ++s) {
      double* state = result.state.data() + (b * p.states + s) * p.head_dim * columns;
      for (std::size_t t = 0; t < p.keys; ++t) {
        write(b, s, t, state);
        if (p.options.causal) read(b, s, t, state);
      }
      for (std::size_t t = 0; !p.options.causal && t < p.queries; ++t) read(b, s, t, state);
    }
  }
  return result;
}

}  // namespace sdpa::testing
