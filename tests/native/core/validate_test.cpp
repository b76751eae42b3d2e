// Every status that a call can answer, provoked; nothing may be written then.
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <new>
#include <string>

#include <gtest/gtest.h>

#include "support/kernels.hpp"

namespace sdpa::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Problem small_problem() {
  return make_problem(
      {.seqlen_q = 3, .seqlen_kv = 5, .head_dim = 4, .head_dim_v = 2, .batch = 2, .num_heads = 4, .num_kv_heads = 2});
}

// The same data seen with another extent along one dimension.
InputView with_extent(const InputView& view, std::size_t rank, std::size_t extent) {
  Extents extents = view.extents();
  extents[rank] = extent;
  return {view.data_handle(), view.dtype(), extents, contiguous_strides(view.extents())};
}

template <class T>
TensorView<T> with_extent(const TensorView<T>& view, std::size_t rank, std::size_t extent) {
  Extents extents = view.extents();
  extents[rank] = extent;
  return {view.data_handle(), extents, contiguous_strides(view.extents())};
}

InputView with_column_stride(const InputView& view) {
  Strides strides = contiguous_strides(view.extents());
  strides[3] = 2;
  return {view.data_handle(), view.dtype(), view.extents(), strides};
}

constexpr auto kBadDtype = static_cast<DType>(7);

struct Fault {
  const char* what;
  StatusCode code;
  void (*make)(Arguments&);
  RunOptions run{};
};

const std::array<std::uint8_t, 64> kMaskData{};
const std::array<float, 64> kBiasData{};
const std::array<std::int32_t, 3> kThree{1, 1, 1};
const std::array<std::int32_t, 2> kNegative{1, -1};
const std::array<std::int32_t, 2> kPastQueries{3, 4};
const std::array<std::int32_t, 2> kPastKeys{6, 5};
const std::array<std::int32_t, 2> kTwo{1, 1};

using enum StatusCode;

