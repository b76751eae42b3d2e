// Gradients of linear attention against central differences of its recurrence in double, on every kernel table.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "core/dispatch.hpp"
#include "sdpa/linear.hpp"
#include "support/kernels.hpp"
#include "support/linear.hpp"
#include "support/workspace.hpp"

namespace sdpa::testing {
namespace {

// What a loss is made of: sum of out times d_out and of the last state times d_next_state.
struct Loss {
  std::vector<float> d_out;
  std::vector<float> d_state;

  double of(const LinearProblem& p) const {
    const LinearResult r = linear_reference(p);
    double sum = 0;
    for (std::size_t i = 0; i < r.out.size(); ++i) sum += r.out[i] * d_out[i];
    for (std::size_t i = 0; i < d_state.size(); ++i) sum += r.state[i] * d_state[i];
    return sum;
  }
};

struct Gradients {
  std::vector<float> query, key, value, decay, step, state;
  std::vector<double> rate, skip;
};

Gradients compute(const KernelTable& table, const LinearProblem& p, const Loss& loss) {
  Gradients g{std::vector<float>(p.query.size()), std::vector<float>(p.key.size()),  std::vector<float>(p.value.size()),
              std::vector<float>(p.decay.size()), std::vector<float>(p.step.size()), std::vector<float>(p.state.size()),
              std::vector<double>(p.rate.size()), std::vector<double>(p.skip.size())};
  const LinearTensors t = tensors_of(p);
  const auto view = [&p](std::vector<float>& data, const Extents& extents) {
    return TensorView<float>(data.data(), extents, contiguous_strides(extents, p.layout));
  };
  LinearGradients to;
  to.d_out = {loss.d_out.data(), p.out_extents(), contiguous_strides(p.out_extents(), p.layout)};
  if (!loss.d_state.empty()) to.d_next_state = loss.d_state.data();
  to.d_query = view(g.query, p.query_extents());
  to.d_key = view(g.key, p.key_extents());
  to.d_value = view(g.value, p.value_extents());
  to.d_decay = view(g.decay, t.decay.extents());
  to.d_step = view(g.step, t.step.extents());
  to.d_rate = g.rate.data();
  to.d_skip = g.skip.data();
  if (p.with_state) to.d_state = g.state.data();
  const WorkspaceSize size = core::linear_attention_backward_workspace_bytes(table, t, to, p.options);
  EXPECT_EQ(size.status, Status(StatusCode::kOk)) << size.status.name();
  const Workspace workspace(size.bytes);
  EXPECT_EQ(core::linear_attention_backward(table, t, to, p.options, workspace.span()), Status(StatusCode::kOk));
  return g;
}

// Differences between neighbours at an exact distance, and what they leave out: of the second order in it.
template <class T>
void expect_gradient(const LinearProblem& p, const Loss& loss, std::vector<float> LinearProblem::*input,
                     const std::vector<T>& got, const std::string& what) {
  LinearProblem moved = p;
  constexpr float kStep = 0x1p-9F;
  double largest = 1;
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    float& x = (moved.*input)[i];
    const float before = x;
    x = before + kStep;
    const double above = loss.of(moved);
    const float high = x;
    x = before - kStep;
    const double want = (above - loss.of(moved)) / (static_cast<double>(high) - static_cast<double>(x));
    x = before;
    largest = std::max(largest, std::abs(want));
    worst = std::isnan(got[i]) ? std::numeric_limits<double>::infinity() : std::max(worst, std::abs(got[i] - want));
  }
  EXPECT_LE(worst / largest, 3e-5) << what;
}

using LinearBackwardTest = KernelTest;

TEST_P(LinearBackwardTest, GradientsAreThoseOfDifferences) {
  Random random(11);
  const std::size_t w = table().width;
  for (int n = 0; n < 60; ++n) {
    LinearProblem p;
    p.batch = static_cast<std::size_t>(random.integer(1, 2));
    p.states = 2;
    p.key_heads = random.choose({std::size_t{1}, std::size_t{2}});
    p.heads = random.choose({std::size_t{1}, std::size_t{2}, std::size_t{4}});
    p.queries = p.keys = static_cast<std::size_t>(random.integer(1, 6));
    p.head_dim = random.choose({std::size_t{1}, w - 1, w, w + 1});
    p.head_dim_v = random.choose({std::size_t{2}, w - 1, w + 1, 4 * w + 1});
    p.layout = random.choose({Layout::kBhld, Layout::kBlhd});
    p.with_state = random.chance(0.5);
    p.options.scale = 0.75;
    p.options.chunk = random.choose({std::size_t{0}, std::size_t{2}});
    const std::int64_t kind = random.integer(0, 2);
    if (kind == 0) {
      p.options.normalised = true;
      p.options.causal = random.chance(0.5);
      p.options.epsilon = 0.5;
      p.masked = random.chance(0.5);
      if (!p.options.causal) p.queries = static_cast<std::size_t>(random.integer(1, 6));
    } else if (kind == 1) {
      p.decay_columns = random.choose({std::size_t{0}, std::size_t{1}, p.head_dim});
    } else {
      p.steps = true;
      p.with_skip = random.chance(0.5);
    }
    fill(p, 500 + static_cast<std::uint64_t>(n));
    // phi has no second derivative at 0, where differences would not see its slope.
    for (float& x : p.query) x += x > 0 ? 0.01F : -0.01F;
    for (float& x : p.key) x += x > 0 ? 0.01F : -0.01F;
    Loss loss{random.normals(count(p.out_extents())), {}};
    if (random.chance(0.5)) loss.d_state = random.normals(p.state_size());
    const Gradients got = compute(table(), p, loss);
    const std::string what = "call " + std::to_string(n) + ", kind " + std::to_string(kind) + ": ";
    expect_gradient(p, loss, &LinearProblem::query, got.query, what + "query");
    expect_gradient(p, loss, &LinearProblem::key, got.key, what + "key");
    expect_gradient(p, loss, &LinearProblem::value, got.value, what + "value");
    expect_gradient(p, loss, &LinearProblem::decay, got.decay, what + "decay");
    expect_gradient(p, loss, &LinearProblem::step, got.step, what + "step");
    expect_gradient(p, loss, &LinearProblem::rate, got.rate, what + "rate");
    expect_gradient(p, loss, &LinearProblem::skip, got.skip, what + "skip");
    expect_gradient(p, loss, &LinearProblem::state, got.state, what + "state");
  }
}

TEST(LinearBackwardValidate, EachFaultHasItsCodeAndNothingIsWritten) {
  struct Call {
    LinearTensors tensors;
    LinearGradients gradients;
    std::vector<float> numbers = std::vector<float>(1000);
  };
  struct Fault {
    const char* what;
    StatusCode code;
    std::function<void(Call&)> make;
  };
  const Fault faults[] = {
      {"a fault of the forward call", StatusCode::kHeadDimMismatch,
       [](Call& c) {
         c.tensors.key = {c.numbers.data(), DType::kFloat32, {1, 2, 5, 4}};
       }},
      {"beta", StatusCode::kInvalidRequest,
       [](Call& c) {
         c.tensors.beta = {c.numbers.data(), DType::kFloat32, {1, 2, 5, 1}};
       }},
      {"shape of d_out", StatusCode::kOutShape,
       [](Call& c) {
         c.gradients.d_out = {c.numbers.data(), {1, 2, 5, 3}};
       }},
      {"no d_out", StatusCode::kMissingTensor,
       [](Call& c) {
         c.gradients.d_out = {nullptr, {1, 2, 5, 4}};
       }},
      {"shape of d_query", StatusCode::kGradientShape,
       [](Call& c) {
         c.gradients.d_query = {c.numbers.data(), {1, 2, 5, 4}};
       }},
      {"no d_value", StatusCode::kMissingTensor,
       [](Call& c) {
         c.gradients.d_value = {nullptr, {1, 2, 5, 4}};
       }},
      {"no gradient of the decay", StatusCode::kGradientShape,
       [](Call& c) {
         c.tensors.decay = {c.numbers.data(), DType::kFloat32, {1, 2, 5, 1}};
       }},
      {"no gradient of the rates", StatusCode::kMissingTensor,
       [](Call& c) {
         c.tensors.step = {c.numbers.data(), DType::kFloat32, {1, 2, 5, 1}};
         c.tensors.rate = c.numbers.data();
         c.gradients.d_step = {c.numbers.data(), {1, 2, 5, 1}};
       }},
  };
  const kernels::KernelTable& table = *core::available_kernels().front();
  const Workspace workspace(1 << 16);
  LinearProblem p;
  fill(p, 1);
  for (const Fault& fault : faults) {
    std::vector<float> out(200, 12345.0F);
    Call c;
    c.tensors = tensors_of(p);
    c.gradients.d_out = {c.numbers.data(), p.out_extents()};
    c.gradients.d_query = {out.data(), p.query_extents()};
    c.gradients.d_key = {out.data() + 50, p.key_extents()};
    c.gradients.d_value = {out.data() + 100, p.value_extents()};
    ASSERT_TRUE(core::linear_attention_backward_workspace_bytes(table, c.tensors, c.gradients, {}).status.ok());
    fault.make(c);
    const Status status = core::linear_attention_backward(table, c.tensors, c.gradients, {}, workspace.span());
    EXPECT_EQ(status.code(), fault.code) << fault.what << ": " << status.name();
    for (const float x : out) ASSERT_EQ(x, 12345.0F) << fault.what;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, LinearBackwardTest, ::testing::ValuesIn(every_kernel()), kernel_name);

}  // namespace
}  // namespace sdpa::testing
