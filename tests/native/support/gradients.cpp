#include "support/gradients.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "support/workspace.hpp"

namespace sdpa::testing {
namespace {

constexpr double kUnitRoundoff = 0x1p-24;

std::size_t span_of(const Extents& extents, const Strides& strides) {
  std::size_t last = 0;
  for (std::size_t r = 0; r < 4; ++r) {
    if (extents[r] == 0) return 0;
    last += (extents[r] - 1) * strides[r];
  }
  return last + 1;
}

// One number for each head of each batch entry, as the operand has them.
std::vector<float> per_head(const Problem& p, const reference::PerHead& operand, const std::vector<double>& values) {
  if (!operand.present()) return {};
  std::vector<double> sums(operand.data.size(), 0.0);
  for (std::size_t n = 0; n < values.size(); ++n) sums[operand.per_batch ? n : n % p.num_heads] += values[n];
  return {sums.begin(), sums.end()};
}

bool matches(double expected, double actual, double limit) {
  if (std::isnan(expected)) return std::isnan(actual);
  return std::fabs(actual - expected) <= limit;  // false for NaN
}

}  // namespace

Upstream random_upstream(const Problem& p, std::uint64_t seed) {
  Random random(seed);
  const std::size_t rows = p.batch * p.num_heads * p.seqlen_q;
  Upstream upstream;
  upstream.d_out = random.normals(rows * p.head_dim_v);
  upstream.d_lse = random.normals(rows);
  return upstream;
}

FloatBuffer::FloatBuffer(const Extents& extents, const Strides& strides, float fill)
    : extents_(extents), strides_(strides), data_(std::max<std::size_t>(span_of(extents, strides), 1), fill) {}

FloatBuffer::FloatBuffer(const Extents& extents, const Strides& strides, const std::vector<float>& values)
    : FloatBuffer(extents, strides, std::numeric_limits<float>::quiet_NaN()) {
  std::size_t index = 0;
  for_each([&](std::size_t at) { data_[at] = values[index++]; });
}

template <class Visit>
void FloatBuffer::for_each(Visit visit) const {
  for (std::size_t b = 0; b < extents_[0]; ++b) {
    for (std::size_t h = 0; h < extents_[1]; ++h) {
      for (std::size_t i = 0; i < extents_[2]; ++i) {
        for (std::size_t j = 0; j < extents_[3]; ++j) {
          visit(b * strides_[0] + h * strides_[1] + i * strides_[2] + j * strides_[3]);
        }
      }
    }
  }
}

std::vector<float> FloatBuffer::gather() const {
  std::vector<float> values;
  for_each([&](std::size_t at) { values.push_back(data_[at]); });
  return values;
}

bool FloatBuffer::gaps_untouched() const {
  std::vector<bool> owned(data_.size(), false);
  for_each([&](std::size_t at) { owned[at] = true; });
  for (std::size_t at = 0; at < data_.size(); ++at) {
    if (!owned[at] && data_[at] != kUnwritten) return false;
  }
  return true;
}

bool FloatBuffer::nothing_written() const {
  return std::all_of(data_.begin(), data_.end(), [](float x) { return x == kUnwritten; });
}

BackwardArguments::BackwardArguments(const Problem& p, const RunOptions& run, const Upstream& upstream,
                                     const Actual& forward)
    : forward_(p, run) {
  const AttentionTensors& t = forward_.tensors;
  tensors.query = t.query;
  tensors.key = t.key;
  tensors.value = t.value;
  const Extents lse{p.batch, p.num_heads, p.seqlen_q, 1};
  const bool is_scattered = run.placement == Placement::kScattered;
  const Strides lse_strides = is_scattered ? t.lse.strides() : contiguous_strides(lse);
  out_ = FloatBuffer(t.out.extents(), t.out.strides(), forward.out);
  lse_ = FloatBuffer(lse, lse_strides, forward.lse);
  d_out_ = FloatBuffer(t.out.extents(), t.out.strides(), upstream.d_out);
  tensors.out = out_.read_only();
  tensors.lse = lse_.read_only();
  tensors.d_out = d_out_.read_only();
  if (!upstream.d_lse.empty()) {
    d_lse_ = FloatBuffer(lse, lse_strides, upstream.d_lse);
    tensors.d_lse = d_lse_.read_only();
  }

  const auto like = [](const InputView& view) {
    return FloatBuffer(view.extents(), {view.stride(0), view.stride(1), view.stride(2), view.stride(3)});
  };
  d_query_ = like(t.query);
  d_key_ = like(t.key);
  d_value_ = like(t.value);
  tensors.d_query = d_query_.view();
  tensors.d_key = d_key_.view();
  tensors.d_value = d_value_.view();
  if (p.bias.present()) {
    Strides strides = contiguous_strides(p.bias.extents);
    if (is_scattered) {
      strides = {strides[0] + 3 * p.bias.extents[1] * p.bias.extents[2] + 5, strides[1] + 3 * p.bias.extents[2],
                 strides[2] + 3, 1};
    }
    d_bias_ = FloatBuffer(p.bias.extents, strides);
    tensors.d_bias = d_bias_.view();
  }
  const std::size_t heads = p.batch * p.num_heads;
  d_scale_.assign(heads, kUnwritten);
  tensors.d_scale = d_scale_;
  if (p.sinks.present()) {
    d_sinks_.assign(heads, kUnwritten);
    tensors.d_sinks = d_sinks_;
  }
  if (p.alibi_slopes.present()) {
    d_alibi_slopes_.assign(heads, kUnwritten);
    tensors.d_alibi_slopes = d_alibi_slopes_;
  }
}

Gradients<float> BackwardArguments::gradients(const Problem& p) const {
  Gradients<float> result;
  result.query = d_query_.gather();
  result.key = d_key_.gather();
  result.value = d_value_.gather();
  if (p.bias.present()) result.bias = d_bias_.gather();
  result.sinks = per_head(p, p.sinks, d_sinks_);
  result.alibi_slopes = per_head(p, p.alibi_slopes, d_alibi_slopes_);
  double scale = 0;
  for (const double part : d_scale_) scale += part;
  result.scale = static_cast<float>(scale);
  return result;
}

bool BackwardArguments::gaps_untouched() const {
  return d_query_.gaps_untouched() && d_key_.gaps_untouched() && d_value_.gaps_untouched() && d_bias_.gaps_untouched();
}

bool BackwardArguments::nothing_written() const {
  const auto unwritten = [](const std::vector<double>& values) {
    return std::all_of(values.begin(), values.end(), [](double x) { return x == double{kUnwritten}; });
  };
  return d_query_.nothing_written() && d_key_.nothing_written() && d_value_.nothing_written() &&
         d_bias_.nothing_written() && unwritten(d_scale_) && unwritten(d_sinks_) && unwritten(d_alibi_slopes_);
}

Status backward_status(const KernelTable& table, const BackwardArguments& arguments) {
  const WorkspaceSize size = core::attention_backward_workspace_bytes(table, arguments.tensors, arguments.options());
  const Workspace workspace(size.status.ok() ? size.bytes : 0);
  const Status status = core::attention_backward(table, arguments.tensors, arguments.options(), workspace.span());
  EXPECT_STREQ(status.name(), size.status.name()) << "the question and the call disagree";
  if (!status.ok()) {
    EXPECT_TRUE(arguments.nothing_written()) << "an error, and yet a gradient was written";
  }
  return status;
}

Gradients<float> run_backward(const KernelTable& table, const Problem& problem, const Upstream& upstream,
                              const RunOptions& options) {
  RunOptions forward_options = options;
  forward_options.lse = true;
  forward_options.scores_stage = ScoresStage::kNone;
  const Actual forward = run(table, problem, forward_options);
  const BackwardArguments arguments(problem, forward_options, upstream, forward);
  const Status status = backward_status(table, arguments);
  EXPECT_TRUE(status.ok()) << status.name() << " for " << describe(problem);
  EXPECT_TRUE(arguments.gaps_untouched()) << "written outside the gradients: " << describe(problem);
  return arguments.gradients(problem);
}

ExpectedGradients expected_gradients(const Problem& problem, const Upstream& upstream) {
  return {reference::gradients(problem, upstream), reference::gradients_float32(problem, upstream),
          reference::gradient_sizes(problem, upstream)};
}

void expect_close_gradients(const Problem& p, const ExpectedGradients& expected, const Gradients<float>& actual) {
  std::ostringstream text;
  std::size_t wrong = 0;
  const auto compare = [&](const char* what, const std::vector<double>& exact, const std::vector<float>& plain,
                           const std::vector<double>& sizes, const std::vector<float>& ours) {
    ASSERT_EQ(ours.size(), exact.size()) << what;
    double error = 0;
    for (std::size_t n = 0; n < exact.size(); ++n) {
      const double one = std::fabs(double{plain[n]} - exact[n]);
      if (std::isfinite(one)) error = std::max(error, one);
    }
    for (std::size_t n = 0; n < exact.size(); ++n) {
      const double limit = sizes[n] == 0 ? 0 : 3 * error + 8 * kUnitRoundoff * sizes[n];
      if (matches(exact[n], double{ours[n]}, limit)) continue;
      if (++wrong > 4) continue;
      text << "\n  " << what << '[' << n << "]: " << ours[n] << " instead of " << exact[n] << " (limit " << limit
           << ')';
    }
  };
  const auto& [exact, plain, sizes] = expected;
  compare("query", exact.query, plain.query, sizes.query, actual.query);
  compare("key", exact.key, plain.key, sizes.key, actual.key);
  compare("value", exact.value, plain.value, sizes.value, actual.value);
  compare("bias", exact.bias, plain.bias, sizes.bias, actual.bias);
  compare("sinks", exact.sinks, plain.sinks, sizes.sinks, actual.sinks);
  compare("alibi_slopes", exact.alibi_slopes, plain.alibi_slopes, sizes.alibi_slopes, actual.alibi_slopes);
  compare("scale", {exact.scale}, {plain.scale}, {sizes.scale}, {actual.scale});
  EXPECT_EQ(wrong, 0U) << describe(p) << text.str();
}

void expect_gradients_match(const KernelTable& table, const Problem& problem, const Upstream& upstream,
                            const RunOptions& options) {
  expect_close_gradients(problem, expected_gradients(problem, upstream),
                         run_backward(table, problem, upstream, options));
}

bool same_gradient_bits(const Gradients<float>& a, const Gradients<float>& b) {
  bool same = same_bits({a.scale}, {b.scale});
  for_each_gradient(a, b, [&](const char*, const std::vector<float>& x, const std::vector<float>& y) {
    same = same && same_bits(x, y);
  });
  return same;
}

}  // namespace sdpa::testing