// Plain data: an initialiser list of objects with destructors takes minutes to compile under the sanitizers.
constexpr Fault kFaults[] = {
    {"no query", kMissingTensor,
     [](Arguments& a) { a.tensors.query = InputView(nullptr, DType::kFloat32, a.tensors.query.extents()); }},
    {"no key", kMissingTensor,
     [](Arguments& a) { a.tensors.key = InputView(nullptr, DType::kFloat32, a.tensors.key.extents()); }},
    {"no value", kMissingTensor,
     [](Arguments& a) { a.tensors.value = InputView(nullptr, DType::kFloat32, a.tensors.value.extents()); }},
    {"no out", kMissingTensor,
     [](Arguments& a) { a.tensors.out = TensorView<float>(nullptr, a.tensors.out.extents()); }},
    {"query of no type", kInvalidDtype,
     [](Arguments& a) {
       a.tensors.query = InputView(a.tensors.query.data_handle(), kBadDtype, a.tensors.query.extents());
     }},
    {"key of no type", kInvalidDtype,
     [](Arguments& a) { a.tensors.key = InputView(a.tensors.key.data_handle(), kBadDtype, a.tensors.key.extents()); }},
    {"value of no type", kInvalidDtype,
     [](Arguments& a) {
       a.tensors.value = InputView(a.tensors.value.data_handle(), kBadDtype, a.tensors.value.extents());
     }},
    {"bias of no type", kInvalidDtype,
     [](Arguments& a) {
       a.options.bias = InputView(kBiasData.data(), kBadDtype, {1, 1, 1, 5});
     }},
    {"key of another batch", kBatchMismatch, [](Arguments& a) { a.tensors.key = with_extent(a.tensors.key, 0, 1); }},
    {"value of another batch", kBatchMismatch,
     [](Arguments& a) { a.tensors.value = with_extent(a.tensors.value, 0, 1); }},
    {"value of other heads", kHeadsMismatch,
     [](Arguments& a) { a.tensors.value = with_extent(a.tensors.value, 1, 1); }},
    {"three query heads over two", kHeadsNotMultiple,
     [](Arguments& a) { a.tensors.query = with_extent(a.tensors.query, 1, 3); }},
    {"one query head over two", kHeadsNotMultiple,
     [](Arguments& a) { a.tensors.query = with_extent(a.tensors.query, 1, 1); }},
    {"no key heads", kHeadsNotMultiple,
     [](Arguments& a) {
       a.tensors.key = with_extent(a.tensors.key, 1, 0);
       a.tensors.value = with_extent(a.tensors.value, 1, 0);
     }},
    {"value of another length", kSeqlenMismatch,
     [](Arguments& a) { a.tensors.value = with_extent(a.tensors.value, 2, 4); }},
    {"key of another head size", kHeadDimMismatch,
     [](Arguments& a) { a.tensors.key = with_extent(a.tensors.key, 3, 3); }},
    {"head size 0", kHeadDimZero,
     [](Arguments& a) {
       a.tensors.query = with_extent(a.tensors.query, 3, 0);
       a.tensors.key = with_extent(a.tensors.key, 3, 0);
     }},
    {"value head size 0", kHeadDimZero,
     [](Arguments& a) {
       a.tensors.value = with_extent(a.tensors.value, 3, 0);
       a.tensors.out = with_extent(a.tensors.out, 3, 0);
     }},
    {"query with gaps between columns", kColumnStride,
     [](Arguments& a) { a.tensors.query = with_column_stride(a.tensors.query); }},
    {"key with gaps between columns", kColumnStride,
     [](Arguments& a) { a.tensors.key = with_column_stride(a.tensors.key); }},
    {"value with gaps between columns", kColumnStride,
     [](Arguments& a) { a.tensors.value = with_column_stride(a.tensors.value); }},
    {"out with gaps between columns", kColumnStride,
     [](Arguments& a) {
       Strides strides = contiguous_strides(a.tensors.out.extents());
       strides[3] = 2;
       a.tensors.out = TensorView<float>(a.tensors.out.data_handle(), a.tensors.out.extents(), strides);
     }},
    {"out of another head size", kOutShape, [](Arguments& a) { a.tensors.out = with_extent(a.tensors.out, 3, 1); }},
    {"out of another batch", kOutShape, [](Arguments& a) { a.tensors.out = with_extent(a.tensors.out, 0, 1); }},
    {"lse of another length", kLseShape, [](Arguments& a) { a.tensors.lse = with_extent(a.tensors.lse, 2, 2); }},
    {"lse with columns", kLseShape, [](Arguments& a) { a.tensors.lse = with_extent(a.tensors.lse, 3, 2); }},
    {"scores of another length",
     kScoresShape,
     [](Arguments& a) { a.tensors.scores = with_extent(a.tensors.scores, 3, 4); },
     {.scores_stage = ScoresStage::kScaled}},
    {"mask of two columns", kMaskShape,
     [](Arguments& a) {
       a.options.mask = {kMaskData.data(), {1, 1, 1, 2}};
     }},
    {"mask of no columns", kMaskShape,
     [](Arguments& a) {
       a.options.mask = {kMaskData.data(), {1, 1, 1, 0}};
     }},
    {"mask of three heads", kMaskShape,
     [](Arguments& a) {
       a.options.mask = {kMaskData.data(), {1, 3, 1, 5}};
     }},
    {"mask of key heads", kMaskShape,
     [](Arguments& a) {
       a.options.mask = {kMaskData.data(), {1, 2, 1, 5}};
     }},
    {"bias of four rows", kBiasShape,
     [](Arguments& a) {
       a.options.bias = InputView(kBiasData.data(), DType::kFloat32, {1, 1, 4, 5});
     }},
    {"bias of three batches", kBiasShape,
     [](Arguments& a) {
       a.options.bias = InputView(kBiasData.data(), DType::kFloat32, {3, 1, 1, 1});
     }},
    {"scale NaN", kInvalidScale, [](Arguments& a) { a.options.scale = kNan; }},
    {"scale infinite", kInvalidScale, [](Arguments& a) { a.options.scale = -kInfinity; }},
    {"softcap negative", kInvalidSoftcap, [](Arguments& a) { a.options.softcap = -1; }},
    {"softcap NaN", kInvalidSoftcap, [](Arguments& a) { a.options.softcap = kNan; }},
    {"softcap infinite", kInvalidSoftcap, [](Arguments& a) { a.options.softcap = kInfinity; }},
    {"window to the left negative", kInvalidWindow,
     [](Arguments& a) {
       a.options.align = sdpa::Align::kLowerRight;
       a.options.window_left = -1;
     }},
    {"window to the right negative", kInvalidWindow,
     [](Arguments& a) {
       a.options.align = sdpa::Align::kLowerRight;
       a.options.window_right = -2;
     }},
    {"causal without align", kAlignRequired, [](Arguments& a) { a.options.causal = true; }},
    {"window to the left without align", kAlignRequired, [](Arguments& a) { a.options.window_left = 2; }},
    {"window to the right without align", kAlignRequired, [](Arguments& a) { a.options.window_right = 2; }},
    {"offset past 2^31", kInvalidOffset,
     [](Arguments& a) {
       a.options.align = sdpa::Align::kOffset;
       a.options.query_offset = (std::int64_t{1} << 31) + 1;
     }},
    {"offset before -2^31", kInvalidOffset,
     [](Arguments& a) {
       a.options.align = sdpa::Align::kOffset;
       a.options.query_offset = -(std::int64_t{1} << 31) - 1;
     }},
    {"three offsets for a batch of two", kInvalidOffset,
     [](Arguments& a) {
       a.options.align = sdpa::Align::kOffset;
       a.options.query_offsets = kThree;
     }},
    {"offsets beside another alignment", kInvalidOffset,
     [](Arguments& a) {
       a.options.align = sdpa::Align::kUpperLeft;
       a.options.query_offsets = kTwo;
     }},
    {"an alignment that is none", kInvalidOffset, [](Arguments& a) { a.options.align = static_cast<sdpa::Align>(9); }},
    {"three query lengths for a batch of two", kInvalidQueryLength,
     [](Arguments& a) { a.options.query_lengths = kThree; }},
    {"query length negative", kInvalidQueryLength, [](Arguments& a) { a.options.query_lengths = kNegative; }},
    {"query length past the queries", kInvalidQueryLength,
     [](Arguments& a) { a.options.query_lengths = kPastQueries; }},
    {"three key lengths for a batch of two", kInvalidKvLength, [](Arguments& a) { a.options.kv_lengths = kThree; }},
    {"key length negative", kInvalidKvLength, [](Arguments& a) { a.options.kv_lengths = kNegative; }},
    {"key length past the keys", kInvalidKvLength, [](Arguments& a) { a.options.kv_lengths = kPastKeys; }},
    {"stage without scores", kInvalidScoresStage, [](Arguments& a) { a.options.scores_stage = ScoresStage::kWeights; }},
    {"scores without a stage",
     kInvalidScoresStage,
     [](Arguments& a) { a.options.scores_stage = ScoresStage::kNone; },
     {.scores_stage = ScoresStage::kScaled}},
    {"a stage that is none",
     kInvalidScoresStage,
     [](Arguments& a) { a.options.scores_stage = static_cast<ScoresStage>(9); },
     {.scores_stage = ScoresStage::kScaled}},
    {"sizes whose product does not fit", kSizeOverflow,
     [](Arguments& a) {
       constexpr std::size_t kHuge = std::numeric_limits<std::size_t>::max() / 16;
       a.tensors.query = with_extent(a.tensors.query, 0, kHuge);
       a.tensors.key = with_extent(a.tensors.key, 0, kHuge);
       a.tensors.value = with_extent(a.tensors.value, 0, kHuge);
       a.tensors.out = with_extent(a.tensors.out, 0, kHuge);
       a.tensors.lse = {};
     }},
    {"keys whose product does not fit", kSizeOverflow,
     [](Arguments& a) {
       constexpr std::size_t kHuge = std::numeric_limits<std::size_t>::max() / 8;
       a.tensors.key = with_extent(a.tensors.key, 2, kHuge);
       a.tensors.value = with_extent(a.tensors.value, 2, kHuge);
     }},
};

