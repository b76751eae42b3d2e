#include "grids/setting.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "grids/storage.hpp"

namespace sdpa::grids {
namespace {

// Drawing each number of 131 072 keys takes longer than the call: tensors are stretches of these, begun anywhere. Their
// number is prime, so that no two rows of a tensor are alike.
constexpr std::size_t kPool = 1'000'003;

std::vector<float> draw_pool(bool uniform) {
  Random random(uniform ? 2 : 1);
  std::vector<float> pool(kPool);
  for (float& x : pool) x = uniform ? static_cast<float>(random.uniform()) : random.normal();
  return pool;
}

const std::vector<float>& pool(bool uniform) {
  static const std::vector<float> kNormals = draw_pool(false);
  static const std::vector<float> kUniforms = draw_pool(true);
  return uniform ? kUniforms : kNormals;
}

std::vector<float> numbers(Random& random, const Setting& setting, std::size_t count, float factor) {
  const std::vector<float>& from = pool(setting.uniform);
  auto at = static_cast<std::size_t>(random.integer(0, kPool - 1));
  std::vector<float> values(count);
  for (std::size_t done = 0; done < count; at = 0) {
    const std::size_t part = std::min(count - done, kPool - at);
    std::copy_n(from.begin() + static_cast<long>(at), part, values.begin() + static_cast<long>(done));
    done += part;
  }
  if (factor != 1) {
    for (float& x : values) x *= factor;
  }
  round_to(values, setting.dtype);
  return values;
}

std::vector<float> uniforms(Random& random, std::size_t count, double low, double high) {
  std::vector<float> values(count);
  for (float& x : values) x = static_cast<float>(low + (high - low) * random.uniform());
  return values;
}

std::int64_t side(Random& random, const Problem& p) {
  return random.integer(0, static_cast<std::int64_t>(p.seqlen_kv) - 1);
}

// Lengths as flash-attention pads: within 20 of the largest, or from a third of it on.
std::vector<std::int32_t> lengths(Random& random, std::size_t count, std::size_t largest) {
  const auto most = static_cast<std::int64_t>(largest);
  const std::int64_t least = random.chance(0.5) ? std::max<std::int64_t>(1, most - 20) : (most + 2) / 3;
  std::vector<std::int32_t> result(count);
  for (std::int32_t& length : result) length = static_cast<std::int32_t>(random.integer(least, most));
  return result;
}

std::vector<std::int32_t> starts_of(const std::vector<std::int32_t>& lengths) {
  std::vector<std::int32_t> starts{0};
  for (const std::int32_t length : lengths) starts.push_back(starts.back() + length);
  return starts;
}

void add_lengths(Random& random, const Setting& setting, Problem& p) {
  if (setting.sequences > 0) {
    p.query_starts = starts_of(lengths(random, setting.sequences, p.seqlen_q));
    p.key_starts = setting.storage == Storage::kPackedQkv ? p.query_starts
                                                          : starts_of(lengths(random, setting.sequences, p.seqlen_kv));
    p.seqlen_q = static_cast<std::size_t>(p.query_starts.back());
    p.seqlen_kv = static_cast<std::size_t>(p.key_starts.back());
  }
  if (setting.ragged) {
    p.query_lengths = lengths(random, p.batch, p.seqlen_q);
    p.kv_lengths = lengths(random, p.batch, p.seqlen_kv);
    p.align = Align::kOffset;
    for (std::size_t b = 0; b < p.batch; ++b) p.query_offsets.push_back(p.kv_lengths[b] - p.query_lengths[b]);
  }
}

void add_mask(Random& random, const Setting& setting, Problem& p) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::array<std::size_t, 4> full{p.batch, p.num_heads, p.seqlen_q, p.seqlen_kv};
  std::array<std::size_t, 4> extents{1, 1, 1, 1};
  for (std::size_t r = 0; r < 4; ++r) {
    if (setting.mask_full[r]) extents[r] = full[r];
  }
  switch (setting.mask) {
    case Mask::kNone:
      break;
    case Mask::kBool:
      p.mask = testing::random_mask(random, extents);
      break;
    case Mask::kBias:
      p.bias = testing::random_bias(random, extents);
      round_to(p.bias.data, setting.dtype);
      break;
    case Mask::kBand:
      p.bias = testing::random_bias(random, {1, 1, p.seqlen_q, p.seqlen_kv});
      round_to(p.bias.data, setting.dtype);
      for (std::size_t i = 0; i < p.seqlen_q; ++i) {
        for (std::size_t j = 0; j < p.seqlen_kv; ++j) {
          if (j > i || j + 10 <= i) p.bias.data[i * p.seqlen_kv + j] = -kInfinity;
        }
      }
      break;
    case Mask::kNoFourthRow:
      p.mask = testing::random_mask(random, {1, 1, p.seqlen_q, p.seqlen_kv});
      for (std::size_t i = 0; i < p.seqlen_q; i += 4)
        std::fill_n(p.mask.data.begin() + static_cast<long>(i * p.seqlen_kv), p.seqlen_kv, std::uint8_t{0});
      break;
    case Mask::kLeftPadding:
      p.mask.extents = {p.batch, 1, 1, p.seqlen_kv};
      p.mask.data.assign(p.batch * p.seqlen_kv, 1);
      for (std::size_t b = 0; b < p.batch; ++b) {
        const auto padding = random.integer(0, static_cast<std::int64_t>(p.seqlen_kv) / 2);
        std::fill_n(p.mask.data.begin() + static_cast<long>(b * p.seqlen_kv), padding, std::uint8_t{0});
      }
      break;
  }
}

}  // namespace

