#include "check.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace sdpa::fuzzing {
namespace {

constexpr double kUnitRoundoff = 0x1p-24;

template <class Real>
double largest(const std::vector<Real>& values) {
  double result = 0;
  for (const Real value : values) {
    const double size = std::fabs(static_cast<double>(value));
    if (std::isfinite(size)) result = std::max(result, size);
  }
  return result;
}

template <class Limit>
bool all_close(const char* what, const std::vector<double>& exact, const std::vector<float>& actual, Limit limit) {
  if (exact.size() != actual.size()) {
    std::fprintf(stderr, "%s: %zu numbers instead of %zu\n", what, actual.size(), exact.size());
    return false;
  }
  for (std::size_t n = 0; n < exact.size(); ++n) {
    if (is_close(exact[n], double{actual[n]}, limit(n))) continue;
    std::fprintf(stderr, "%s[%zu]: %.9g instead of %.17g, limit %g\n", what, n, double{actual[n]}, exact[n], limit(n));
    return false;
  }
  return true;
}

const std::vector<double>& scores_of(const Exact& exact, ScoresStage stage) {
  if (stage == ScoresStage::kScaled) return exact.scaled;
  if (stage == ScoresStage::kCapped) return exact.capped;
  return stage == ScoresStage::kBiased ? exact.biased : exact.weights;
}

}  // namespace

bool is_close(double exact, double actual, double limit) {
  if (std::isnan(exact)) return std::isnan(actual);
  if (std::isinf(exact)) return actual == exact;
  return std::fabs(actual - exact) <= limit;  // false for NaN
}

Bounds bounds_of(const Problem& p, const Exact& exact) {
  const auto dim = static_cast<double>(p.head_dim);
  const double scale = p.scale ? std::fabs(double{*p.scale}) : 1 / std::sqrt(dim);
  // The terms of a product, none of which cancels, and what a score consists of after it.
  const double product = scale * dim * largest(p.query) * largest(p.key);
  const double score = product + largest(exact.biased) + largest(p.bias.data) + 1;
  Bounds bounds;
  bounds.score = 8 * kUnitRoundoff * score;
  bounds.weight = 4 * bounds.score + (64 + static_cast<double>(p.seqlen_kv)) * kUnitRoundoff;
  bounds.value = largest(p.value) / (1 - p.dropout.probability);
  return bounds;
}

bool outputs_are_close(const Problem& p, const Exact& exact, const testing::Actual& actual, ScoresStage stage) {
  const Bounds bounds = bounds_of(p, exact);
  const auto out = [&](std::size_t n) {
    return std::isinf(exact.lse[n / p.head_dim_v]) ? 0 : bounds.weight * bounds.value;
  };
  const auto lse = [&](std::size_t n) {
    return bounds.score + bounds.weight + 8 * kUnitRoundoff * std::fabs(exact.lse[n]);
  };
  const auto scores = [&](std::size_t) { return stage == ScoresStage::kWeights ? bounds.weight : bounds.score; };
  return all_close("out", exact.out, actual.out, out) &&
         (actual.lse.empty() || all_close("lse", exact.lse, actual.lse, lse)) &&
         (stage == ScoresStage::kNone || all_close("scores", scores_of(exact, stage), actual.scores, scores));
}

bool outputs_are_finite(const testing::Expected& expected, const testing::Actual& actual) {
  for (std::size_t n = 0; n < actual.out.size(); ++n) {
    if (std::isfinite(actual.out[n]) || !std::isfinite(expected.exact.out[n]) ||
        !std::isfinite(expected.plain.out[n])) {
      continue;
    }
    std::fprintf(stderr, "out[%zu] is %g and should be %g\n", n, double{actual.out[n]}, expected.exact.out[n]);
    return false;
  }
  return true;
}

bool gradients_are_close(const Bounds& bounds, const reference::Gradients<double>& exact,
                         const reference::Gradients<double>& terms, const reference::Gradients<float>& actual) {
  const auto compare = [&](const char* what, const std::vector<double>& truth, const std::vector<double>& sizes,
                           const std::vector<float>& ours) {
    // What the row's own sum dO . O is off by is not among an element's terms.
    const double others = largest(sizes);
    return all_close(what, truth, ours,
                     [&](std::size_t n) { return sizes[n] == 0 ? 0 : 8 * bounds.weight * (sizes[n] + others); });
  };
  return compare("d_query", exact.query, terms.query, actual.query) &&
         compare("d_key", exact.key, terms.key, actual.key) &&
         compare("d_value", exact.value, terms.value, actual.value) &&
         compare("d_bias", exact.bias, terms.bias, actual.bias) &&
         compare("d_sinks", exact.sinks, terms.sinks, actual.sinks) &&
         compare("d_alibi_slopes", exact.alibi_slopes, terms.alibi_slopes, actual.alibi_slopes) &&
         compare("d_scale", {exact.scale}, {terms.scale}, {actual.scale});
}

}  // namespace sdpa::fuzzing