TEST(Validate, TheSmallProblemIsFineBeforeItIsSpoilt) {
  for (const KernelTable* table : every_kernel()) {
    const Arguments arguments(small_problem(), {});
    EXPECT_TRUE(status_of(*table, arguments).ok());
    EXPECT_FALSE(arguments.nothing_written());
  }
}

TEST(Validate, EveryFaultHasItsOwnStatusAndNothingIsWritten) {
  for (const KernelTable* table : every_kernel()) {
    for (const Fault& fault : kFaults) {
      SCOPED_TRACE(fault.what);
      Arguments arguments(small_problem(), fault.run);
      fault.make(arguments);
      EXPECT_STREQ(status_of(*table, arguments).name(), Status(fault.code).name());
    }
  }
}

TEST(Validate, AWorkspaceTooSmallOrMisalignedIsRefused) {
  for (const KernelTable* table : every_kernel()) {
    const Arguments arguments(small_problem(), {});
    const WorkspaceSize size = core::attention_workspace_bytes(*table, arguments.tensors, arguments.options);
    ASSERT_TRUE(size.status.ok());
    ASSERT_GT(size.bytes, 0U);
    auto* memory = static_cast<std::byte*>(::operator new (size.bytes + 64, std::align_val_t{kWorkspaceAlignment}));
    const auto call = [&](std::span<std::byte> workspace) {
      return core::attention(*table, arguments.tensors, arguments.options, workspace).code();
    };
    EXPECT_EQ(call({memory, size.bytes - 1}), StatusCode::kWorkspaceTooSmall);
    EXPECT_EQ(call({memory, 0}), StatusCode::kWorkspaceTooSmall);
    EXPECT_EQ(call({}), StatusCode::kWorkspaceTooSmall);
    EXPECT_EQ(call({memory + 4, size.bytes}), StatusCode::kWorkspaceTooSmall);
    EXPECT_TRUE(arguments.nothing_written());
    EXPECT_EQ(call({memory, size.bytes}), StatusCode::kOk);
    ::operator delete (memory, std::align_val_t{kWorkspaceAlignment});
  }
}

