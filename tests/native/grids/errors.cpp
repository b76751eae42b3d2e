#include "grids/errors.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <vector>

namespace sdpa::grids {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double difference(double truth, double actual) {
  if (std::isnan(truth) || std::isinf(truth)) {
    const bool same = std::isnan(truth) ? std::isnan(actual) : actual == truth;
    return same ? 0 : kInfinity;
  }
  const double error = std::fabs(actual - truth);
  return std::isfinite(error) ? error : kInfinity;
}

double rounding_of(const std::vector<double>& exact) {
  double largest = 0;
  for (const double x : exact) {
    const auto value = static_cast<float>(x);
    const float sum = value + 0.3F;
    largest = std::max(largest, std::fabs(double{sum - 0.3F} - value));
  }
  return 2 * largest;
}

}  // namespace

void Errors::add(const Problem& p, const Outputs& outputs, std::span<const std::size_t> picks, const ChosenRows& rows) {
  for (std::size_t row = 0; row < rows.exact.lse.size(); ++row) {
    const std::size_t b = row / picks.size() / p.num_heads;
    const std::size_t h = row / picks.size() % p.num_heads;
    const std::size_t i = picks[row % picks.size()];
    const float* actual = outputs.row(b, h, i);
    const double truth = rows.exact.lse[row];
    double largest = 0;
    for (std::size_t d = 0; d < p.head_dim_v; ++d) {
      const double exact = rows.exact.out[row * p.head_dim_v + d];
      largest = std::max(largest, difference(exact, actual[d]));
      plain_out = std::max(plain_out, difference(exact, rows.plain.out[row * p.head_dim_v + d]));
      // Of nothing seen nothing is left.
      if (truth == -kInfinity && actual[d] != 0) largest = kInfinity;
    }
    if (largest > out) {
      std::ostringstream text;
      text << "batch row " << b << " head " << h << " query " << i;
      where = text.str();
      out = largest;
    }
    lse = std::max(lse, difference(truth, outputs.lse[(b * p.num_heads + h) * p.seqlen_q + i]));
    plain_lse = std::max(plain_lse, difference(truth, rows.plain.lse[row]));
    if (std::isfinite(truth)) largest_lse = std::max(largest_lse, std::fabs(truth));
  }
  rounding = std::max(rounding, rounding_of(rows.exact.out));
}

}  // namespace sdpa::grids
