#include "grids/call.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "grids/storage.hpp"
#include "support/workspace.hpp"

namespace sdpa::grids {
namespace {

// A problem without its tensors, of no batch row: what is left of it is options.
Problem without_tensors(Problem& problem) {
  std::vector<float> query = std::exchange(problem.query, {});
  std::vector<float> key = std::exchange(problem.key, {});
  std::vector<float> value = std::exchange(problem.value, {});
  Problem options = problem;
  options.batch = 0;
  problem.query = std::move(query);
  problem.key = std::move(key);
  problem.value = std::move(value);
  return options;
}

void write_row(std::byte* target, const float* row, std::size_t columns, DType dtype) {
  if (dtype == DType::kFloat32) {
    std::memcpy(target, row, columns * sizeof(float));
    return;
  }
  for (std::size_t c = 0; c < columns; ++c) {
    const std::uint16_t bits = to_bits(row[c], dtype);
    std::memcpy(target + c * sizeof(bits), &bits, sizeof(bits));
  }
}

void write_rows(std::byte* target, const std::vector<float>& values, const Extents& extents, const Strides& strides,
                DType dtype) {
  const float* row = values.data();
  for (std::size_t b = 0; b < extents[0]; ++b) {
    for (std::size_t h = 0; h < extents[1]; ++h) {
      for (std::size_t i = 0; i < extents[2]; ++i, row += extents[3]) {
        const std::size_t at = b * strides[0] + h * strides[1] + i * strides[2];
        write_row(target + at * size_of(dtype), row, extents[3], dtype);
      }
    }
  }
}

std::size_t size_of_extents(const Extents& e) { return e[0] * e[1] * e[2] * e[3]; }

}  // namespace

Call::Call(Problem& problem, const Setting& setting)
    : problem_(problem),
      dtype_(setting.dtype),
      layout_(setting.storage == Storage::kHeadsBeforeRows ? Layout::kBhld : Layout::kBlhd) {
  arguments_ =
      std::make_unique<testing::Arguments>(without_tensors(problem), testing::RunOptions{.bias_dtype = setting.dtype});
  lay_out_all(setting);
}

InputView Call::lay_out(const std::vector<float>& values, const Extents& extents, const Strides& strides,
                        std::size_t size) {
  // Bytes of 255 are NaN in every type.
  auto& buffer = buffers_.emplace_back(size * size_of(dtype_), std::byte{255});
  write_rows(buffer.data(), values, extents, strides, dtype_);
  return {buffer.data(), dtype_, extents, strides};
}

void Call::lay_out_packed(std::size_t tensors, const Setting& setting) {
  const Problem& p = problem_;
  const std::size_t heads = p.num_kv_heads;
  const Extents extents{p.batch, heads, p.seqlen_kv, p.head_dim};
  const std::size_t row = tensors * heads * p.head_dim;
  const Strides strides{p.seqlen_kv * row, p.head_dim, row, 1};
  auto& buffer = buffers_.emplace_back(p.batch * p.seqlen_kv * row * size_of(dtype_), std::byte{255});
  std::byte* begin = buffer.data();
  const auto add = [&](const std::vector<float>& values) {
    write_rows(begin, values, extents, strides, dtype_);
    const InputView view(begin, dtype_, extents, strides);
    begin += heads * p.head_dim * size_of(dtype_);
    return view;
  };
  if (setting.storage == Storage::kPackedQkv) arguments_->tensors.query = add(p.query);
  arguments_->tensors.key = add(p.key);
  arguments_->tensors.value = add(p.value);
}

// Each batch row has pages for all its keys, in no order among those of the others and some that nobody has.
void Call::lay_out_pages(std::size_t page_size) {
  constexpr std::size_t kSpare = 2;
  const Problem& p = problem_;
  const std::size_t per_row = (p.seqlen_kv + page_size - 1) / page_size;
  pages_.resize(p.batch * per_row + kSpare);
  std::iota(pages_.begin(), pages_.end(), 0);
  Random random(pages_.size());
  for (std::size_t n = pages_.size(); n > 1; --n)
    std::swap(pages_[n - 1], pages_[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(n) - 1))]);

  const auto lay_out_tokens = [&](const std::vector<float>& values, std::size_t columns) {
    const Strides strides{p.num_kv_heads * page_size * columns, page_size * columns, columns, 1};
    auto& buffer = buffers_.emplace_back(pages_.size() * strides[0] * size_of(dtype_), std::byte{255});
    const float* row = values.data();
    for (std::size_t b = 0; b < p.batch; ++b) {
      for (std::size_t g = 0; g < p.num_kv_heads; ++g) {
        for (std::size_t j = 0; j < p.seqlen_kv; ++j, row += columns) {
          const auto page = static_cast<std::size_t>(pages_[b * per_row + j / page_size]);
          const std::size_t at = page * strides[0] + g * strides[1] + j % page_size * strides[2];
          write_row(buffer.data() + at * size_of(dtype_), row, columns, dtype_);
        }
      }
    }
    return InputView(buffer.data(), dtype_, {p.batch, p.num_kv_heads, p.seqlen_kv, columns}, strides);
  };
  arguments_->tensors.key = lay_out_tokens(p.key, p.head_dim);
  arguments_->tensors.value = lay_out_tokens(p.value, p.head_dim_v);
  KeyValueMap& map = arguments_->tensors.map;
  map.pages = pages_.data();
  map.pages_per_row = per_row;
  map.page_size = page_size;
}

