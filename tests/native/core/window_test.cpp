// Windows of an image: the same bits as attention() on the tokens of each window, copied out; and every status.
#include "sdpa/window.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/dispatch.hpp"
#include "support/kernels.hpp"
#include "support/random.hpp"
#include "support/workspace.hpp"

namespace sdpa::testing {
namespace {

constexpr float kUntouched = 12345.0F;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Image {
  std::size_t height, width;                // of the image
  std::size_t window_height, window_width;  // of its windows
  std::vector<std::int32_t> origins;
  std::size_t head_dim = 8, head_dim_v = 8;
  std::size_t heads = 2, kv_heads = 2, batch = 1;
  Layout layout = Layout::kBhld;
  bool has_bias = true;
};

// A call of windows with operands of its own.
struct WindowCall {
  explicit WindowCall(const Image& given, std::uint64_t seed = 1) : image(given) {
    Random random(seed);
    const std::size_t tokens = image.height * image.width;
    q = {image.batch, image.heads, tokens, image.head_dim};
    k = {image.batch, image.kv_heads, tokens, image.head_dim};
    v = {image.batch, image.kv_heads, tokens, image.head_dim_v};
    o = {image.batch, image.heads, tokens, image.head_dim_v};
    query = random.normals(q[0] * q[1] * q[2] * q[3]);
    key = random.normals(k[0] * k[1] * k[2] * k[3]);
    value = random.normals(v[0] * v[1] * v[2] * v[3]);
    out.assign(o[0] * o[1] * o[2] * o[3], kUntouched);
    lse.assign(o[0] * o[1] * o[2], kUntouched);
    const std::size_t n = image.window_height * image.window_width;
    if (image.has_bias) {
      bias = random.normals(image.heads * n * n);
      const Extents extents{1, image.heads, n, n};
      options.bias = {bias.data(), DType::kFloat32, extents, contiguous_strides(extents)};
    }
    tensors.query = {query.data(), DType::kFloat32, q, image.layout};
    tensors.key = {key.data(), DType::kFloat32, k, image.layout};
    tensors.value = {value.data(), DType::kFloat32, v, image.layout};
    tensors.out = {out.data(), o, contiguous_strides(o, image.layout)};
    tensors.lse = {lse.data(), {o[0], o[1], o[2], 1}};
    windows = {image.width, image.window_height, image.window_width, image.origins};
    options.softcap = 3.0;
  }
  WindowCall(const WindowCall&) = delete;
  WindowCall& operator=(const WindowCall&) = delete;

  Image image;
  Extents q{}, k{}, v{}, o{};
  std::vector<float> query, key, value, out, lse, bias;
  AttentionTensors tensors;
  AttentionOptions options;
  Windows windows;
};

// (1, heads, tokens of the window, dim) of the window at `origin` in image b.
std::vector<float> cut(const InputView& view, const Windows& w, std::size_t b, std::size_t origin) {
  std::vector<float> found;
  for (std::size_t h = 0; h < view.extent(1); ++h) {
    for (std::size_t y = 0; y < w.height; ++y) {
      for (std::size_t x = 0; x < w.width; ++x) {
        const auto* row =
            static_cast<const float*>(view.head(b, h)) + (origin + y * w.image_width + x) * view.stride(2);
        found.insert(found.end(), row, row + view.extent(3));
      }
    }
  }
  return found;
}

class WindowAttention : public KernelTest {
 protected:
  void expect_same_bits_as_alone(const Image& image) const {
    WindowCall call(image);
    const WorkspaceSize size =
        core::window_attention_workspace_bytes(table(), call.tensors, call.windows, call.options);
    ASSERT_TRUE(size.status.ok()) << size.status.name();
    const Workspace workspace(size.bytes);
    ASSERT_TRUE(core::window_attention(table(), call.tensors, call.windows, call.options, workspace.span()).ok());
    std::vector<float> want_out(call.out.size(), kUntouched);
    std::vector<float> want_lse(call.lse.size(), kUntouched);
    const TensorView<float> to(want_out.data(), call.o, contiguous_strides(call.o, image.layout));
    for (std::size_t b = 0; b < image.batch; ++b) {
      for (const std::int32_t at : image.origins) alone(call, b, static_cast<std::size_t>(at), to, want_lse);
    }
    EXPECT_TRUE(same_bits(call.out, want_out));
    EXPECT_TRUE(same_bits(call.lse, want_lse));
  }

