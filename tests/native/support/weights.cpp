#include "support/weights.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <sstream>

#include "support/workspace.hpp"

namespace sdpa::testing {
namespace {

constexpr double kUnitRoundoff = 0x1p-24;
constexpr std::size_t kMargin = 3;

std::vector<std::int32_t> narrow(const std::vector<std::size_t>& numbers) {
  std::vector<std::int32_t> result;
  for (const std::size_t n : numbers) result.push_back(static_cast<std::int32_t>(n));
  return result;
}

WeightsKind kind_of(Summary summary) {
  switch (summary) {
    case Summary::kRows:
      return WeightsKind::kRows;
    case Summary::kColumns:
      return WeightsKind::kColumns;
    case Summary::kTopK:
      return WeightsKind::kTopK;
    case Summary::kStats:
      return WeightsKind::kStats;
    case Summary::kSum:
      return WeightsKind::kSum;
    case Summary::kMean:
      return WeightsKind::kMean;
    case Summary::kMax:
      break;
  }
  return WeightsKind::kMax;
}

std::size_t size_of_result(const Problem& p, const Choice& choice) {
  const std::size_t heads = p.batch * choice.heads.size();
  switch (choice.summary) {
    case Summary::kRows:
      return heads * choice.picks.size() * p.seqlen_kv;
    case Summary::kColumns:
      return heads * p.seqlen_q * choice.picks.size();
    case Summary::kTopK:
      return heads * p.seqlen_q * choice.top_k;
    case Summary::kStats:
      return heads * p.seqlen_q;
    case Summary::kSum:
    case Summary::kMean:
    case Summary::kMax:
      break;
  }
  return heads * (choice.row_cells.size() - 1) * (choice.column_cells.size() - 1);
}

// Cuts [0, length] at each of the numbers that lie inside.
std::vector<std::size_t> cells(std::size_t length, std::initializer_list<std::size_t> cuts) {
  std::vector<std::size_t> starts{0};
  for (const std::size_t cut : cuts) {
    if (cut > starts.back() && cut < length) starts.push_back(cut);
  }
  starts.push_back(length);
  return starts;
}

double largest_error(const std::vector<double>& exact, const std::vector<float>& plain) {
  double largest = 0;
  for (std::size_t n = 0; n < exact.size(); ++n) {
    const double error = std::fabs(plain[n] - exact[n]);
    if (std::isfinite(error)) largest = std::max(largest, error);
  }
  return largest;
}

double limit_of(double error, double value) { return 2 * error + 4 * kUnitRoundoff * std::max(1.0, std::fabs(value)); }

void expect_near(const char* what, const std::vector<double>& exact, const std::vector<float>& plain,
                 const std::vector<float>& actual) {
  ASSERT_EQ(actual.size(), exact.size()) << what;
  const double error = largest_error(exact, plain);
  std::size_t wrong = 0;
  std::ostringstream text;
  for (std::size_t n = 0; n < exact.size(); ++n) {
    if (std::isnan(exact[n]) && std::isnan(actual[n])) continue;
    if (exact[n] == 0 && plain[n] == 0 ? actual[n] == 0
                                       : std::fabs(actual[n] - exact[n]) <= limit_of(error, exact[n])) {
      continue;
    }
    if (++wrong <= 4) text << "\n  " << n << ": " << actual[n] << " instead of " << exact[n] << ", E = " << error;
  }
  EXPECT_EQ(wrong, 0U) << what << text.str();
}

}  // namespace

std::vector<Choice> every_choice(const Problem& p) {
  std::vector<std::size_t> heads(p.num_heads);
  std::iota(heads.rbegin(), heads.rend(), std::size_t{0});
  std::vector<std::size_t> rows;
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < p.seqlen_q; ++i) {
    if (i % 7 == 3 || i % 19 > 11 || i + 1 == p.seqlen_q) rows.push_back(i);
  }
  for (std::size_t j = 0; j < p.seqlen_kv; ++j) {
    if (j % 31 < 2 || j % 96 > 93 || j % 96 < 2 || j + 1 == p.seqlen_kv) columns.push_back(j);
  }
  std::vector<std::size_t> every_key(p.seqlen_kv + 1);
  std::iota(every_key.begin(), every_key.end(), std::size_t{0});
  const auto row_cells = cells(p.seqlen_q, {1, 2, 17, 18, 40, 47, 100, 191, 193});
  const auto column_cells = cells(p.seqlen_kv, {3, 4, 90, 97, 98, 150, 199});
  return {{Summary::kRows, heads, rows, 0, {}, {}},
          {Summary::kColumns, heads, columns, 0, {}, {}},
          {Summary::kTopK, heads, {}, 5, {}, {}},
          {Summary::kStats, heads, {}, 0, {}, {}},
          {Summary::kSum, heads, {}, 0, {0, p.seqlen_q}, every_key},
          {Summary::kMean, heads, {}, 0, row_cells, column_cells},
          {Summary::kMax, heads, {}, 0, row_cells, column_cells}};
}

std::string name_of(const Choice& choice) {
  constexpr const char* kNames[] = {"rows", "columns", "top k", "statistics", "sums", "means", "maxima"};
  return kNames[static_cast<std::size_t>(choice.summary)];
}