void Call::lay_out_all(const Setting& setting) {
  const Problem& p = problem_;
  AttentionTensors& tensors = arguments_->tensors;
  const Extents q{p.batch, p.num_heads, p.seqlen_q, p.head_dim};
  const Extents k{p.batch, p.num_kv_heads, p.seqlen_kv, p.head_dim};
  const Extents v{p.batch, p.num_kv_heads, p.seqlen_kv, p.head_dim_v};
  const auto plain = [&](const std::vector<float>& values, const Extents& extents) {
    return lay_out(values, extents, contiguous_strides(extents, layout_), size_of_extents(extents));
  };
  if (setting.storage == Storage::kPackedQkv) {
    lay_out_packed(3, setting);
    return;
  }
  if (setting.storage == Storage::kRepeatedHeads) {
    constexpr std::size_t kGap = 3;
    const auto apart = [&](const std::vector<float>& values, const Extents& extents, bool repeated) {
      const std::size_t row = extents[3] + kGap;
      const std::size_t head = extents[2] * row + kGap;
      const std::size_t batch = (repeated ? 1 : extents[1]) * head + kGap;
      return lay_out(values, extents, {batch, repeated ? 0 : head, row, 1}, extents[0] * batch);
    };
    tensors.query = apart(p.query, q, false);
    tensors.key = apart(p.key, k, true);
    tensors.value = apart(p.value, v, true);
    return;
  }
  tensors.query = plain(p.query, q);
  if (setting.page_size > 0) {
    lay_out_pages(setting.page_size);
    return;
  }
  if (setting.storage == Storage::kPackedKv && p.head_dim == p.head_dim_v) {
    lay_out_packed(2, setting);
    return;
  }
  tensors.key = plain(p.key, k);
  tensors.value = plain(p.value, v);
}

Outputs Call::run(const KernelTable& table) const {
  const Problem& p = problem_;
  const Extents shape{p.batch, p.num_heads, p.seqlen_q, p.head_dim_v};
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  Outputs outputs{std::vector<float>(size_of_extents(shape), kNan),
                  std::vector<float>(p.batch * p.num_heads * p.seqlen_q, kNan), contiguous_strides(shape, layout_)};
  AttentionTensors tensors = arguments_->tensors;
  tensors.out = {outputs.out.data(), shape, outputs.strides};
  tensors.lse = {outputs.lse.data(), {p.batch, p.num_heads, p.seqlen_q, 1}};
  const WorkspaceSize size = core::attention_workspace_bytes(table, tensors, arguments_->options);
  EXPECT_TRUE(size.status.ok()) << size.status.name();
  const testing::Workspace workspace(size.bytes);
  const Status status = core::attention(table, tensors, arguments_->options, workspace.span());
  EXPECT_TRUE(status.ok()) << status.name();
  return outputs;
}

}  // namespace sdpa::grids
