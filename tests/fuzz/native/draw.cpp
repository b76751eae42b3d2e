#include "draw.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include <gtest/gtest.h>

#include "support/storage16.hpp"

namespace sdpa::fuzzing {
namespace {

using testing::Align;
using testing::Random;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Mostly a few, so that a run is short; now and then past a tile or two.
std::size_t length(Bytes& bytes, std::size_t usual, std::size_t most) {
  return bytes.chance(90) ? bytes.size(0, most) : bytes.size(0, usual);
}

std::vector<std::int32_t> lengths(Bytes& bytes, std::size_t count, std::size_t full) {
  std::vector<std::int32_t> result(count);
  for (std::int32_t& one : result) one = static_cast<std::int32_t>(bytes.size(0, full));
  return result;
}

std::vector<std::int32_t> starts(Bytes& bytes, std::size_t count, std::size_t full) {
  std::vector<std::int32_t> result = lengths(bytes, count, full);
  result[0] = 0;
  std::sort(result.begin(), result.end());
  return result;
}

std::array<std::size_t, 4> extents(Bytes& bytes, const Problem& p) {
  std::array<std::size_t, 4> result{p.batch, p.num_heads, p.seqlen_q, p.seqlen_kv};
  const std::uint8_t repeated = bytes.byte();
  for (std::size_t r = 0; r < 4; ++r) {
    if ((repeated >> r & 1) != 0) result[r] = 1;
  }
  return result;
}

reference::PerHead per_head(Bytes& bytes, Random& random, const Problem& p, float factor) {
  reference::PerHead values;
  values.per_batch = bytes.chance(128);
  values.data = random.normals((values.per_batch ? p.batch : 1) * p.num_heads);
  for (float& value : values.data) value *= factor;
  return values;
}

testing::Shape draw_shape(Bytes& bytes) {
  testing::Shape shape;
  shape.seqlen_q = length(bytes, 9, 70);
  shape.seqlen_kv = length(bytes, 20, 210);
  shape.head_dim = 1 + length(bytes, 10, 34);
  shape.head_dim_v = 1 + length(bytes, 10, 34);
  shape.batch = bytes.size(0, 3) % 4;
  shape.num_kv_heads = bytes.size(0, 2);
  shape.num_heads = shape.num_kv_heads * bytes.size(1, 3);
  return shape;
}

void draw_positions(Bytes& bytes, Problem& p) {
  const auto keys = static_cast<std::int64_t>(p.seqlen_kv);
  const auto queries = static_cast<std::int64_t>(p.seqlen_q);
  p.causal = bytes.chance(100);
  if (bytes.chance(60)) p.window_left = bytes.integer(0, keys + 3);
  if (bytes.chance(60)) p.window_right = bytes.integer(0, keys + 3);
  if (bytes.chance(50)) p.chunk = bytes.integer(1, keys + 5);
  if (bytes.chance(50)) p.global_keys = bytes.integer(0, keys + 5);
  if (p.batch == 1 && bytes.chance(80)) {
    const std::size_t count = bytes.size(1, 6);
    p.query_starts = starts(bytes, count, p.seqlen_q);
    p.key_starts = starts(bytes, count, p.seqlen_kv);
  }
  p.align = bytes.choose({Align::kNone, Align::kLowerRight, Align::kUpperLeft, Align::kOffset});
  // What has to be said where the lengths differ.
  if (p.align == Align::kNone && p.seqlen_q != p.seqlen_kv && p.query_starts.empty()) p.align = Align::kLowerRight;
  if (p.align != Align::kOffset) return;
  const auto offset = [&] {
    if (bytes.chance(20)) return bytes.choose<std::int64_t>({-(1LL << 31), (1LL << 31) - 1, 1LL << 24});
    return bytes.integer(-queries - 3, keys + 3);
  };
  p.query_offset = offset();
  if (!bytes.chance(80)) return;
  for (std::size_t b = 0; b < p.batch; ++b) p.query_offsets.push_back(static_cast<std::int32_t>(offset()));
}

void draw_masks(Bytes& bytes, Random& random, Problem& p) {
  if (bytes.chance(70)) p.mask = testing::random_mask(random, extents(bytes, p), bytes.byte() / 255.0);
  if (bytes.chance(70)) {
    p.bias = testing::random_bias(random, extents(bytes, p));
    const double hidden = bytes.choose({0.0, 0.3, 0.95});
    for (float& cell : p.bias.data) cell = random.chance(hidden) ? -kInfinity : cell;
  }
  if (bytes.chance(50)) p.query_lengths = lengths(bytes, p.batch, p.seqlen_q);
  if (bytes.chance(70)) p.kv_lengths = lengths(bytes, p.batch, p.seqlen_kv);
  if (bytes.chance(40)) {
    p.query_segments = testing::random_segments(random, p.batch, p.seqlen_q, 3);
    p.key_segments = testing::random_segments(random, p.batch, p.seqlen_kv, 3);
  }
  if (bytes.chance(50) && p.batch * p.num_heads * p.seqlen_q * p.seqlen_kv > 0) {
    p.block_mask =
        testing::random_block_mask(random, {bytes.choose({std::size_t{1}, p.batch}),
                                            bytes.choose({std::size_t{1}, p.num_heads}), p.seqlen_q, p.seqlen_kv});
  }
}

void draw_numbers(Bytes& bytes, Random& random, Problem& p) {
  if (bytes.chance(60)) p.scale = bytes.choose({0.0F, -0.3F, 0.07F, 0.5F});
  if (bytes.chance(50)) p.softcap = bytes.choose({0.5F, 3.0F, 50.0F});
  if (bytes.chance(50)) p.alibi_slopes = per_head(bytes, random, p, 0.1F);
  if (bytes.chance(50)) p.sinks = per_head(bytes, random, p, 1);
  if (bytes.chance(40)) p.dropout = {bytes.choose({0.1, 0.5, 0.9}), bytes.word(8)};
}

// A few elements of each operand that are anything but ordinary.
void make_wild(Bytes& bytes, Problem& p) {
  constexpr float kSubnormal = std::numeric_limits<float>::denorm_min();
  constexpr float kLargest = std::numeric_limits<float>::max();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (auto* values : {&p.query, &p.key, &p.value, &p.bias.data, &p.sinks.data}) {
    const std::size_t count = bytes.size(0, 3);
    for (std::size_t n = 0; n < count && !values->empty(); ++n) {
      float& x = (*values)[bytes.word(2) % values->size()];
      x = bytes.choose({kNan, kInfinity, -kInfinity, kLargest, -kLargest, 1e30F, -1e5F, kSubnormal, -0.0F});
      // A sink is a number or -infinity: its rule says so.
      if (values == &p.sinks.data && !(x < kInfinity)) x = kLargest;
      // The scale makes a query up to 256 times smaller. What becomes 0 there is NaN times an infinite key.
      if (values == &p.query && x == kSubnormal) x = std::numeric_limits<float>::min();
      // Weights times values are summed up before they are divided: as many values as there are keys must fit float32.
      if (values == &p.value && std::isfinite(x)) x /= static_cast<float>(p.seqlen_kv);
    }
  }
}

void draw_storage(Bytes& bytes, Problem& p, RunOptions& run) {
  run.placement = bytes.choose({testing::Placement::kScattered, testing::Placement::kBhld, testing::Placement::kBlhd});
  run.scores_stage = bytes.choose({ScoresStage::kNone, ScoresStage::kNone, ScoresStage::kScaled, ScoresStage::kCapped,
                                   ScoresStage::kBiased, ScoresStage::kWeights});
  run.lse = bytes.chance(200);
  const auto dtype = [&] {
    return bytes.choose({DType::kFloat32, DType::kFloat32, DType::kFloat16, DType::kBFloat16});
  };
  run.query_dtype = dtype();
  run.key_dtype = dtype();
  run.value_dtype = dtype();
  run.bias_dtype = dtype();
  testing::round_to(p.query, run.query_dtype);
  testing::round_to(p.key, run.key_dtype);
  testing::round_to(p.value, run.value_dtype);
  testing::round_to(p.bias.data, run.bias_dtype);
}

}  // namespace

Drawn draw(Bytes& bytes) {
  const auto tables = core::available_kernels();
  Drawn drawn{{}, {}, tables[bytes.size(0, tables.size() - 1)]};
  const testing::Shape shape = draw_shape(bytes);
  const std::uint64_t seed = bytes.byte();
  drawn.problem = testing::make_problem(shape, seed);
  Random random(seed + 1000);
  draw_positions(bytes, drawn.problem);
  draw_masks(bytes, random, drawn.problem);
  draw_numbers(bytes, random, drawn.problem);
  // An operand without elements is none to the oracle.
  drawn.wild = bytes.chance(60);
  if (drawn.wild) make_wild(bytes, drawn.problem);
  draw_storage(bytes, drawn.problem, drawn.run);
  return drawn;
}

void require(bool passed, const Problem& problem, const char* what) {
  if (passed && !::testing::Test::HasFailure()) return;
  std::fprintf(stderr, "%s: %s\n", what, testing::describe(problem).c_str());
  std::abort();
}

}  // namespace sdpa::fuzzing