TEST(Validate, EveryStatusOfTheTableIsProvokedByATestOfThisFile) {
  std::map<StatusCode, std::string> provoked{{StatusCode::kOk, "the small problem"},
                                             {StatusCode::kWorkspaceTooSmall, "a test of its own"}};
  for (const Fault& fault : kFaults) provoked.emplace(fault.code, fault.what);
  for (const StatusEntry& entry : kStatusTable) EXPECT_TRUE(provoked.contains(entry.code)) << entry.name;
}

TEST(Validate, AbsentStridesOfEmptyTensorsAreNoFault) {
  const Problem p = make_problem({.seqlen_q = 0, .seqlen_kv = 0, .head_dim = 4});
  for (const KernelTable* table : every_kernel()) {
    Arguments arguments(p, {});
    arguments.tensors.query = InputView(nullptr, DType::kFloat32, {1, 1, 0, 4});
    arguments.tensors.key = InputView(nullptr, DType::kFloat32, {1, 1, 0, 4});
    arguments.tensors.value = InputView(nullptr, DType::kFloat32, {1, 1, 0, 4});
    arguments.tensors.out = TensorView<float>(nullptr, {1, 1, 0, 4});
    EXPECT_TRUE(status_of(*table, arguments).ok());
  }
}

}  // namespace
}  // namespace sdpa::testing