Problem make(const Setting& setting, std::uint64_t seed) {
  Random random(seed);
  Problem p;
  p.batch = setting.shape.batch;
  p.num_heads = setting.shape.num_heads;
  p.num_kv_heads = setting.shape.num_kv_heads;
  p.seqlen_q = setting.shape.seqlen_q;
  p.seqlen_kv = setting.shape.seqlen_kv;
  p.head_dim = setting.shape.head_dim;
  p.head_dim_v = setting.shape.head_dim_v == 0 ? p.head_dim : setting.shape.head_dim_v;

  p.align = setting.align;
  p.causal = setting.causal;
  if (setting.window == Window::kBoth || setting.window == Window::kLeft) p.window_left = side(random, p);
  if (setting.window == Window::kBoth || setting.window == Window::kRight) p.window_right = side(random, p);
  if (setting.chunk) p.chunk = random.integer(1, 2 * static_cast<std::int64_t>(p.seqlen_kv));
  p.softcap = setting.softcap;
  p.scale = setting.scale;
  if (setting.dropout > 0) p.dropout = {setting.dropout, static_cast<std::uint64_t>(random.integer(0, 1LL << 52))};
  if (setting.alibi) p.alibi_slopes = {uniforms(random, p.batch * p.num_heads, 0, 0.3), true};
  if (setting.sinks) p.sinks = {random.normals(p.num_heads), false};
  add_lengths(random, setting, p);
  add_mask(random, setting, p);

  const float cap = setting.softcap > 0 ? setting.softcap : 1;
  const auto count = [&](std::size_t heads, std::size_t rows, std::size_t columns) {
    return p.batch * heads * rows * columns;
  };
  p.query = numbers(random, setting, count(p.num_heads, p.seqlen_q, p.head_dim), setting.factors[0] * cap);
  p.key = numbers(random, setting, count(p.num_kv_heads, p.seqlen_kv, p.head_dim), setting.factors[1]);
  p.value = numbers(random, setting, count(p.num_kv_heads, p.seqlen_kv, p.head_dim_v), setting.factors[2]);
  if (setting.storage == Storage::kRepeatedHeads) {
    // Every head is the first, in the problem as in memory.
    for (const auto& [values, rows] :
         {std::pair{&p.key, p.seqlen_kv * p.head_dim}, std::pair{&p.value, p.seqlen_kv * p.head_dim_v}}) {
      for (std::size_t g = 0; g < p.batch * p.num_kv_heads; ++g) {
        const std::size_t first = g / p.num_kv_heads * p.num_kv_heads;
        if (g != first)
          std::copy_n(values->begin() + static_cast<long>(first * rows), rows,
                      values->begin() + static_cast<long>(g * rows));
      }
    }
  }
  return p;
}

double work(const Setting& setting) {
  constexpr double kElement = 10;
  const Shape& s = setting.shape;
  const auto width = static_cast<double>(s.head_dim + (s.head_dim_v == 0 ? s.head_dim : s.head_dim_v));
  const auto batch = static_cast<double>(s.batch * std::max<std::size_t>(1, setting.sequences));
  const auto queries = static_cast<double>(s.num_heads * s.seqlen_q);
  const auto keys = static_cast<double>(s.num_kv_heads * s.seqlen_kv);
  return batch * width * (queries * static_cast<double>(s.seqlen_kv) + kElement * (queries + keys));
}

Shape cut(Shape shape, double most) {
  shape.batch = std::min<std::size_t>(shape.batch, 2);
  std::size_t group = shape.num_heads / shape.num_kv_heads;
  shape.num_kv_heads = std::min<std::size_t>(shape.num_kv_heads, 6 / std::min<std::size_t>(group, 6));
  group = std::min<std::size_t>(group, 6);
  for (;;) {
    shape.num_heads = group * shape.num_kv_heads;
    if (work({.shape = shape}) <= most) return shape;
    if (shape.batch > 1) {
      shape.batch = 1;
    } else if (shape.num_kv_heads > 1) {
      shape.num_kv_heads = (shape.num_kv_heads + 1) / 2;
    } else if (group > 2) {
      group = group / 2 + group % 2;
    } else {
      return shape;
    }
  }
}

}  // namespace sdpa::grids
