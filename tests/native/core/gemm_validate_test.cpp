// Every status that a matrix product can answer; nothing may be written then.
#include <array>
#include <cstddef>
#include <limits>
#include <new>

#include <gtest/gtest.h>

#include "core/dispatch.hpp"
#include "sdpa/gemm.hpp"
#include "support/kernels.hpp"

namespace sdpa::testing {
namespace {

constexpr std::size_t kHuge = std::numeric_limits<std::size_t>::max() / 8;

struct Small {
  std::array<float, 6> a{1, 2, 3, 4, 5, 6};  // (2, 3)
  std::array<float, 12> b{};                 // (3, 4)
  std::array<float, 4> bias{};
  std::array<float, 8> c{7, 7, 7, 7, 7, 7, 7, 7};
  GemmArguments arguments{
      {a.data(), 3, MatrixForm::kRows}, {b.data(), 4, MatrixForm::kRows}, bias.data(), c.data(), 4, false, 2, 4, 3};
};

struct GemmFault {
  const char* what;
  StatusCode code;
  void (*make)(GemmArguments&);
};

constexpr GemmFault kFaults[] = {
    {"a without data", StatusCode::kMissingTensor, [](GemmArguments& g) { g.a.data = nullptr; }},
    {"b without data", StatusCode::kMissingTensor, [](GemmArguments& g) { g.b.data = nullptr; }},
    {"c without data", StatusCode::kMissingTensor, [](GemmArguments& g) { g.c = nullptr; }},
    {"rows of a that overlap", StatusCode::kColumnStride, [](GemmArguments& g) { g.a.stride = 2; }},
    {"columns of a that overlap", StatusCode::kColumnStride,
     [](GemmArguments& g) {
       g.a = {g.a.data, 1, MatrixForm::kColumns};
     }},
    {"rows of b that overlap", StatusCode::kColumnStride, [](GemmArguments& g) { g.b.stride = 3; }},
    {"columns of b that overlap", StatusCode::kColumnStride,
     [](GemmArguments& g) {
       g.b = {g.b.data, 2, MatrixForm::kColumns};
     }},
    {"rows of c that overlap", StatusCode::kColumnStride, [](GemmArguments& g) { g.c_stride = 3; }},
    {"a packed a", StatusCode::kInvalidDtype, [](GemmArguments& g) { g.a.form = MatrixForm::kPacked; }},
    {"no such form", StatusCode::kInvalidDtype, [](GemmArguments& g) { g.b.form = static_cast<MatrixForm>(4); }},
    {"a bias that would be added to c", StatusCode::kInvalidRequest, [](GemmArguments& g) { g.accumulate = true; }},
    {"a too large", StatusCode::kSizeOverflow, [](GemmArguments& g) { g.a.stride = 2 * kHuge; }},
    {"b too large", StatusCode::kSizeOverflow, [](GemmArguments& g) { g.b.stride = kHuge; }},
    {"c too large", StatusCode::kSizeOverflow, [](GemmArguments& g) { g.c_stride = 2 * kHuge; }},
    {"too many columns", StatusCode::kSizeOverflow,
     [](GemmArguments& g) { g.columns = g.c_stride = g.b.stride = kHuge / 200; }},
    {"a packed b too large", StatusCode::kSizeOverflow,
     [](GemmArguments& g) {
       g.b.form = MatrixForm::kPackedColumns;
       g.inner = kHuge;
       g.rows = 1;
     }},
};

class ValidateGemm : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, ValidateGemm, ::testing::ValuesIn(every_kernel()), kernel_name);

TEST_P(ValidateGemm, RefusesEachFaultAndWritesNothing) {
  for (const GemmFault& fault : kFaults) {
    SCOPED_TRACE(fault.what);
    Small small;
    fault.make(small.arguments);
    const WorkspaceSize size = core::gemm_workspace_bytes(table(), small.arguments);
    EXPECT_STREQ(size.status.name(), Status(fault.code).name());
    EXPECT_EQ(size.bytes, 0U);
    EXPECT_EQ(core::gemm(table(), small.arguments, {}), Status(fault.code));
    EXPECT_EQ(small.c, Small().c);
  }
}

TEST_P(ValidateGemm, RefusesAWorkspaceThatIsTooSmallOrMisaligned) {
  Small small;
  const WorkspaceSize size = core::gemm_workspace_bytes(table(), small.arguments);
  ASSERT_TRUE(size.status.ok());
  auto* memory = static_cast<std::byte*>(::operator new (size.bytes + 64, std::align_val_t{kWorkspaceAlignment}));
  const auto call = [&](std::span<std::byte> workspace) {
    return core::gemm(table(), small.arguments, workspace).code();
  };
  EXPECT_EQ(call({memory, size.bytes - 1}), StatusCode::kWorkspaceTooSmall);
  EXPECT_EQ(call({}), StatusCode::kWorkspaceTooSmall);
  EXPECT_EQ(call({memory + 4, size.bytes}), StatusCode::kWorkspaceTooSmall);
  EXPECT_EQ(small.c, Small().c);
  EXPECT_EQ(call({memory, size.bytes}), StatusCode::kOk);
  EXPECT_EQ(small.c, (std::array<float, 8>{}));
  ::operator delete (memory, std::align_val_t{kWorkspaceAlignment});
}

TEST_P(ValidateGemm, RefusesToPackWhatDoesNotFit) {
  const Small small;
  const MatrixView b = small.arguments.b;
  const WorkspaceSize size = core::gemm_packed_bytes(table(), 3, 4);
  ASSERT_TRUE(size.status.ok());
  std::vector<float> to(size.bytes / sizeof(float), 7.0F);
  const std::vector<float> before = to;
  const std::span<float> span(to);
  EXPECT_EQ(core::gemm_pack(table(), b, 3, 4, span.first(to.size() - 1)), StatusCode::kWorkspaceTooSmall);
  EXPECT_EQ(core::gemm_pack(table(), {nullptr, 4, MatrixForm::kRows}, 3, 4, span), StatusCode::kMissingTensor);
  EXPECT_EQ(core::gemm_pack(table(), {b.data, 3, MatrixForm::kRows}, 3, 4, span), StatusCode::kColumnStride);
  EXPECT_EQ(core::gemm_pack(table(), b, kHuge, 4, span), StatusCode::kSizeOverflow);
  EXPECT_EQ(core::gemm_packed_bytes(table(), kHuge, 4).status, StatusCode::kSizeOverflow);
  EXPECT_EQ(core::gemm_packed_bytes(table(), 1, std::numeric_limits<std::size_t>::max()).status,
            StatusCode::kSizeOverflow);
  EXPECT_EQ(to, before);
  EXPECT_EQ(core::gemm_pack(table(), b, 3, 4, span), StatusCode::kOk);
  EXPECT_EQ(core::gemm_pack(table(), {}, 0, 4, {}), StatusCode::kOk);
}

TEST(ValidateGemmHere, TheFastestKernelsTakeTheSameArguments) {
  Small small;
  const WorkspaceSize size = gemm_workspace_bytes(small.arguments);
  ASSERT_TRUE(size.status.ok());
  auto* memory = static_cast<std::byte*>(::operator new (size.bytes, std::align_val_t{kWorkspaceAlignment}));
  EXPECT_TRUE(gemm(small.arguments, {memory, size.bytes}).ok());
  EXPECT_EQ(small.c, (std::array<float, 8>{}));
  ::operator delete (memory, std::align_val_t{kWorkspaceAlignment});
  std::vector<float> to(gemm_packed_bytes(3, 4).bytes / sizeof(float));
  EXPECT_TRUE(gemm_pack(small.arguments.b, 3, 4, to).ok());
}

}  // namespace
}  // namespace sdpa::testing
