#include "reference/attention.hpp"

#include <cmath>
#include <limits>

#include "reference/philox.hpp"

namespace sdpa::reference {
namespace {

std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace

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

std::optional<Problem::Positions> Problem::positions(std::size_t b, std::size_t i, std::size_t j) const {
  const auto row = static_cast<std::int64_t>(i);
  const auto column = static_cast<std::int64_t>(j);
  if (query_starts.empty()) return Positions{row + offset(b), column};
  const std::int64_t whole_row = row + static_cast<std::int64_t>(origin.row);
  for (std::size_t s = 0; s + 1 < query_starts.size(); ++s) {
    const std::int64_t query_begin = query_starts[s];
    const std::int64_t query_end = query_starts[s + 1];
    const std::int64_t key_begin = key_starts[s];
    const std::int64_t key_end = key_starts[s + 1];
    if (whole_row < query_begin || whole_row >= query_end || column < key_begin || column >= key_end) continue;
    const bool lower_right = align == Align::kNone || align == Align::kLowerRight;
    const std::int64_t shift = lower_right ? (key_end - key_begin) - (query_end - query_begin) : offset(b);
    return Positions{whole_row - query_begin + shift, column - key_begin};
  }
  return std::nullopt;
}

bool Problem::allowed(std::size_t b, std::size_t h, std::size_t i, std::size_t j) const {
  if (!query_lengths.empty() && static_cast<std::int64_t>(i) >= query_lengths[b]) return false;
  if (!kv_lengths.empty() && static_cast<std::int64_t>(j) >= kv_lengths[b]) return false;
  const std::optional<Positions> at = positions(b, i, j);
  if (!at) return false;
  if (causal && at->key > at->query) return false;
  if (window_right >= 0 && at->key > at->query + window_right) return false;
  if (at->key >= global_keys) {
    if (window_left >= 0 && at->key < at->query - window_left) return false;
    if (chunk > 0 && floor_divide(at->query, chunk) != floor_divide(at->key, chunk)) return false;
  }
  if (!query_segments.empty() && query_segments[b * seqlen_q + i] != key_segments[b * seqlen_kv + j]) return false;
  if (block_mask.present() && block_mask.at(b + origin.batch, h + origin.head, i + origin.row, j) == 0) return false;
  return !mask.present() || mask.at(b, h, i, j) != 0;
}

bool Problem::dropped(std::size_t b, std::size_t h, std::size_t i, std::size_t j) const {
  if (dropout.probability == 0) return false;
  const auto word = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const std::array<std::uint32_t, 4> counter{word(j / 4), word(i + origin.row), word(h + origin.head),
                                             word(b + origin.batch)};
  const auto random = philox4x32(counter, {word(dropout.seed), word(dropout.seed >> 32)});
  // At probability 1 the bound is 2^32, past every word.
  return static_cast<double>(random[j % 4]) < std::floor(dropout.probability * 0x1p32);
}

namespace {

template <class Real>
Result<Real> compute(const Problem& p) {
  constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
  const std::size_t rows = p.batch * p.num_heads * p.seqlen_q;
  const std::size_t cells = rows * p.seqlen_kv;
  const Real scale = p.scale ? Real{*p.scale} : Real{1} / std::sqrt(static_cast<Real>(p.head_dim));
  const Real cap{p.softcap};
  const Real kept = Real{1} / (Real{1} - static_cast<Real>(p.dropout.probability));  // what a kept weight is times

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
        const Real sink = p.sinks.present() ? Real{p.sinks.at(b, h, p.num_heads)} : -kInfinity;

        // Pass 1: t = scale * q.k and its capped value, for every pair. The raw scores are an answer of their own;
        // whether a key takes part is decided after them, by selection, so that nothing of an excluded key gets
        // further.
        for (std::size_t j = 0; j < p.seqlen_kv; ++j) {
          Real dot = 0;
          for (std::size_t d = 0; d < p.head_dim; ++d) dot += Real{query[d]} * Real{keys[j * p.head_dim + d]};
          scaled[j] = scale * dot;
          capped[j] = cap > 0 ? cap * std::tanh(scaled[j] / cap) : scaled[j];
        }

        // Pass 2: the bias and the distance, and the keys that take part.
        for (std::size_t j = 0; j < p.seqlen_kv; ++j) {
          if (!p.allowed(b, h, i, j)) continue;
          const Real bias = p.bias.present() ? Real{p.bias.at(b, h, i, j)} : Real{0};
          if (bias == -kInfinity) continue;
          biased[j] = capped[j] + bias;
          if (p.alibi_slopes.present()) {
            const Problem::Positions at = *p.positions(b, i, j);
            const std::int64_t distance = at.query > at.key ? at.query - at.key : at.key - at.query;
            biased[j] -= Real{p.alibi_slopes.at(b, h, p.num_heads)} * static_cast<Real>(distance);
          }
          attended.push_back(j);
        }

        // A row that sees nothing stays as it was set above: zeros, and a log-sum-exp of its sink or of -infinity.
        result.lse[row] = sink;
        if (attended.empty()) continue;

        // Pass 3: m, the largest score, a sink among them; NaN where any score is NaN.
        Real m = sink;
        for (const std::size_t j : attended) {
          if (std::isnan(biased[j]) || biased[j] > m) m = biased[j];
          if (std::isnan(m)) break;
        }

        // Pass 4: weights exp(s - m) and their sum Z. A score of +infinity makes s - m NaN, so the row is NaN.
        Real z = sink == -kInfinity ? Real{0} : std::exp(sink - m);
        for (const std::size_t j : attended) {
          weights[j] = std::exp(biased[j] - m);
          z += weights[j];
        }

        // Pass 5: normalised weights, log-sum-exp.
        for (const std::size_t j : attended) weights[j] /= z;
        result.lse[row] = m + std::log(z);

        // Pass 6: O = drop(P) V over the attended keys.
        for (const std::size_t j : attended) {
          if (p.dropped(b, h, i, j)) continue;
          const Real weight = weights[j] * kept;
          for (std::size_t d = 0; d < p.head_dim_v; ++d) out[d] += weight * Real{values[j * p.head_dim_v + d]};
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