Weights ask(const KernelTable& table, const Problem& problem, const Choice& choice, const RunOptions& run,
            const AskOptions& how) {
  const Arguments arguments(problem, run);
  std::vector<float> lse;
  if (how.with_lse) {
    RunOptions forward = run;
    forward.lse = true;
    lse = testing::run(table, problem, forward).lse;
    for (float& sum : lse) sum -= how.lse_less;
  }
  const std::vector<std::int32_t> heads = narrow(choice.heads);
  const std::vector<std::int32_t> picks = narrow(choice.picks);
  const std::vector<std::int32_t> row_cells = narrow(choice.row_cells);
  const std::vector<std::int32_t> column_cells = narrow(choice.column_cells);

  WeightsTensors tensors;
  tensors.query = arguments.tensors.query;
  tensors.key = arguments.tensors.key;
  if (how.with_lse) tensors.lse = {lse.data(), {problem.batch, problem.num_heads, problem.seqlen_q, 1}};
  Weights result;
  const std::size_t count = size_of_result(problem, choice);
  result.values.assign(count + kMargin, kUnwritten);
  result.indices.assign(count + kMargin, kUnwrittenIndex);
  result.entropy.assign(count + kMargin, kUnwritten);
  if (how.sums) result.sums.assign(count + kMargin, double{kUnwritten});
  WeightsRequest request;
  request.kind = kind_of(choice.summary);
  request.picks = picks;
  request.top_k = choice.top_k;
  if (!how.defaults) {
    request.heads = heads;
    request.row_cells = row_cells;
    request.column_cells = column_cells;
  }
  const bool indices = choice.summary == Summary::kTopK || choice.summary == Summary::kStats;
  request.values = how.sums ? nullptr : result.values.data();
  request.indices = indices ? result.indices.data() : nullptr;
  request.entropy = choice.summary == Summary::kStats ? result.entropy.data() : nullptr;
  request.sums = how.sums ? result.sums.data() : nullptr;
  AttentionOptions options = arguments.options;
  options.dropout = {};
  options.scores_stage = ScoresStage::kNone;

  const WorkspaceSize size = core::attention_weights_workspace_bytes(table, tensors, request, options);
  result.status = size.status;
  if (!size.status.ok()) return result;
  const Workspace workspace(size.bytes);
  result.status = core::attention_weights(table, tensors, request, options, workspace.span());
  const auto trim = [&](auto& numbers, bool written) {
    for (std::size_t n = count; n < numbers.size(); ++n) {
      EXPECT_EQ(numbers[n], numbers.back()) << "something was written behind the result";
    }
    numbers.resize(written ? count : 0);
  };
  EXPECT_EQ(result.values.back(), kUnwritten);
  EXPECT_EQ(result.indices.back(), kUnwrittenIndex);
  EXPECT_EQ(result.entropy.back(), kUnwritten);
  trim(result.values, !how.sums);
  trim(result.indices, indices);
  trim(result.entropy, choice.summary == Summary::kStats);
  if (how.sums) trim(result.sums, true);
  return result;
}

void expect_weights(const Problem& p, const Expected& expected, const Choice& choice, const Weights& actual) {
  ASSERT_TRUE(actual.status.ok()) << actual.status.name();
  const auto exact = reference::summarise(p, expected.exact, choice);
  const auto plain = reference::summarise(p, expected.plain, choice);
  expect_near("values", exact.values, plain.values, actual.values);
  expect_near("entropy", exact.entropy, plain.entropy, actual.entropy);
  ASSERT_EQ(actual.indices.size(), exact.indices.size());
  if (exact.indices.empty()) return;
  const std::vector<double> weights = reference::weights(expected.exact);
  const double limit = limit_of(largest_error(exact.values, plain.values), 1);
  const std::size_t width = choice.summary == Summary::kTopK ? choice.top_k : 1;
  for (std::size_t line = 0; line * width < exact.indices.size(); ++line) {
    const std::size_t head = line / p.seqlen_q;
    const std::size_t b = head / choice.heads.size();
    const std::size_t row =
        (b * p.num_heads + choice.heads[head % choice.heads.size()]) * p.seqlen_q + line % p.seqlen_q;
    std::set<std::int32_t> seen;
    for (std::size_t n = line * width; n < (line + 1) * width; ++n) {
      ASSERT_EQ(actual.indices[n] < 0, exact.indices[n] < 0) << "line " << line << ", place " << n - line * width;
      if (actual.indices[n] < 0) continue;
      ASSERT_TRUE(seen.insert(actual.indices[n]).second) << "key " << actual.indices[n] << " twice";
      const double weight = weights[row * p.seqlen_kv + static_cast<std::size_t>(actual.indices[n])];
      ASSERT_NEAR(weight, exact.values[n], limit) << "line " << line << ", key " << actual.indices[n];
      if (n == line * width) continue;
      const bool descends = actual.values[n] < actual.values[n - 1] ||
                            (actual.values[n] == actual.values[n - 1] && actual.indices[n] > actual.indices[n - 1]);
      ASSERT_TRUE(descends) << "line " << line << " is not in order";
    }
  }
}

}  // namespace sdpa::testing
