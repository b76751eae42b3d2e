#include "reference/gradients.hpp"

#include <cmath>
#include <limits>

namespace sdpa::reference {
namespace {

// What a sum is made of: its terms, or their absolute values.
enum class Terms { kSigned, kAbsolute };

template <class Real, Terms kTerms>
class Backward {
 public:
  Backward(const Problem& problem, const Upstream& upstream, const Result<Real>& forward)
      : p_(problem), up_(upstream), forward_(forward) {
    scale_ = p_.scale ? Real{*p_.scale} : Real{1} / std::sqrt(static_cast<Real>(p_.head_dim));
    kept_ = Real{1} / (Real{1} - static_cast<Real>(p_.dropout.probability));
    g_.query.assign(p_.query.size(), Real{0});
    g_.key.assign(p_.key.size(), Real{0});
    g_.value.assign(p_.value.size(), Real{0});
    g_.bias.assign(p_.bias.data.size(), Real{0});
    g_.sinks.assign(p_.sinks.data.size(), Real{0});
    g_.alibi_slopes.assign(p_.alibi_slopes.data.size(), Real{0});
  }

  Gradients<Real> run() {
    for (std::size_t b = 0; b < p_.batch; ++b) {
      for (std::size_t h = 0; h < p_.num_heads; ++h) {
        for (std::size_t i = 0; i < p_.seqlen_q; ++i) {
          row(b, h, i);
        }
      }
    }
    return g_;
  }

 private:
  static constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

  static Real term(Real x) { return kTerms == Terms::kAbsolute ? std::fabs(x) : x; }
  static Real difference(Real a, Real b) { return kTerms == Terms::kAbsolute ? a + b : a - b; }

  void row(std::size_t b, std::size_t h, std::size_t i) {
    const std::size_t row = (b * p_.num_heads + h) * p_.seqlen_q + i;
    const std::size_t g = b * p_.num_kv_heads + h / (p_.num_heads / p_.num_kv_heads);
    const float* query = p_.query.data() + row * p_.head_dim;
    const float* d_out = up_.d_out.data() + row * p_.head_dim_v;
    const Real* biased = forward_.biased.data() + row * p_.seqlen_kv;
    const Real lse = forward_.lse[row];

    // Pass 1: D = dO . O - dLSE. Of a row that sees nothing O is 0, whatever stands in dO.
    Real delta = 0;
    for (std::size_t c = 0; c < p_.head_dim_v; ++c) {
      const Real o = forward_.out[row * p_.head_dim_v + c];
      if (o != 0) delta += term(Real{d_out[c]} * o);
    }
    if (!up_.d_lse.empty()) delta = difference(delta, term(Real{up_.d_lse[row]}));

    // Pass 2: every key that takes part.
    for (std::size_t j = 0; j < p_.seqlen_kv; ++j) {
      if (biased[j] == -kInfinity) continue;
      const float* key = p_.key.data() + (g * p_.seqlen_kv + j) * p_.head_dim;
      const float* value = p_.value.data() + (g * p_.seqlen_kv + j) * p_.head_dim_v;
      const Real weight = std::exp(biased[j] - lse);
      const bool dropped = p_.dropped(b, h, i, j);

      Real d_weight = 0;
      if (!dropped) {
        for (std::size_t c = 0; c < p_.head_dim_v; ++c) {
          d_weight += term(Real{d_out[c]} * Real{value[c]});
          g_.value[(g * p_.seqlen_kv + j) * p_.head_dim_v + c] += term(weight * kept_ * Real{d_out[c]});
        }
        d_weight *= kept_;  // infinite where nothing is kept
      }

      const Real d_score = weight * difference(d_weight, delta);
      if (p_.bias.present()) g_.bias[bias_index(b, h, i, j)] += d_score;
      if (p_.alibi_slopes.present()) {
        const Problem::Positions at = *p_.positions(b, i, j);
        const std::int64_t distance = at.query > at.key ? at.query - at.key : at.key - at.query;
        const std::size_t slope = p_.alibi_slopes.per_batch ? b * p_.num_heads + h : h;
        g_.alibi_slopes[slope] += term(-d_score * static_cast<Real>(distance));
      }

      Real d_product = d_score;  // of the score before the softcap
      if (p_.softcap > 0) {
        const Real share = forward_.capped[row * p_.seqlen_kv + j] / Real{p_.softcap};
        d_product *= (1 - share) * (1 + share);
      }
      Real product = 0;  // q.k
      for (std::size_t d = 0; d < p_.head_dim; ++d) {
        product += term(Real{query[d]} * Real{key[d]});
        g_.query[row * p_.head_dim + d] += term(d_product * scale_ * Real{key[d]});
        g_.key[(g * p_.seqlen_kv + j) * p_.head_dim + d] += term(d_product * scale_ * Real{query[d]});
      }
      g_.scale += d_product * product;
    }

    // Pass 3: the sink, a key without a value: dS = P (0 - D).
    if (p_.sinks.present() && lse != -kInfinity) {
      const Real weight = std::exp(Real{p_.sinks.at(b, h, p_.num_heads)} - lse);
      g_.sinks[p_.sinks.per_batch ? b * p_.num_heads + h : h] += term(-weight * delta);
    }
  }

  std::size_t bias_index(std::size_t b, std::size_t h, std::size_t i, std::size_t j) const {
    return static_cast<std::size_t>(&p_.bias.at(b, h, i, j) - p_.bias.data.data());
  }

  const Problem& p_;
  const Upstream& up_;
  const Result<Real>& forward_;
  Real scale_;
  Real kept_;
  Gradients<Real> g_;
};

}  // namespace

Gradients<double> gradients(const Problem& problem, const Upstream& upstream) {
  return Backward<double, Terms::kSigned>(problem, upstream, attention(problem)).run();
}

Gradients<float> gradients_float32(const Problem& problem, const Upstream& upstream) {
  return Backward<float, Terms::kSigned>(problem, upstream, attention_float32(problem)).run();
}

Gradients<double> gradient_sizes(const Problem& problem, const Upstream& upstream) {
  return Backward<double, Terms::kAbsolute>(problem, upstream, attention(problem)).run();
}

}  // namespace sdpa::reference
