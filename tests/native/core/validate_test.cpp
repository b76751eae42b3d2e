// Every status that a call can answer, provoked; nothing may be written then.
#include <map>
#include <new>
#include <string>

#include <gtest/gtest.h>

#include "core/faults.hpp"
#include "core/option_faults.hpp"
#include "support/kernels.hpp"

namespace sdpa::testing {
namespace {

template <class Visit>
void for_each_fault(Visit visit) {
  for (const Fault& fault : kTensorFaults) visit(fault);
  for (const Fault& fault : kOptionFaults) visit(fault);
}

TEST(Validate, TheSmallProblemIsFineBeforeItIsSpoilt) {
  for (const KernelTable* table : every_kernel()) {
    const Arguments arguments(small_problem(), {});
    EXPECT_TRUE(status_of(*table, arguments).ok());
    EXPECT_FALSE(arguments.nothing_written());
  }
}

TEST(Validate, EveryFaultHasItsOwnStatusAndNothingIsWritten) {
  for (const KernelTable* table : every_kernel()) {
    for_each_fault([&](const Fault& fault) {
      SCOPED_TRACE(fault.what);
      Arguments arguments(small_problem(), fault.run);
      fault.make(arguments);
      EXPECT_STREQ(status_of(*table, arguments).name(), Status(fault.code).name());
    });
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

TEST(Validate, EveryStatusThatThisCallAnswersIsProvokedByATestOfThisFile) {
  std::map<StatusCode, std::string> provoked{{StatusCode::kOk, "the small problem"},
                                             {StatusCode::kWorkspaceTooSmall, "a test of its own"},
                                             {StatusCode::kGradientShape, "the backward call's tests"},
                                             {StatusCode::kInvalidRequest, "the tests of the calls for weights"}};
  for_each_fault([&](const Fault& fault) { provoked.emplace(fault.code, fault.what); });
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
