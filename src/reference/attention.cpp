#include "reference/attention.hpp"

#include <cmath>
#include <limits>

namespace sdpa::reference {

std::int64_t Problem::offset(std::size_t b) const {
  switch (align) {
    case Align::kLowerRight: {
      const auto keys = kv_lengths.empty() ? static_cast<std::int64_t>(seqlen_kv) : std::int64_t{kv_lengths[b]};
      return keys - static_cast<std::int64_t>(seqlen_q);
    }
    case Align::kOffset:
      return query_offsets.empty() ? query_offset : std::int64_t{query_offsets[b]};
    case Align::kNone:
    case Align::kUpperLeft:
      break;
  }
  return 0;
}

bool Problem::allowed(std::size_t b, std::size_t h, std::size_t i, std::size_t j) const {
  const auto row = static_cast<std::int64_t>(i);
  const auto column = static_cast<std::int64_t>(j);
  if (!query_lengths.empty() && row >= query_lengths[b]) return false;
  if (!kv_lengths.empty() && column >= kv_lengths[b]) return false;
  const std::int64_t position = row + offset(b);
  if (causal && column > position) return false;
  if (window_left >= 0 && column < position - window_left) return false;
  if (window_right >= 0 && column > position + window_right) return false;
  return !mask.present() || mask.at(b, h, i, j) != 0;
}

namespace {

template <class Real>
Result<Real> compute(const Problem& p) {
  constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
  const std::size_t rows = p.batch * p.num_heads * p.seqlen_q;
  const std::size_t cells = rows * p.seqlen_kv;
  const Real scale = p.scale ? Real{*p.scale} : Real{1} / std::sqrt(static_cast<Real>(p.head_dim));
  const Real cap{p.softcap};

  Result<Real> result;
  result.out.assign(rows * p.head_dim_v, Real{0});
  result.lse.assign(rows, -kInfinity);
  result.scaled.assign(cells, Real{0});
  result.capped.assign(cells, Real{0});
  result.biased.assign(cells, -kInfinity);
  result.weights.assign(cells, Real{0});

  for (std::size_t b = 0; b < p.batch; ++b) {
    for (std::size_t h = 0; h < p.num_heads; ++h) {
      const std::size_t g = h / (p.num_heads / p.num_kv_heads);
      const float* keys = p.key.data() + (b * p.num_kv_heads + g) * p.seqlen_kv * p.head_dim;
      const float* values = p.value.data() + (b * p.num_kv_heads + g) * p.seqlen_kv * p.head_dim_v;

      for (std::size_t i = 0; i < p.seqlen_q; ++i) {
        const std::size_t row = (b * p.num_heads + h) * p.seqlen_q + i;
        const float* query = p.query.data() + row * p.head_dim;
        Real* scaled = result.scaled.data() + row * p.seqlen_kv;    // (S)
        Real* capped = result.capped.data() + row * p.seqlen_kv;    // (S)
        Real* biased = result.biased.data() + row * p.seqlen_kv;    // (S)
        Real* weights = result.weights.data() + row * p.seqlen_kv;  // (S)
        Real* out = result.out.data() + row * p.head_dim_v;         // (Dv)
        std::vector<std::size_t> attended;                          // keys that take part, ascending

        // Pass 1: t = scale * q.k and its capped value, for every pair. The raw scores are an answer of their own;
        // whether a key takes part is decided after them, by selection, so that nothing of an excluded key gets
        // further.
        for (std::size_t j = 0; j < p.seqlen_kv; ++j) {
          Real dot = 0;
          for (std::size_t d = 0; d < p.head_dim; ++d) dot += Real{query[d]} * Real{keys[j * p.head_dim + d]};
          scaled[j] = scale * dot;
          capped[j] = cap > 0 ? cap * std::tanh(scaled[j] / cap) : scaled[j];
        }

        // Pass 2: the bias, and the keys that take part.
        for (std::size_t j = 0; j < p.seqlen_kv; ++j) {
          if (!p.allowed(b, h, i, j)) continue;
          const Real bias = p.bias.present() ? Real{p.bias.at(b, h, i, j)} : Real{0};
          if (bias == -kInfinity) continue;
          biased[j] = capped[j] + bias;
          attended.push_back(j);
        }

        // A row that sees nothing stays as it was set above: zeros, and a log-sum-exp of -infinity.
        if (attended.empty()) continue;

        // Pass 3: m, the largest score; NaN where any score is NaN.
        Real m = -kInfinity;
        for (const std::size_t j : attended) {
          if (std::isnan(biased[j]) || biased[j] > m) m = biased[j];
          if (std::isnan(m)) break;
        }

        // Pass 4: weights exp(s - m) and their sum Z. A score of +infinity makes s - m NaN, so the row is NaN.
        Real z = 0;
        for (const std::size_t j : attended) {
          weights[j] = std::exp(biased[j] - m);
          z += weights[j];
        }

        // Pass 5: normalised weights, log-sum-exp.
        for (const std::size_t j : attended) weights[j] /= z;
        result.lse[row] = m + std::log(z);

        // Pass 6: O = P V over the attended keys.
        for (const std::size_t j : attended) {
          for (std::size_t d = 0; d < p.head_dim_v; ++d) out[d] += weights[j] * Real{values[j * p.head_dim_v + d]};
        }
      }
    }
  }
  return result;
}

}  // namespace

Result<double> attention(const Problem& problem) { return compute<double>(problem); }

Result<float> attention_float32(const Problem& problem) { return compute<float>(problem); }

}  // namespace sdpa::reference
