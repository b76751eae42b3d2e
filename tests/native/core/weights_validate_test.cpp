// Every status that a call for weights can answer by itself, and one that it has from the forward pass; nothing may be
// written then.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>
#include <vector>

#include <gtest/gtest.h>

#include "core/faults.hpp"
#include "support/weights.hpp"

namespace sdpa::testing {
namespace {

// A call for means of two heads of the small problem, with everything that it points to.
struct Call {
  Arguments arguments{small_problem(), {}};
  std::vector<std::int32_t> heads{1, 0};
  std::vector<std::int32_t> picks{0, 2};
  std::vector<std::int32_t> row_cells;
  std::vector<std::int32_t> column_cells;
  std::vector<float> values = std::vector<float>(10000, kUnwritten);
  std::vector<float> entropy = values;
  std::vector<std::int32_t> indices = std::vector<std::int32_t>(10000, kUnwrittenIndex);
  std::vector<double> sums = std::vector<double>(10000, double{kUnwritten});
  std::vector<float> lse;
  WeightsTensors tensors;
  WeightsRequest request;

  explicit Call(WeightsKind kind) {
    tensors.query = arguments.tensors.query;
    tensors.key = arguments.tensors.key;
    const std::size_t rows = tensors.query.extent(2);
    const std::size_t keys = tensors.key.extent(2);
    lse.resize(tensors.query.extent(0) * tensors.query.extent(1) * rows);
    tensors.lse = {lse.data(), {tensors.query.extent(0), tensors.query.extent(1), rows, 1}};
    row_cells = {0, 1, static_cast<std::int32_t>(rows)};
    column_cells = {0, 2, static_cast<std::int32_t>(keys)};
    request.kind = kind;
    request.heads = heads;
    request.picks = picks;
    request.top_k = 2;
    request.row_cells = row_cells;
    request.column_cells = column_cells;
    request.values = values.data();
    request.indices = indices.data();
    request.entropy = entropy.data();
  }

  Status run(const KernelTable& table, std::size_t less = 0) {
    const WorkspaceSize size = core::attention_weights_workspace_bytes(table, tensors, request, arguments.options);
    const std::size_t bytes = size.status.ok() ? size.bytes - less : 0;
    auto* memory = static_cast<std::byte*>(::operator new (bytes + 64, std::align_val_t{kWorkspaceAlignment}));
    const Status status = core::attention_weights(table, tensors, request, arguments.options, {memory, bytes});
    EXPECT_TRUE(size.status.ok() || size.status == status);
    ::operator delete (memory, std::align_val_t{kWorkspaceAlignment});
    return status;
  }

