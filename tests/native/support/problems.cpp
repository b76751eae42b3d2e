#include "support/problems.hpp"

#include <array>
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

  if (random.chance(0.3)) p.scale = random.normal();
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
  return text.str();
}

}  // namespace sdpa::testing
