#include "support/kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <sstream>

#include "support/workspace.hpp"

namespace sdpa::kernels {

void PrintTo(const KernelTable* table, std::ostream* stream) { *stream << table->name; }

}  // namespace sdpa::kernels

namespace sdpa::testing {
namespace {

constexpr double kUnitRoundoff = 0x1p-24;
constexpr double kAbsoluteBound = 2e-6;

Status call(const KernelTable& table, const Arguments& arguments) {
  const WorkspaceSize size = core::attention_workspace_bytes(table, arguments.tensors, arguments.options);
  if (!size.status.ok()) {
    // An error of the question is the error of the call, too.
    const Workspace none(0);
    const Status status = core::attention(table, arguments.tensors, arguments.options, none.span());
    EXPECT_EQ(status.name(), size.status.name());
    return status;
  }
  const Workspace workspace(size.bytes);
  return core::attention(table, arguments.tensors, arguments.options, workspace.span());
}

bool matches(double expected, float actual, double limit) {
  if (std::isnan(expected)) return std::isnan(actual);
  if (std::isinf(expected)) return static_cast<double>(actual) == expected;
  return std::fabs(actual - expected) <= limit;  // false for NaN
}

// Largest finite error of the plain computation.
double largest_error(const std::vector<double>& exact, const std::vector<float>& plain) {
  double largest = 0;
  for (std::size_t n = 0; n < exact.size(); ++n) {
    const double error = std::fabs(plain[n] - exact[n]);
    if (std::isfinite(error)) largest = std::max(largest, error);
  }
  return largest;
}

bool unit_normal(const Problem& p) {
  const auto ordinary = [](const std::vector<float>& values) {
    return std::all_of(values.begin(), values.end(), [](float x) { return std::fabs(x) < 6; });
  };
  const double scale = p.scale ? std::fabs(*p.scale) : 0;
  return ordinary(p.query) && ordinary(p.key) && ordinary(p.value) && ordinary(p.bias.data) && ordinary(p.sinks.data) &&
         scale * std::sqrt(static_cast<double>(p.head_dim)) <= 1;
}

// The absolute bound of each row: of scores such as unit normal data give. ALiBi far from every key makes scores of
// hundreds, which float32 holds to no better than 1e-5; dropout raises what it leaves, and the error with it.
double absolute_bound(const Problem& p, double lse) {
  constexpr double kLargestScore = 16;
  if (p.alibi_slopes.present() && std::fabs(lse) > kLargestScore) return std::numeric_limits<double>::infinity();
  return kAbsoluteBound / (1 - p.dropout.probability);
}

struct Mismatches {
  std::ostringstream text;
  std::size_t count = 0;

