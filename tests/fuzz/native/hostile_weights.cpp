#include <cstdio>
#include <vector>

#include "broken.hpp"
#include "hostile.hpp"
#include "support/arguments.hpp"
#include "support/workspace.hpp"

namespace sdpa::fuzzing {
namespace {

// Numbers of a result, more than any call that is run has.
constexpr std::size_t kMostNumbers = 1U << 20;

struct Results {
  std::vector<float> values, entropy;
  std::vector<std::int32_t> indices;
  std::vector<double> sums;
};

// Numbers that the answer has, or kMost where they are too many.
std::size_t numbers_of(const WeightsTensors& t, const WeightsRequest& r) {
  const std::size_t rows = t.query.extent(2);
  const std::size_t keys = t.key.extent(2);
  std::size_t height = rows;
  std::size_t width = 1;
  if (r.kind == WeightsKind::kRows) {
    height = r.picks.size();
    width = keys;
  } else if (r.kind == WeightsKind::kColumns) {
    width = r.picks.size();
  } else if (r.kind == WeightsKind::kTopK) {
    width = r.top_k;
  } else if (r.kind >= WeightsKind::kSum) {
    height = r.row_cells.empty() ? 1 : r.row_cells.size() - 1;
    width = r.column_cells.empty() ? keys : r.column_cells.size() - 1;
  }
  std::size_t count = t.query.extent(0);
  for (const std::size_t factor : {r.heads.empty() ? t.query.extent(1) : r.heads.size(), height, width}) {
    if (factor != 0 && count > kMostNumbers / factor) return kMost;
    count *= factor;
  }
  return count;
}

WeightsRequest any_request(Bytes& bytes, const WeightsTensors& t) {
  WeightsRequest r;
  r.kind = static_cast<WeightsKind>(bytes.choose({0, 1, 2, 3, 4, 5, 6, 7, 255}));
  if (bytes.chance(100)) r.heads = any_list(bytes, 1);
  if (bytes.chance(180)) r.picks = any_list(bytes, 2);
  r.top_k = bytes.chance(100) ? any_size(bytes, 3) : bytes.size(0, 9);
  if (bytes.chance(100)) r.row_cells = any_list(bytes, t.query.extent(2) + 1);
  if (bytes.chance(100)) r.column_cells = any_list(bytes, t.key.extent(2) + 1);
  return r;
}

}  // namespace

bool survives_weights_faults(Bytes& bytes, const Drawn& drawn) {
  RunOptions run = drawn.run;
  run.scores_stage = ScoresStage::kNone;
  const testing::Arguments was(drawn.problem, run);
  testing::Arguments a(drawn.problem, run);
  const AttentionOptions had = a.options;
  if (bytes.chance(240)) a.options.dropout = {};
  WeightsTensors t;
  t.query = a.tensors.query;
  t.key = a.tensors.key;
  WeightsRequest r = any_request(bytes, t);
  if (bytes.chance(60)) break_option(bytes, t.query.extents(), t.key.extents(), a.options);
  // Places for the answer: of one number until it is known how many there are.
  Results results{{0}, {0}, {0}, {0}};
  const auto place = [&] {
    if (r.values != nullptr) r.values = results.values.data();
    if (r.indices != nullptr) r.indices = results.indices.data();
    if (r.entropy != nullptr) r.entropy = results.entropy.data();
    if (r.sums != nullptr) r.sums = results.sums.data();
  };
  r.values = bytes.chance(230) ? results.values.data() : nullptr;
  r.indices = bytes.chance(200) ? results.indices.data() : nullptr;
  r.entropy = bytes.chance(200) ? results.entropy.data() : nullptr;
  r.sums = bytes.chance(40) ? results.sums.data() : nullptr;
  const WorkspaceSize size = core::attention_weights_workspace_bytes(*drawn.table, t, r, a.options);
  if (size.status.ok()) {
    const std::size_t count = numbers_of(t, r);
    if (count > kMostNumbers || size.bytes >= std::size_t{1} << 26 || !operands_within(a.options, had, true))
      return true;
    results = {std::vector<float>(count), std::vector<float>(count), std::vector<std::int32_t>(count),
               std::vector<double>(count)};
    place();
  }
  const testing::Workspace workspace(size.status.ok() ? size.bytes : 0);
  const Status status = core::attention_weights(*drawn.table, t, r, a.options, workspace.span());
  if (status == size.status) return true;
  std::fprintf(stderr, "the call answers %s, not %s\n", status.name(), size.status.name());
  return false;
}

}  // namespace sdpa::fuzzing
