// Every status that a backward call can answer by itself, and one that it has from the forward pass; nothing may be
// written then.
#include <array>
#include <cstddef>
#include <new>

#include <gtest/gtest.h>

#include "core/faults.hpp"
#include "support/gradients.hpp"

namespace sdpa::testing {
namespace {

template <class T>
TensorView<T> wider(const TensorView<T>& view, std::size_t rank) {
  Extents extents = view.extents();
  ++extents[rank];
  return {view.data_handle(), extents, view.strides()};
}

template <class T>
TensorView<T> with_gaps(const TensorView<T>& view) {
  Strides strides = view.strides();
  strides[3] = 2;
  return {view.data_handle(), view.extents(), strides};
}

template <class T>
TensorView<T> without_data(const TensorView<T>& view) {
  return {nullptr, view.extents(), view.strides()};
}

struct BackwardFault {
  const char* what;
  StatusCode code;
  void (*make)(BackwardArguments&);
};

constexpr BackwardFault kFaults[] = {
    {"out of another length", kOutShape, [](BackwardArguments& a) { a.tensors.out = wider(a.tensors.out, 2); }},
    {"d_out of another size", kOutShape, [](BackwardArguments& a) { a.tensors.d_out = wider(a.tensors.d_out, 3); }},
    {"lse of another length", kLseShape, [](BackwardArguments& a) { a.tensors.lse = wider(a.tensors.lse, 2); }},
    {"d_lse of other heads", kLseShape, [](BackwardArguments& a) { a.tensors.d_lse = wider(a.tensors.d_lse, 1); }},
    {"d_query of another length", kGradientShape,
     [](BackwardArguments& a) { a.tensors.d_query = wider(a.tensors.d_query, 2); }},
    {"d_key of other heads", kGradientShape, [](BackwardArguments& a) { a.tensors.d_key = wider(a.tensors.d_key, 1); }},
    {"d_value of another size", kGradientShape,
     [](BackwardArguments& a) { a.tensors.d_value = wider(a.tensors.d_value, 3); }},
    {"d_bias of another batch", kGradientShape,
     [](BackwardArguments& a) { a.tensors.d_bias = wider(a.tensors.d_bias, 0); }},
    {"d_bias without a bias", kGradientShape, [](BackwardArguments& a) { a.options().bias = {}; }},
    {"d_scale of too few heads", kGradientShape,
     [](BackwardArguments& a) { a.tensors.d_scale = a.tensors.d_scale.first(1); }},
    {"d_sinks of too few heads", kGradientShape,
     [](BackwardArguments& a) { a.tensors.d_sinks = a.tensors.d_sinks.first(1); }},
    {"d_alibi_slopes of too few heads", kGradientShape,
     [](BackwardArguments& a) { a.tensors.d_alibi_slopes = a.tensors.d_alibi_slopes.first(1); }},
    {"d_sinks without sinks", kGradientShape, [](BackwardArguments& a) { a.options().sinks = {}; }},
    {"d_alibi_slopes without slopes", kGradientShape, [](BackwardArguments& a) { a.options().alibi_slopes = {}; }},
    {"d_out with gaps between columns", kColumnStride,
     [](BackwardArguments& a) { a.tensors.d_out = with_gaps(a.tensors.d_out); }},
    {"d_query with gaps between columns", kColumnStride,
     [](BackwardArguments& a) { a.tensors.d_query = with_gaps(a.tensors.d_query); }},
    {"d_bias with gaps between columns", kColumnStride,
     [](BackwardArguments& a) { a.tensors.d_bias = with_gaps(a.tensors.d_bias); }},
    {"no out", kMissingTensor, [](BackwardArguments& a) { a.tensors.out = without_data(a.tensors.out); }},
    {"no lse", kMissingTensor, [](BackwardArguments& a) { a.tensors.lse = without_data(a.tensors.lse); }},
    {"no d_out", kMissingTensor, [](BackwardArguments& a) { a.tensors.d_out = without_data(a.tensors.d_out); }},
    {"no d_query", kMissingTensor, [](BackwardArguments& a) { a.tensors.d_query = without_data(a.tensors.d_query); }},
    {"no d_key", kMissingTensor, [](BackwardArguments& a) { a.tensors.d_key = without_data(a.tensors.d_key); }},
    {"no d_value", kMissingTensor, [](BackwardArguments& a) { a.tensors.d_value = without_data(a.tensors.d_value); }},
    {"a stage of the scores", kInvalidScoresStage,
     [](BackwardArguments& a) { a.options().scores_stage = ScoresStage::kWeights; }},
    {"a fault of the forward pass", kInvalidSoftcap, [](BackwardArguments& a) { a.options().softcap = -1; }},
    {"a shape of the forward pass", kHeadDimMismatch,
     [](BackwardArguments& a) { a.tensors.key = with_extent(a.tensors.key, 3, 3); }},
};

Problem whole_problem() {
  Problem p = small_problem();
  Random random(1);
  p.bias = random_bias(random, {2, 4, 3, 5});
  p.sinks = {{0, 1, 2, 3}, false};
  p.alibi_slopes = {{0, 1, 2, 3}, false};
  p.align = Align::kLowerRight;
  return p;
}

TEST(BackwardValidate, EveryFaultHasItsStatusAndNothingIsWritten) {
  const Problem p = whole_problem();
  for (const KernelTable* table : every_kernel()) {
    const Actual forward = run(*table, p);
    for (const BackwardFault& fault : kFaults) {
      SCOPED_TRACE(fault.what);
      BackwardArguments arguments(p, {}, random_upstream(p), forward);
      fault.make(arguments);
      EXPECT_STREQ(backward_status(*table, arguments).name(), Status(fault.code).name());
    }
  }
}

TEST(BackwardValidate, AWorkspaceTooSmallOrMisalignedIsRefused) {
  const Problem p = whole_problem();
  for (const KernelTable* table : every_kernel()) {
    const BackwardArguments arguments(p, {}, random_upstream(p), run(*table, p));
    const WorkspaceSize size = core::attention_backward_workspace_bytes(*table, arguments.tensors, arguments.options());
    ASSERT_TRUE(size.status.ok());
    ASSERT_GT(size.bytes, 0U);
    auto* memory = static_cast<std::byte*>(::operator new (size.bytes + 64, std::align_val_t{kWorkspaceAlignment}));
    const auto call = [&](std::span<std::byte> workspace) {
      return core::attention_backward(*table, arguments.tensors, arguments.options(), workspace).code();
    };
    EXPECT_EQ(call({memory, size.bytes - 1}), kWorkspaceTooSmall);
    EXPECT_EQ(call({}), kWorkspaceTooSmall);
    EXPECT_EQ(call({memory + 4, size.bytes}), kWorkspaceTooSmall);
    EXPECT_TRUE(arguments.nothing_written());
    EXPECT_EQ(call({memory, size.bytes}), kOk);
    ::operator delete (memory, std::align_val_t{kWorkspaceAlignment});
  }
}

TEST(BackwardValidate, TheWorkspaceDoesNotGrowWithTheKeys) {
  const auto bytes = [](std::size_t keys) {
    const Problem p = make_problem({.seqlen_q = 10, .seqlen_kv = keys, .head_dim = 16});
    const KernelTable& table = *every_kernel().front();
    const BackwardArguments arguments(p, {}, random_upstream(p), run(table, p));
    return core::attention_backward_workspace_bytes(table, arguments.tensors, arguments.options()).bytes;
  };
  EXPECT_EQ(bytes(5000), bytes(100));
}

TEST(BackwardValidate, ThePublicCallUsesTheFastestKernels) {
  const Problem p = whole_problem();
  const KernelTable& table = *every_kernel().front();
  const Upstream upstream = random_upstream(p);
  const Actual forward = run(table, p);
  const BackwardArguments arguments(p, {}, upstream, forward);
  const WorkspaceSize size = attention_backward_workspace_bytes(arguments.tensors, arguments.options());
  ASSERT_TRUE(size.status.ok());
  auto* memory = static_cast<std::byte*>(::operator new (size.bytes, std::align_val_t{kWorkspaceAlignment}));
  EXPECT_TRUE(attention_backward(arguments.tensors, arguments.options(), {memory, size.bytes}).ok());
  ::operator delete (memory, std::align_val_t{kWorkspaceAlignment});
  EXPECT_TRUE(same_gradient_bits(arguments.gradients(p), run_backward(table, p, upstream)));
}

}  // namespace
}  // namespace sdpa::testing
