// Running the backward pass on a kernel table, and comparing with the reference.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reference/gradients.hpp"
#include "sdpa/gradients.hpp"
#include "support/arguments.hpp"
#include "support/kernels.hpp"

namespace sdpa::testing {

using reference::Gradients;
using reference::Upstream;

// Unit normal gradients of out and lse.
Upstream random_upstream(const Problem& problem, std::uint64_t seed = 3);

// Floats of a tensor with the strides of another, gaps full of `fill`.
class FloatBuffer {
 public:
  FloatBuffer() = default;
  FloatBuffer(const Extents& extents, const Strides& strides, float fill = kUnwritten);
  FloatBuffer(const Extents& extents, const Strides& strides, const std::vector<float>& values);

  TensorView<float> view() { return {data_.data(), extents_, strides_}; }
  TensorView<const float> read_only() const { return {data_.data(), extents_, strides_}; }
  std::vector<float> gather() const;
  bool gaps_untouched() const;
  bool nothing_written() const;

 private:
  template <class Visit>
  void for_each(Visit visit) const;

  Extents extents_{};
  Strides strides_{};
  std::vector<float> data_;  // of the exact size, so that an address sanitizer sees what lies past the end
};

// A backward call laid out in memory, tensors placed as those of the forward call are.
class BackwardArguments {
 public:
  // `out` and `lse` of the forward pass.
  BackwardArguments(const Problem& problem, const RunOptions& run, const Upstream& upstream, const Actual& forward);
  BackwardArguments(const BackwardArguments&) = delete;
  BackwardArguments& operator=(const BackwardArguments&) = delete;

  BackwardTensors tensors;
  AttentionOptions& options() { return forward_.options; }
  const AttentionOptions& options() const { return forward_.options; }

  Gradients<float> gradients(const Problem& problem) const;
  bool gaps_untouched() const;
  bool nothing_written() const;

 private:
  Arguments forward_;
  FloatBuffer out_, lse_, d_out_, d_lse_;
  FloatBuffer d_query_, d_key_, d_value_, d_bias_;
  std::vector<double> d_scale_, d_sinks_, d_alibi_slopes_;
};

// Status of the call in a workspace of exactly the bytes that it asked for, full of NaN.
Status backward_status(const KernelTable& table, const BackwardArguments& arguments);

// Forward and backward on one table. Fails the test where a status is not kOk or something outside the gradients was
// written.
Gradients<float> run_backward(const KernelTable& table, const Problem& problem, const Upstream& upstream,
                              const RunOptions& options = {});

struct ExpectedGradients {
  Gradients<double> exact;
  Gradients<float> plain;   // what plain float32 arithmetic gives: the measure for the error
  Gradients<double> sizes;  // what each gradient would be if no terms cancelled
};

ExpectedGradients expected_gradients(const Problem& problem, const Upstream& upstream);

// Fails where a gradient differs from the reference by more than |error| <= 3 E + 8u size, where E is the largest error
// of the plain float32 computation in the same tensor, u = 2^-24, and size the sum of the absolute values of the terms
// that were added up. Where there are no terms the gradient has to be exactly 0.
void expect_close_gradients(const Problem& problem, const ExpectedGradients& expected, const Gradients<float>& actual);

// run_backward() and expect_close_gradients() together.
void expect_gradients_match(const KernelTable& table, const Problem& problem, const Upstream& upstream,
                            const RunOptions& options = {});

// Visits (name, tensor of a, tensor of b) of every gradient that is a tensor.
template <class A, class B, class Visit>
void for_each_gradient(const A& a, const B& b, Visit visit) {
  visit("query", a.query, b.query);
  visit("key", a.key, b.key);
  visit("value", a.value, b.value);
  visit("bias", a.bias, b.bias);
  visit("sinks", a.sinks, b.sinks);
  visit("alibi_slopes", a.alibi_slopes, b.alibi_slopes);
}

bool same_gradient_bits(const Gradients<float>& a, const Gradients<float>& b);

}  // namespace sdpa::testing
