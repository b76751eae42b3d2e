// Linear attention against its recurrence in double, on every kernel table.
#include "sdpa/linear.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "core/dispatch.hpp"
#include "support/kernels.hpp"
#include "support/linear.hpp"
#include "support/workspace.hpp"

namespace sdpa::testing {
namespace {

constexpr double kTolerance = 2e-6;

struct Got {
  std::vector<float> out;
  std::vector<float> state;
};

Got compute(const KernelTable& table, const LinearProblem& p) {
  const Extents extents = p.out_extents();
  Got got{std::vector<float>(count(extents), 12345.0F), std::vector<float>(p.state_size(), 12345.0F)};
  LinearTensors t = tensors_of(p);
  t.out = {got.out.data(), extents, contiguous_strides(extents, p.layout)};
  t.next_state = got.state.data();
  const WorkspaceSize size = core::linear_attention_workspace_bytes(table, t, p.options);
  EXPECT_EQ(size.status, Status(StatusCode::kOk)) << size.status.name();
  const Workspace workspace(size.bytes);
  EXPECT_EQ(core::linear_attention(table, t, p.options, workspace.span()), Status(StatusCode::kOk));
  return got;
}

// Of the largest number that is wanted: what is read are sums of the state's numbers, which cancel.
double largest_error(const std::vector<float>& got, const std::vector<double>& want) {
  double worst = got.size() == want.size() ? 0 : std::numeric_limits<double>::infinity();
  double largest = 1;
  for (const double x : want) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double error = std::abs(got[i] - want[i]) / largest;
    if (!(error <= worst)) worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  }
  return worst;
}

void expect_close(const KernelTable& table, const LinearProblem& p, const std::string& what) {
  const Got got = compute(table, p);
  const LinearResult want = linear_reference(p);
  EXPECT_LE(largest_error(got.out, want.out), kTolerance) << what;
  EXPECT_LE(largest_error(got.state, want.state), kTolerance) << what;
}

using LinearTest = KernelTest;

TEST_P(LinearTest, SizesAroundVectorsStripesAndChunks) {
  std::uint64_t seed = 1;
  const std::size_t w = table().width;
  for (const std::size_t head_dim : {std::size_t{1}, w - 1, w + 1, std::size_t{33}}) {
    for (const std::size_t head_dim_v : {std::size_t{1}, w - 1, w, w + 1, 4 * w - 1, 4 * w, 4 * w + 1, 5 * w + 3}) {
      for (const std::size_t length : {1, 31, 32, 33, 65}) {
        for (const int kind : {0, 1, 2, 3}) {
          LinearProblem p;
          p.heads = 4;
          p.head_dim = head_dim;
          p.head_dim_v = head_dim_v;
          p.queries = p.keys = length;
          p.decay_columns = kind == 1 ? head_dim : kind == 2 ? 1 : 0;
          p.beta_heads = kind >= 2 ? 2 : 0;
          fill(p, ++seed);
          expect_close(table(), p,
                       std::to_string(head_dim) + " " + std::to_string(head_dim_v) + " " + std::to_string(length) +
                           " kind " + std::to_string(kind));
        }
      }
    }
  }
}

TEST_P(LinearTest, RandomCalls) {
  Random random(7);
  for (int n = 0; n < 300; ++n) {
    LinearProblem p;
    const auto size = [&](std::int64_t low, std::int64_t high) {
      return static_cast<std::size_t>(random.integer(low, high));
    };
    p.batch = size(1, 3);
    p.states = size(1, 3) * 2;
    p.key_heads = random.choose({std::size_t{1}, p.states / 2, p.states});
    p.heads = random.choose({std::size_t{1}, p.states / 2, p.states, 3 * p.states});
    p.queries = p.keys = size(0, 70);
    p.head_dim = size(1, 40);
    p.head_dim_v = size(1, 40);
    p.layout = random.choose({Layout::kBhld, Layout::kBlhd});
    p.with_state = random.chance(0.5);
    p.options.scale = random.normal();
    p.options.chunk = random.choose({std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{100}});
    const std::int64_t kind = random.integer(0, 3);
    if (kind == 0) {
      p.options.normalised = true;
      p.options.causal = random.chance(0.5);
      p.options.epsilon = random.choose({0.0, 0.25});
      p.masked = random.chance(0.5);
      if (!p.options.causal) p.queries = size(0, 70);
    } else if (kind == 1) {
      p.decay_columns = random.choose({std::size_t{0}, std::size_t{1}, p.head_dim});
    } else if (kind == 2) {
      p.decay_columns = random.choose({std::size_t{0}, std::size_t{1}, p.head_dim});
      p.beta_heads = random.choose({std::size_t{1}, p.states});
    } else {
      p.steps = true;
      p.with_skip = random.chance(0.5);
    }
    fill(p, 100 + static_cast<std::uint64_t>(n));
    expect_close(table(), p, "call " + std::to_string(n));
  }
}

TEST_P(LinearTest, CallsThatHandTheStateOnGiveTheBitsOfOne) {
  for (const std::size_t beta_heads : {0, 1}) {
    LinearProblem p;
    p.heads = p.key_heads = p.states = 1;
    p.queries = p.keys = 80;
    p.head_dim = 9;
    p.head_dim_v = 21;
    p.decay_columns = 9;
    p.beta_heads = beta_heads;
    p.with_state = true;
    fill(p, 3);
    const Got whole = compute(table(), p);
    std::vector<float> state = p.state;
    std::vector<float> out;
    for (const auto& [from, to] : {std::pair{0, 33}, std::pair{33, 34}, std::pair{34, 80}}) {
      LinearProblem part = p;
      part.queries = part.keys = static_cast<std::size_t>(to - from);
      const auto cut = [&](std::vector<float>& numbers, std::ptrdiff_t width) {
        if (!numbers.empty()) numbers = {numbers.begin() + from * width, numbers.begin() + to * width};
      };
      cut(part.query, 9);
      cut(part.key, 9);
      cut(part.value, 21);
      cut(part.decay, 9);
      cut(part.beta, 1);
      part.state = state;
      Got got = compute(table(), part);
      state = got.state;
      out.insert(out.end(), got.out.begin(), got.out.end());
    }
    EXPECT_TRUE(same_bits(out, whole.out));
    EXPECT_TRUE(same_bits(state, whole.state));
  }
}

TEST_P(LinearTest, SlowDecaysKeepTheirDifferenceFromOne) {
  for (const float g : {-1e-5F, -1e-3F, -0.1F, -0.34F, -0.35F, -3.0F, -100.0F}) {
    LinearProblem p;
    p.queries = p.keys = 1000;
    p.decay_columns = 1;
    fill(p, 4);
    for (float& x : p.decay) x = g;
    expect_close(table(), p, std::to_string(g));
  }
}

TEST_P(LinearTest, WhatAMaskHidesIsNotRead) {
  LinearProblem p;
  p.options.normalised = true;
  p.masked = true;
  p.queries = p.keys = 40;
  fill(p, 5);
  const Got clean = compute(table(), p);
  for (std::size_t h = 0; h < 2; ++h) {
    for (std::size_t j = 0; j < 40; ++j) {
      if (p.mask[j] != 0) continue;
      for (std::size_t d = 0; d < 3; ++d) p.key[(h * 40 + j) * 3 + d] = std::numeric_limits<float>::quiet_NaN();
      for (std::size_t d = 0; d < 4; ++d) p.value[(h * 40 + j) * 4 + d] = std::numeric_limits<float>::infinity();
    }
  }
  EXPECT_TRUE(same_bits(compute(table(), p).out, clean.out));
}

INSTANTIATE_TEST_SUITE_P(Kernels, LinearTest, ::testing::ValuesIn(every_kernel()), kernel_name);

}  // namespace
}  // namespace sdpa::testing