  void add(const char* what, std::size_t row, std::size_t column, float actual, double expected, double limit) {
    if (++count > 4) return;
    text << "\n  " << what << " row " << row << " column " << column << ": " << actual << " instead of " << expected
         << " (limit " << limit << ')';
  }
};

// sum_j w_j |v_jd| of each output, dropout included: how large the terms are that were added up to give it.
std::vector<double> output_scale(const Problem& p, const reference::Result<double>& exact) {
  std::vector<double> scale(exact.out.size(), 0.0);
  const std::size_t group = p.num_heads / p.num_kv_heads;
  const double kept = 1 / (1 - p.dropout.probability);
  for (std::size_t row = 0; row < exact.lse.size(); ++row) {
    const std::size_t b = row / (p.num_heads * p.seqlen_q);
    const std::size_t h = row / p.seqlen_q % p.num_heads;
    const float* values = p.value.data() + (b * p.num_kv_heads + h / group) * p.seqlen_kv * p.head_dim_v;
    for (std::size_t j = 0; j < p.seqlen_kv; ++j) {
      const double weight = exact.weights[row * p.seqlen_kv + j] * kept;
      if (!(weight > 0) || p.dropped(b, h, row % p.seqlen_q, j)) continue;
      for (std::size_t d = 0; d < p.head_dim_v; ++d) {
        scale[row * p.head_dim_v + d] += weight * std::fabs(double{values[j * p.head_dim_v + d]});
      }
    }
  }
  return scale;
}

template <class Real>
const std::vector<Real>& scores_of(const reference::Result<Real>& result, ScoresStage stage) {
  switch (stage) {
    case ScoresStage::kScaled:
      return result.scaled;
    case ScoresStage::kCapped:
      return result.capped;
    case ScoresStage::kBiased:
      return result.biased;
    case ScoresStage::kNone:
    case ScoresStage::kWeights:
      break;
  }
  return result.weights;
}

}  // namespace

Status status_of(const KernelTable& table, const Arguments& arguments) {
  const Status status = call(table, arguments);
  if (!status.ok()) {
    EXPECT_TRUE(arguments.nothing_written()) << "an error, and yet an output was written";
  }
  return status;
}

Actual run(const KernelTable& table, const Problem& problem, const RunOptions& options) {
  const Arguments arguments(problem, options);
  Actual actual;
  actual.status = call(table, arguments);
  EXPECT_TRUE(actual.status.ok()) << actual.status.name() << " for " << describe(problem);
  EXPECT_TRUE(arguments.gaps_untouched()) << "written outside the outputs: " << describe(problem);
  actual.out = arguments.out();
  actual.lse = arguments.lse();
  actual.scores = arguments.scores();
  return actual;
}

Expected expected(const Problem& problem) {
  return {reference::attention(problem), reference::attention_float32(problem)};
}

void expect_close(const Problem& p, const Expected& expected, const Actual& actual, ScoresStage stage) {
  const auto& exact = expected.exact;
  ASSERT_EQ(actual.out.size(), exact.out.size());
  Mismatches wrong;

  const std::vector<double> scale = output_scale(p, exact);
  const double plain_error = largest_error(exact.out, expected.plain.out);
  const bool is_unit_normal = unit_normal(p);
  for (std::size_t n = 0; n < exact.out.size(); ++n) {
    const double most =
        is_unit_normal ? absolute_bound(p, exact.lse[n / p.head_dim_v]) : std::numeric_limits<double>::infinity();
    const double limit = scale[n] == 0 ? 0 : std::min(most, 2 * plain_error + 4 * kUnitRoundoff * scale[n]);
    if (!matches(exact.out[n], actual.out[n], limit))
      wrong.add("out", n / p.head_dim_v, n % p.head_dim_v, actual.out[n], exact.out[n], limit);
  }

  const auto compare = [&](const char* what, const std::vector<double>& truth, const std::vector<float>& plain,
                           const std::vector<float>& ours, std::size_t columns) {
    ASSERT_EQ(ours.size(), truth.size());
    const double error = largest_error(truth, plain);
    for (std::size_t n = 0; n < truth.size(); ++n) {
      const double limit = 2 * error + 4 * kUnitRoundoff * std::max(1.0, std::fabs(truth[n]));
      if (!matches(truth[n], ours[n], limit)) wrong.add(what, n / columns, n % columns, ours[n], truth[n], limit);
    }
  };
  if (!actual.lse.empty()) compare("lse", exact.lse, expected.plain.lse, actual.lse, 1);
  if (stage != ScoresStage::kNone) {
    compare("scores", scores_of(exact, stage), scores_of(expected.plain, stage), actual.scores, p.seqlen_kv);
  }

  EXPECT_EQ(wrong.count, 0U) << describe(p) << wrong.text.str();
}

void expect_matches_reference(const KernelTable& table, const Problem& problem, const RunOptions& options) {
  expect_close(problem, expected(problem), run(table, problem, options), options.scores_stage);
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

std::vector<const KernelTable*> every_kernel() {
  const auto tables = core::available_kernels();
  return {tables.begin(), tables.end()};
}

std::string kernel_name(const ::testing::TestParamInfo<const KernelTable*>& info) {
  std::string name = info.param->name;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

}  // namespace sdpa::testing
