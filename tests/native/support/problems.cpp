#include "support/problems.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <sstream>

namespace sdpa::testing {

Problem make_problem(const Shape& shape, std::uint64_t seed) {
  Random random(seed);
  Problem p;
  p.batch = shape.batch;
  p.num_heads = shape.num_heads;
  p.num_kv_heads = shape.num_kv_heads;
  p.seqlen_q = shape.seqlen_q;
  p.seqlen_kv = shape.seqlen_kv;
  p.head_dim = shape.head_dim;
  p.head_dim_v = shape.head_dim_v == 0 ? shape.head_dim : shape.head_dim_v;
  p.query = random.normals(p.batch * p.num_heads * p.seqlen_q * p.head_dim);
  p.key = random.normals(p.batch * p.num_kv_heads * p.seqlen_kv * p.head_dim);
  p.value = random.normals(p.batch * p.num_kv_heads * p.seqlen_kv * p.head_dim_v);
  return p;
}

Problem make_causal(const Shape& shape, std::uint64_t seed) {
  Problem p = make_problem(shape, seed);
  p.causal = true;
  p.align = Align::kLowerRight;
  return p;
}

namespace {

std::size_t product(const std::array<std::size_t, 4>& extents) {
  return std::accumulate(extents.begin(), extents.end(), std::size_t{1}, std::multiplies<>());
}

std::vector<std::int32_t> random_lengths(Random& random, std::size_t batch, std::size_t full) {
  std::vector<std::int32_t> lengths(batch);
  for (std::int32_t& length : lengths)
    length = static_cast<std::int32_t>(random.integer(0, static_cast<std::int64_t>(full)));
  return lengths;
}

std::array<std::size_t, 4> random_extents(Random& random, const Problem& p) {
  std::array<std::size_t, 4> extents{p.batch, p.num_heads, p.seqlen_q, p.seqlen_kv};
  for (std::size_t& extent : extents) {
    if (random.chance(0.4)) extent = 1;
  }
  return extents;
}

}  // namespace

Broadcast<std::uint8_t> random_mask(Random& random, std::array<std::size_t, 4> extents, double probability) {
  Broadcast<std::uint8_t> mask;
  mask.extents = extents;
  mask.data.resize(product(extents));
  for (std::uint8_t& cell : mask.data) {
    // Any non-zero byte attends, not 1 alone.
    cell = random.chance(probability) ? static_cast<std::uint8_t>(random.integer(1, 255)) : 0;
  }
  return mask;
}

Broadcast<float> random_bias(Random& random, std::array<std::size_t, 4> extents) {
  Broadcast<float> bias;
  bias.extents = extents;
  bias.data = random.normals(product(extents));
  return bias;
}

Broadcast<std::uint8_t> random_block_mask(Random& random, std::array<std::size_t, 4> extents) {
  constexpr std::size_t kTile = 64;
  Broadcast<std::uint8_t> mask;
  mask.extents = extents;
  mask.data.resize(product(extents));
  const auto [batch, heads, rows, columns] = extents;
  for (std::size_t first = 0; first < batch * heads * rows;
       first = std::min(first + kTile, (first / rows + 1) * rows)) {
    const std::size_t last = std::min(first + kTile, (first / rows + 1) * rows);
    for (std::size_t j = 0; j < columns; j += kTile) {
      const double probability = random.choose({0.0, 1.0, 0.5});
      for (std::size_t i = first; i < last; ++i) {
        for (std::size_t k = j; k < std::min(columns, j + kTile); ++k)
          mask.data[i * columns + k] = random.chance(probability) ? 1 : 0;
      }
    }
  }
  return mask;
}

std::vector<std::int32_t> random_starts(Random& random, std::size_t count, std::size_t length) {
  std::vector<std::int32_t> starts = random_lengths(random, count, length);
  starts[0] = 0;
  std::sort(starts.begin(), starts.end());
  return starts;
}

std::vector<std::int32_t> random_segments(Random& random, std::size_t batch, std::size_t length, std::int32_t ids) {
  std::vector<std::int32_t> segments(batch * length);
  std::int32_t id = 0;
  for (std::int32_t& segment : segments) {
    if (random.chance(0.1)) id = static_cast<std::int32_t>(random.integer(0, ids - 1));
    segment = id;
  }
  return segments;
}

namespace {

reference::PerHead random_per_head(Random& random, const Problem& p, double factor) {
  reference::PerHead values;
  values.per_batch = random.chance(0.5);
  values.data = random.normals((values.per_batch ? p.batch : 1) * p.num_heads);
  for (float& value : values.data) value = static_cast<float>(value * factor);
  return values;
}

// The options that say who sees whom beyond masks and windows, and those that change weights: drawn apart from the
// others, so that a seed keeps what it had of those.
void add_random_options(std::uint64_t seed, Problem& p) {
  Random random(seed + 1'000'000);
  if (random.chance(0.2)) p.chunk = random.integer(1, static_cast<std::int64_t>(p.seqlen_kv) + 5);
  if (random.chance(0.3)) p.global_keys = random.integer(1, static_cast<std::int64_t>(p.seqlen_kv) / 2 + 1);
  if (random.chance(0.2)) {
    p.query_segments = random_segments(random, p.batch, p.seqlen_q, 2);
    p.key_segments = random_segments(random, p.batch, p.seqlen_kv, 2);
  }
  if (random.chance(0.2)) {
    const std::size_t batch = random.chance(0.5) ? p.batch : 1;
    const std::size_t heads = random.chance(0.5) ? p.num_heads : 1;
    p.block_mask = random_block_mask(random, {batch, heads, p.seqlen_q, p.seqlen_kv});
  }
  if (p.batch == 1 && random.chance(0.3)) {
    const auto count = static_cast<std::size_t>(random.integer(2, 6));
    p.query_starts = random_starts(random, count, p.seqlen_q);
    p.key_starts = random_starts(random, count, p.seqlen_kv);
  }
  if (random.chance(0.25)) p.alibi_slopes = random_per_head(random, p, 0.1);
  if (random.chance(0.25)) p.sinks = random_per_head(random, p, 1);
  if (random.chance(0.2))
    p.dropout = {random.choose({0.1, 0.5, 0.9}), static_cast<std::uint64_t>(random.integer(0, 1LL << 52))};
  if (p.align == Align::kNone && (p.chunk != 0 || p.alibi_slopes.present())) {
    p.align = random.choose({Align::kLowerRight, Align::kUpperLeft, Align::kOffset});
    p.query_offset = random.integer(-static_cast<std::int64_t>(p.seqlen_q), static_cast<std::int64_t>(p.seqlen_kv));
  }
}

}  // namespace

Problem random_problem(std::uint64_t seed) {
  Random random(seed);
  // Half of the lengths lie around the bounds of vectors and tiles, the others anywhere.
  const auto length = [&] {
    return static_cast<std::size_t>(random.chance(0.5)
                                        ? random.choose({1, 15, 16, 17, 31, 32, 33, 47, 48, 49, 64, 95, 96, 97})
                                        : random.integer(1, 130));
  };
  Shape shape;
  shape.seqlen_q = length();
  shape.seqlen_kv = length();
  shape.head_dim = static_cast<std::size_t>(random.integer(1, 40));
  shape.head_dim_v = static_cast<std::size_t>(random.chance(0.5) ? 0 : random.integer(1, 40));
  shape.batch = static_cast<std::size_t>(random.integer(1, 3));
  shape.num_kv_heads = static_cast<std::size_t>(random.integer(1, 2));
  shape.num_heads = shape.num_kv_heads * static_cast<std::size_t>(random.integer(1, 3));
  Problem p = make_problem(shape, seed);

  // Scores of a few units: of large ones a row hangs on two or three roundings, and the largest error of a plain
  // computation of a few rows is then no measure of what float32 does.
  if (random.chance(0.3)) p.scale = 2 * random.normal() / std::sqrt(static_cast<float>(shape.head_dim));
  if (random.chance(0.3)) p.softcap = static_cast<float>(random.choose({0.5, 5.0, 50.0}));
  if (random.chance(0.3)) p.mask = random_mask(random, random_extents(random, p), random.choose({0.05, 0.5, 0.9}));
  if (random.chance(0.3)) {
    p.bias = random_bias(random, random_extents(random, p));
    if (random.chance(0.3)) {
      for (float& cell : p.bias.data) {
        if (random.chance(0.3)) cell = -std::numeric_limits<float>::infinity();
      }
    }
  }
  if (random.chance(0.3)) p.kv_lengths = random_lengths(random, p.batch, p.seqlen_kv);
  if (random.chance(0.3)) p.query_lengths = random_lengths(random, p.batch, p.seqlen_q);

  p.causal = random.chance(0.4);
  const auto side = [&] {
    return random.chance(0.5) ? random.integer(0, 20) : random.integer(0, static_cast<std::int64_t>(p.seqlen_kv));
  };
  if (random.chance(0.3)) p.window_left = side();
  if (random.chance(0.3)) p.window_right = side();
  if (p.causal || p.window_left >= 0 || p.window_right >= 0) {
    p.align = random.choose({Align::kLowerRight, Align::kUpperLeft, Align::kOffset});
    if (p.align == Align::kOffset) {
      const auto any = [&] {
        return random.integer(-static_cast<std::int64_t>(p.seqlen_q), static_cast<std::int64_t>(p.seqlen_kv));
      };
      p.query_offset = any();
      if (random.chance(0.5)) {
        for (std::size_t b = 0; b < p.batch; ++b) p.query_offsets.push_back(static_cast<std::int32_t>(any()));
      }
    }
  }
  add_random_options(seed, p);
  return p;
}

std::string describe(const Problem& p) {
  std::ostringstream text;
  text << "B:" << p.batch << " H:" << p.num_heads << " Hkv:" << p.num_kv_heads << " Sq:" << p.seqlen_q
       << " Skv:" << p.seqlen_kv << " D:" << p.head_dim << " Dv:" << p.head_dim_v;
  if (p.scale) text << " scale:" << *p.scale;
  if (p.softcap != 0) text << " softcap:" << p.softcap;
  const auto extents = [&](const char* name, const std::array<std::size_t, 4>& e) {
    text << ' ' << name << ":(" << e[0] << ',' << e[1] << ',' << e[2] << ',' << e[3] << ')';
  };
  const auto list = [&](const char* name, const std::vector<std::int32_t>& values) {
    if (values.empty()) return;
    text << ' ' << name << ":[";
    for (const std::int32_t value : values) text << value << ' ';
    text << ']';
  };
  if (p.mask.present()) extents("mask", p.mask.extents);
  if (p.bias.present()) extents("bias", p.bias.extents);
  if (p.causal) text << " causal";
  if (p.window_left >= 0 || p.window_right >= 0) text << " window:[" << p.window_left << ',' << p.window_right << ']';
  if (p.align == Align::kLowerRight) text << " lower-right";
  if (p.align == Align::kUpperLeft) text << " upper-left";
  if (p.align == Align::kOffset) text << " offset:" << p.query_offset;
  list("query_offsets", p.query_offsets);
  list("query_lengths", p.query_lengths);
  list("kv_lengths", p.kv_lengths);
  list("query_starts", p.query_starts);
  list("key_starts", p.key_starts);
  if (p.chunk != 0) text << " chunk:" << p.chunk;
  if (p.global_keys != 0) text << " global_keys:" << p.global_keys;
  if (!p.query_segments.empty()) text << " segments";
  if (p.block_mask.present()) extents("block_mask", p.block_mask.extents);
  if (p.alibi_slopes.present()) text << (p.alibi_slopes.per_batch ? " alibi per batch" : " alibi");
  if (p.sinks.present()) text << (p.sinks.per_batch ? " sinks per batch" : " sinks");
  if (p.dropout.probability != 0) text << " dropout:" << p.dropout.probability << '/' << p.dropout.seed;
  if (p.origin.batch + p.origin.head + p.origin.row != 0) {
    text << " origin:[" << p.origin.batch << ' ' << p.origin.head << ' ' << p.origin.row << ']';
  }
  return text.str();
}

}  // namespace sdpa::testing