  bool nothing_written() const {
    return std::all_of(values.begin(), values.end(), [](float x) { return x == kUnwritten; }) &&
           std::all_of(entropy.begin(), entropy.end(), [](float x) { return x == kUnwritten; }) &&
           std::all_of(indices.begin(), indices.end(), [](std::int32_t x) { return x == kUnwrittenIndex; }) &&
           std::all_of(sums.begin(), sums.end(), [](double x) { return x == double{kUnwritten}; });
  }
};

struct WeightsFault {
  const char* what;
  WeightsKind kind;
  StatusCode code;
  void (*make)(Call&);
};

constexpr auto kMeans = WeightsKind::kMean;

constexpr WeightsFault kFaults[] = {
    {"a fault of the forward pass", kMeans, kInvalidScale,
     [](Call& c) { c.arguments.options.scale = std::numeric_limits<double>::infinity(); }},
    {"dropout", kMeans, kInvalidDropout, [](Call& c) { c.arguments.options.dropout.probability = 0.5; }},
    {"a stage of the scores", kMeans, kInvalidScoresStage,
     [](Call& c) { c.arguments.options.scores_stage = ScoresStage::kWeights; }},
    {"lse of another length", kMeans, kLseShape,
     [](Call& c) {
       c.tensors.lse = {c.lse.data(), {1, 1, c.tensors.query.extent(2) + 1, 1}};
     }},
    {"a head that is not there", kMeans, kInvalidRequest,
     [](Call& c) { c.heads[1] = static_cast<std::int32_t>(c.tensors.query.extent(1)); }},
    {"a head below 0", kMeans, kInvalidRequest, [](Call& c) { c.heads[0] = -1; }},
    {"a kind that is not there", static_cast<WeightsKind>(7), kInvalidRequest, [](Call&) {}},
    {"a row that is not there", WeightsKind::kRows, kInvalidRequest,
     [](Call& c) { c.picks[1] = static_cast<std::int32_t>(c.tensors.query.extent(2)); }},
    {"a row below 0", WeightsKind::kRows, kInvalidRequest, [](Call& c) { c.picks[0] = -1; }},
    {"rows that do not ascend", WeightsKind::kRows, kInvalidRequest,
     [](Call& c) {
       c.picks = {2, 0};
     }},
    {"a key that is not there", WeightsKind::kColumns, kInvalidRequest,
     [](Call& c) { c.picks[1] = static_cast<std::int32_t>(c.tensors.key.extent(2)); }},
    {"a key twice", WeightsKind::kColumns, kInvalidRequest,
     [](Call& c) {
       c.picks = {1, 1};
     }},
    {"no number of weights", WeightsKind::kTopK, kInvalidRequest, [](Call& c) { c.request.top_k = 0; }},
    {"cells that end too early", kMeans, kInvalidRequest, [](Call& c) { --c.row_cells.back(); }},
    {"cells that do not begin at 0", kMeans, kInvalidRequest, [](Call& c) { c.column_cells.front() = 1; }},
    {"an empty cell", kMeans, kInvalidRequest, [](Call& c) { c.column_cells[1] = 0; }},
    {"cells that end too late", WeightsKind::kMax, kInvalidRequest, [](Call& c) { ++c.column_cells.back(); }},
    {"one number for cells", WeightsKind::kSum, kInvalidRequest,
     [](Call& c) { c.request.row_cells = c.request.row_cells.first(1); }},
    {"sums in double precision of means", kMeans, kInvalidRequest, [](Call& c) { c.request.sums = c.sums.data(); }},
    {"no place for the values", kMeans, kMissingTensor, [](Call& c) { c.request.values = nullptr; }},
    {"no place for the keys", WeightsKind::kTopK, kMissingTensor, [](Call& c) { c.request.indices = nullptr; }},
    {"no place for the entropy", WeightsKind::kStats, kMissingTensor, [](Call& c) { c.request.entropy = nullptr; }},
    {"more weights than there are addresses", WeightsKind::kTopK, kSizeOverflow,
     [](Call& c) { c.request.top_k = std::numeric_limits<std::size_t>::max() / 4; }},
};

constexpr WeightsKind kKinds[] = {WeightsKind::kRows, WeightsKind::kColumns, WeightsKind::kTopK, WeightsKind::kStats,
                                  WeightsKind::kSum,  WeightsKind::kMean,    WeightsKind::kMax};

TEST(ValidateWeights, TheCallsAreFineBeforeTheyAreSpoilt) {
  for (const WeightsKind kind : kKinds) {
    Call call(kind);
    if (kind == WeightsKind::kRows) call.picks.back() = static_cast<std::int32_t>(call.tensors.query.extent(2)) - 1;
    EXPECT_TRUE(call.run(*every_kernel().front()).ok());
    EXPECT_FALSE(call.nothing_written());
  }
}

TEST(ValidateWeights, EveryFaultHasItsOwnStatusAndNothingIsWritten) {
  for (const KernelTable* table : every_kernel()) {
    for (const WeightsFault& fault : kFaults) {
      SCOPED_TRACE(fault.what);
      Call call(fault.kind);
      fault.make(call);
      // The lists may lie elsewhere by now.
      call.request.picks = call.picks;
      EXPECT_STREQ(call.run(*table).name(), Status(fault.code).name());
      EXPECT_TRUE(call.nothing_written());
    }
  }
}

TEST(ValidateWeights, AWorkspaceTooSmallIsRefused) {
  for (const WeightsKind kind : kKinds) {
    Call call(kind);
    EXPECT_EQ(call.run(*every_kernel().front(), 1).code(), kWorkspaceTooSmall);
    EXPECT_TRUE(call.nothing_written());
  }
}

}  // namespace
}  // namespace sdpa::testing