 private:
  void alone(const WindowCall& call, std::size_t b, std::size_t origin, const TensorView<float>& to,
             std::vector<float>& to_lse) const {
    const Windows& w = call.windows;
    const std::size_t n = w.height * w.width;
    const std::vector<float> query = cut(call.tensors.query, w, b, origin);
    const std::vector<float> key = cut(call.tensors.key, w, b, origin);
    const std::vector<float> value = cut(call.tensors.value, w, b, origin);
    std::vector<float> out(call.o[1] * n * call.o[3]);
    std::vector<float> lse(call.o[1] * n);
    AttentionTensors t;
    t.query = {query.data(), DType::kFloat32, {1, call.q[1], n, call.q[3]}};
    t.key = {key.data(), DType::kFloat32, {1, call.k[1], n, call.k[3]}};
    t.value = {value.data(), DType::kFloat32, {1, call.v[1], n, call.v[3]}};
    t.out = {out.data(), {1, call.o[1], n, call.o[3]}};
    t.lse = {lse.data(), {1, call.o[1], n, 1}};
    const Workspace workspace(core::attention_workspace_bytes(table(), t, call.options).bytes);
    ASSERT_TRUE(core::attention(table(), t, call.options, workspace.span()).ok());
    for (std::size_t h = 0; h < call.o[1]; ++h) {
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t token = origin + i / w.width * w.image_width + i % w.width;
        for (std::size_t c = 0; c < call.o[3]; ++c) to(b, h, token, c) = out[(h * n + i) * call.o[3] + c];
        to_lse[(b * call.o[1] + h) * call.o[2] + token] = lse[h * n + i];
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(, WindowAttention, ::testing::ValuesIn(every_kernel()), kernel_name);

TEST_P(WindowAttention, HasTheBitsOfAttentionOnEachWindowsTokens) {
  const Image images[] = {
      {14, 21, 7, 7, {0, 7, 14, 147, 161}, 32, 32, 3, 3},
      {9, 10, 3, 4, {0, 16, 65}, 5, 9, 4, 2, 2},
      {9, 10, 3, 4, {0, 16, 65}, 7, 3, 4, 1, 2, Layout::kBlhd, false},
      {1, 1, 1, 1, {0}},
      {5, 6, 1, 3, {0, 3, 24}},
      {5, 6, 5, 1, {0, 5}},
      {6, 8, 3, 8, {0, 24}, 33, 17},
      {12, 8, 12, 8, {0}, 16, 20, 2, 1},
      // More rows than a block has: lines of several blocks, and a line of several.
      {40, 30, 17, 13, {0, 17, 690}, 12, 12},
      {34, 20, 33, 5, {0, 15}, 8, 8, 2, 2, 1, Layout::kBlhd},
      {3, 300, 2, 150, {0, 150}, 4, 4},
      {2, 300, 1, 257, {3, 300}, 4, 4},
  };
  for (const Image& image : images) {
    SCOPED_TRACE(std::to_string(image.height) + " x " + std::to_string(image.width) + ", windows of " +
                 std::to_string(image.window_height) + " x " + std::to_string(image.window_width));
    expect_same_bits_as_alone(image);
  }
}

struct WindowFault {
  const char* what;
  StatusCode code;
  void (*make)(WindowCall&);
};

const std::array<std::int32_t, 1> kLeftOf{-1};
const std::array<std::int32_t, 1> kAcrossTheEdge{3};
const std::array<std::int32_t, 1> kBelow{24};

const WindowFault kFaults[] = {
    {"query without data", StatusCode::kMissingTensor,
     [](WindowCall& c) {
       c.tensors.query = {nullptr, DType::kFloat32, c.q};
     }},
    {"fewer keys", StatusCode::kSeqlenMismatch,
     [](WindowCall& c) {
       c.tensors.key = {c.key.data(), DType::kFloat32, {1, 2, 25, 8}};
       c.tensors.value = {c.value.data(), DType::kFloat32, {1, 2, 25, 8}};
     }},
    {"no width of the image", StatusCode::kInvalidRequest, [](WindowCall& c) { c.windows.image_width = 0; }},
    {"a width that does not divide the tokens", StatusCode::kInvalidRequest,
     [](WindowCall& c) { c.windows.image_width = 7; }},
    {"no rows", StatusCode::kInvalidRequest, [](WindowCall& c) { c.windows.height = 0; }},
    {"no columns", StatusCode::kInvalidRequest, [](WindowCall& c) { c.windows.width = 0; }},
    {"more rows than the image", StatusCode::kInvalidRequest, [](WindowCall& c) { c.windows.height = 6; }},
    {"more columns than the image", StatusCode::kInvalidRequest, [](WindowCall& c) { c.windows.width = 7; }},
    {"an origin left of the image", StatusCode::kInvalidRequest, [](WindowCall& c) { c.windows.origins = kLeftOf; }},
    {"a window across the edge", StatusCode::kInvalidRequest,
     [](WindowCall& c) { c.windows.origins = kAcrossTheEdge; }},
    {"a window below the image", StatusCode::kInvalidRequest, [](WindowCall& c) { c.windows.origins = kBelow; }},
    {"keys of a cache, with scales", StatusCode::kInvalidRequest,
     [](WindowCall& c) {
       c.tensors.key = {c.key.data(), DType::kInt8, c.tensors.key.extents()};
       c.tensors.map.key_scales = c.bias.data();
     }},
    {"values of a cache, with scales", StatusCode::kInvalidRequest,
     [](WindowCall& c) {
       c.tensors.value = {c.value.data(), DType::kInt8, c.tensors.value.extents()};
       c.tensors.map.value_scales = c.bias.data();
     }},
    {"scores", StatusCode::kInvalidScoresStage,
     [](WindowCall& c) {
       c.tensors.scores = {c.out.data(), {1, 2, 30, 30}};
     }},
    {"a bias of another window", StatusCode::kBiasShape,
     [](WindowCall& c) {
       c.options.bias = {c.bias.data(), DType::kFloat32, {1, 2, 6, 8}, contiguous_strides({1, 2, 6, 8})};
     }},
    {"a scale that is none", StatusCode::kInvalidScale, [](WindowCall& c) { c.options.scale = HUGE_VAL; }},
};

TEST_P(WindowAttention, RefusesEachFaultAndWritesNothing) {
  const Image image{5, 6, 2, 4, {0, 2}};
  for (const WindowFault& fault : kFaults) {
    SCOPED_TRACE(fault.what);
    WindowCall call(image);
    fault.make(call);
    const WorkspaceSize size =
        core::window_attention_workspace_bytes(table(), call.tensors, call.windows, call.options);
    EXPECT_STREQ(size.status.name(), Status(fault.code).name());
    EXPECT_EQ(core::window_attention(table(), call.tensors, call.windows, call.options, {}), Status(fault.code));
    for (const float x : call.out) EXPECT_EQ(x, kUntouched);
  }
  WindowCall call(image);
  const WorkspaceSize size = window_attention_workspace_bytes(call.tensors, call.windows, call.options);
  ASSERT_TRUE(size.status.ok());
  const Workspace workspace(size.bytes);
  const auto less = workspace.span().first(size.bytes - 1);
  EXPECT_EQ(window_attention(call.tensors, call.windows, call.options, less), Status(StatusCode::kWorkspaceTooSmall));
  for (const float x : call.out) EXPECT_EQ(x, kUntouched);
  EXPECT_TRUE(window_attention(call.tensors, call.windows, call.options, workspace.span()).ok());
}

TEST_P(WindowAttention, DividesRowsByTheirNorm) {
  const std::array<double, 2> factors{1.5, -40.0};
  for (const std::size_t columns : {1U, 3U, 8U, 33U, 64U}) {
    for (const Layout layout : {Layout::kBhld, Layout::kBlhd}) {
      const Extents extents{2, 2, 5, columns};
      Random random(columns);
      std::vector<float> x = random.normals(20 * columns);
      const InputView view(x.data(), DType::kFloat32, extents, layout);
      const auto row = [&](std::size_t b, std::size_t h, std::size_t i) {
        return b * contiguous_strides(extents, layout)[0] + h * contiguous_strides(extents, layout)[1] +
               i * contiguous_strides(extents, layout)[2];
      };
      const auto scale_row = [&](std::size_t at, float by) {
        for (std::size_t c = 0; c < columns; ++c) x[at + c] *= by;
      };
      scale_row(row(0, 0, 0), 1e30F);
      scale_row(row(0, 1, 1), 1e-30F);
      scale_row(row(1, 0, 2), 0.0F);
      scale_row(row(1, 1, 3), 1e-42F);
      x[row(1, 0, 4)] = kNaN;
      std::vector<float> got(x.size(), kUntouched);
      ASSERT_TRUE(core::normalize_rows(table(), view, factors.data(), got.data()).ok());
      for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t h = 0; h < 2; ++h) {
          for (std::size_t i = 0; i < 5; ++i) {
            const float* from = x.data() + row(b, h, i);
            double sum = 0.0;
            for (std::size_t c = 0; c < columns; ++c)
              sum += static_cast<double>(from[c]) * static_cast<double>(from[c]);
            const double norm = std::isnan(sum) ? sum : std::max(std::sqrt(sum), 1e-12);
            for (std::size_t c = 0; c < columns; ++c) {
              const double want = factors[h] * static_cast<double>(from[c]) / norm;
              const auto found = static_cast<double>(got[row(b, h, i) + c]);
              if (std::isnan(want)) {
                EXPECT_TRUE(std::isnan(found));
              } else {
                EXPECT_NEAR(found, want, 4e-7 * std::abs(want) + 1e-44) << b << h << i << c;
              }
            }
          }
        }
      }
      EXPECT_TRUE(normalize_rows(view, nullptr, got.data()).ok());
      EXPECT_EQ(normalize_rows({x.data(), DType::kFloat16, extents}, nullptr, got.data()),
                Status(StatusCode::kInvalidDtype));
      EXPECT_EQ(normalize_rows(view, nullptr, nullptr), Status(StatusCode::kMissingTensor));
    }
  }
}

}  // namespace
}  // namespace sdpa::testing
