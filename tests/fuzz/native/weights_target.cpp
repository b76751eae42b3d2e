// Weights without their matrix, of every kind: valid calls against the oracle, broken ones against validate_weights().

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "check.hpp"
#include "draw.hpp"
#include "hostile.hpp"
#include "support/weights.hpp"

namespace {

using namespace sdpa::fuzzing;
using sdpa::reference::Choice;
using sdpa::reference::Summary;

std::vector<std::size_t> some(Bytes& bytes, std::size_t length) {
  std::vector<std::size_t> picks;
  const int of256 = bytes.byte();
  for (std::size_t n = 0; n < length; ++n) {
    if (bytes.chance(of256)) picks.push_back(n);
  }
  return picks;
}

// Starts of cells, and the end.
std::vector<std::size_t> cells(Bytes& bytes, std::size_t length) {
  std::vector<std::size_t> starts{0};
  for (std::size_t n = 1; n < length; ++n) {
    if (bytes.chance(30)) starts.push_back(n);
  }
  starts.push_back(length);
  return starts;
}

Choice draw_choice(Bytes& bytes, const Problem& p) {
  Choice choice;
  choice.summary = static_cast<Summary>(bytes.size(0, static_cast<std::size_t>(Summary::kMax)));
  // At least one, in any order: none stands for all.
  const std::size_t count = bytes.size(1, 4);
  for (std::size_t n = 0; n < count; ++n) choice.heads.push_back(bytes.size(0, p.num_heads - 1));
  if (choice.summary == Summary::kRows) choice.picks = some(bytes, p.seqlen_q);
  if (choice.summary == Summary::kColumns) choice.picks = some(bytes, p.seqlen_kv);
  if (choice.summary == Summary::kTopK) choice.top_k = bytes.size(1, 12);
  if (choice.summary >= Summary::kSum) {
    choice.row_cells = cells(bytes, p.seqlen_q);
    choice.column_cells = cells(bytes, p.seqlen_kv);
  }
  return choice;
}

bool weights_are_close(const Problem& p, const Exact& exact, const Choice& choice,
                       const sdpa::testing::Weights& actual) {
  const auto truth = sdpa::reference::summarise(p, exact, choice);
  const double part = bounds_of(p, exact).weight;
  // Sums may have many weights of 1.
  const double most = choice.summary == Summary::kSum ? static_cast<double>(p.seqlen_q) : 1;
  for (std::size_t n = 0; n < truth.values.size(); ++n) {
    if (is_close(truth.values[n], double{actual.values[n]}, part * most)) continue;
    std::fprintf(stderr, "value %zu: %g instead of %g\n", n, double{actual.values[n]}, truth.values[n]);
    return false;
  }
  for (std::size_t n = 0; n < truth.indices.size(); ++n) {
    // Of keys with as large a weight either may be named.
    if ((truth.indices[n] < 0) == (actual.indices[n] < 0)) continue;
    std::fprintf(stderr, "index %zu: %d instead of %ld\n", n, actual.indices[n], static_cast<long>(truth.indices[n]));
    return false;
  }
  const double logarithm = 1 + std::log(static_cast<double>(p.seqlen_kv));
  for (std::size_t n = 0; n < truth.entropy.size(); ++n) {
    if (is_close(truth.entropy[n], double{actual.entropy[n]}, 4 * part * logarithm)) continue;
    std::fprintf(stderr, "entropy %zu: %g instead of %g\n", n, double{actual.entropy[n]}, truth.entropy[n]);
    return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  const bool broken = bytes.chance(80);
  const Drawn drawn = draw(bytes);
  auto [problem, run, table, wild] = drawn;
  if (broken) {
    require(survives_weights_faults(bytes, drawn), problem, "a broken call");
    return 0;
  }
  if (problem.batch * problem.num_heads * problem.seqlen_q * problem.seqlen_kv == 0) return 0;
  problem.dropout = {};
  const Choice choice = draw_choice(bytes, problem);
  const auto actual = sdpa::testing::ask(*table, problem, choice, run, {.with_lse = bytes.chance(128)});
  require(actual.status.ok(), problem, actual.status.name());
  if (wild) return 0;
  require(weights_are_close(problem, sdpa::reference::attention(problem), choice, actual), problem,
          sdpa::testing::name_of(choice).c_str());
  return 0;
}
