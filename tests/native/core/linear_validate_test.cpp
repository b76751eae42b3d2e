// What linear attention refuses, with nothing written.
#include <array>
#include <cstdint>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "core/dispatch.hpp"
#include "support/linear.hpp"
#include "support/workspace.hpp"

namespace sdpa::testing {
namespace {

constexpr float kUntouched = 12345.0F;
constexpr std::array<std::uint8_t, 5> kMask{};

struct Call {
  LinearProblem problem;
  LinearTensors tensors;
  LinearOptions options;
  std::vector<float> out;
  std::vector<float> other = std::vector<float>(1000);
};

struct Fault {
  const char* what;
  StatusCode code;
  std::function<void(Call&)> make;
};

InputView resized(const InputView& view, std::size_t rank, std::size_t extent) {
  Extents extents = view.extents();
  extents[rank] = extent;
  return {view.data_handle(), view.dtype(), extents};
}

const Fault kFaults[] = {
    {"no key", StatusCode::kMissingTensor,
     [](Call& c) {
       c.tensors.key = {nullptr, DType::kFloat32, c.tensors.key.extents()};
     }},
    {"no out", StatusCode::kMissingTensor,
     [](Call& c) {
       c.tensors.out = {nullptr, c.tensors.out.extents()};
     }},
    {"int8", StatusCode::kInvalidDtype,
     [](Call& c) {
       c.tensors.value = {c.other.data(), DType::kInt8, c.tensors.value.extents()};
     }},
    {"batch of key", StatusCode::kBatchMismatch, [](Call& c) { c.tensors.key = resized(c.tensors.key, 0, 2); }},
    {"batch of value", StatusCode::kBatchMismatch, [](Call& c) { c.tensors.value = resized(c.tensors.value, 0, 2); }},
    {"key heads", StatusCode::kHeadsNotMultiple, [](Call& c) { c.tensors.key = resized(c.tensors.key, 1, 3); }},
    {"no key heads", StatusCode::kHeadsNotMultiple, [](Call& c) { c.tensors.key = resized(c.tensors.key, 1, 0); }},
    {"length of value", StatusCode::kSeqlenMismatch, [](Call& c) { c.tensors.value = resized(c.tensors.value, 2, 4); }},
    {"head size of key", StatusCode::kHeadDimMismatch, [](Call& c) { c.tensors.key = resized(c.tensors.key, 3, 4); }},
    {"no columns", StatusCode::kHeadDimZero,
     [](Call& c) {
       c.tensors.key = resized(c.tensors.key, 3, 0);
       c.tensors.query = resized(c.tensors.query, 3, 0);
     }},
    {"columns apart", StatusCode::kColumnStride,
     [](Call& c) {
       c.tensors.key = {c.other.data(), DType::kFloat32, c.tensors.key.extents(), Strides{30, 15, 1, 5}};
     }},
    {"shape of out", StatusCode::kOutShape,
     [](Call& c) {
       c.tensors.out = {c.out.data(), {1, 2, 5, 3}};
     }},
    {"decay of other columns", StatusCode::kInvalidRequest,
     [](Call& c) {
       c.tensors.decay = {c.other.data(), DType::kFloat32, {1, 2, 5, 2}};
     }},
    {"decay of other heads", StatusCode::kInvalidRequest,
     [](Call& c) {
       c.tensors.decay = {c.other.data(), DType::kFloat32, {1, 1, 5, 1}};
     }},
    {"decay without data", StatusCode::kMissingTensor,
     [](Call& c) {
       c.tensors.decay = {nullptr, DType::kFloat32, {1, 2, 5, 1}};
     }},
    {"beta of other length", StatusCode::kInvalidRequest,
     [](Call& c) {
       c.tensors.beta = {c.other.data(), DType::kFloat32, {1, 2, 4, 1}};
     }},
    {"steps without rates", StatusCode::kInvalidRequest,
     [](Call& c) {
       c.tensors.step = {c.other.data(), DType::kFloat32, {1, 2, 5, 1}};
     }},
    {"rates without steps", StatusCode::kInvalidRequest, [](Call& c) { c.tensors.rate = c.other.data(); }},
    {"a skip without steps", StatusCode::kInvalidRequest, [](Call& c) { c.tensors.skip = c.other.data(); }},
    {"steps and decay", StatusCode::kInvalidRequest,
     [](Call& c) {
       c.tensors.step = {c.other.data(), DType::kFloat32, {1, 2, 5, 1}};
       c.tensors.decay = c.tensors.step;
       c.tensors.rate = c.other.data();
     }},
    {"a mask and decay", StatusCode::kInvalidRequest,
     [](Call& c) {
       c.tensors.decay = {c.other.data(), DType::kFloat32, {1, 2, 5, 1}};
       c.tensors.key_mask = kMask.data();
     }},
    {"decay over all keys", StatusCode::kInvalidRequest,
     [](Call& c) {
       c.tensors.decay = {c.other.data(), DType::kFloat32, {1, 2, 5, 1}};
       c.options.causal = false;
     }},
    {"a normalised delta", StatusCode::kInvalidRequest,
     [](Call& c) {
       c.tensors.beta = {c.other.data(), DType::kFloat32, {1, 2, 5, 1}};
       c.options.normalised = true;
     }},
    {"scale", StatusCode::kInvalidScale, [](Call& c) { c.options.scale = std::numeric_limits<double>::infinity(); }},
    {"epsilon", StatusCode::kInvalidScale, [](Call& c) { c.options.epsilon = -1; }},
    {"epsilon of NaN", StatusCode::kInvalidScale,
     [](Call& c) { c.options.epsilon = std::numeric_limits<double>::quiet_NaN(); }},
    {"a state beyond memory", StatusCode::kSizeOverflow,
     [](Call& c) {
       constexpr std::size_t kLarge = std::size_t{1} << (4 * sizeof(std::size_t));
       c.tensors.query = {c.other.data(), DType::kFloat32, {1, 2, 0, kLarge}};
       c.tensors.key = c.tensors.query;
       c.tensors.value = c.tensors.query;
       c.tensors.out = {c.out.data(), {1, 2, 0, kLarge}};
     }},
};

// Moved, never copied: the tensors look at the numbers beside them.
Call good() {
  Call c;
  fill(c.problem, 1);
  c.out.assign(2 * 5 * 4, kUntouched);
  c.tensors = tensors_of(c.problem);
  c.tensors.out = {c.out.data(), c.problem.out_extents()};
  return c;
}

TEST(LinearValidate, EachFaultHasItsCodeAndNothingIsWritten) {
  const kernels::KernelTable& table = *core::available_kernels().front();
  const Workspace workspace(1 << 16);
  for (const Fault& fault : kFaults) {
    Call c = good();
    ASSERT_EQ(core::linear_attention_workspace_bytes(table, c.tensors, c.options).status, Status(StatusCode::kOk));
    fault.make(c);
    const Status size = core::linear_attention_workspace_bytes(table, c.tensors, c.options).status;
    EXPECT_EQ(size.code(), fault.code) << fault.what << ": " << size.name();
    EXPECT_EQ(core::linear_attention(table, c.tensors, c.options, workspace.span()).code(), fault.code) << fault.what;
    for (const float x : c.out) ASSERT_EQ(x, kUntouched) << fault.what;
  }
}

TEST(LinearValidate, AWorkspaceThatIsTooSmallOrNotAligned) {
  const kernels::KernelTable& table = *core::available_kernels().front();
  Call c = good();
  const std::size_t bytes = core::linear_attention_workspace_bytes(table, c.tensors, c.options).bytes;
  const Workspace workspace(bytes + 64);
  for (const auto& [from, size] : {std::pair<std::size_t, std::size_t>{0, bytes - 1}, {4, bytes}}) {
    const Status status = core::linear_attention(table, c.tensors, c.options, workspace.span().subspan(from, size));
    EXPECT_EQ(status.code(), StatusCode::kWorkspaceTooSmall);
    for (const float x : c.out) ASSERT_EQ(x, kUntouched);
  }
  EXPECT_EQ(core::linear_attention(table, c.tensors, c.options, workspace.span()).code(), StatusCode::kOk);
}

TEST(LinearValidate, TheWorkspaceDoesNotGrowWithTheLength) {
  const kernels::KernelTable& table = *core::available_kernels().front();
  std::size_t bytes = 0;
  for (const std::size_t length : {1000, 100000}) {
    LinearProblem p;
    p.queries = p.keys = length;
    fill(p, 1);
    LinearTensors t = tensors_of(p);
    std::vector<float> out(2 * length * 4);
    t.out = {out.data(), p.out_extents()};
    const std::size_t now = core::linear_attention_workspace_bytes(table, t, p.options).bytes;
    EXPECT_TRUE(bytes == 0 || now == bytes);
    bytes = now;
  }
}

}  // namespace
}  // namespace sdpa::testing
