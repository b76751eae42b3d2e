// The same bits for any way of dealing out the work: units of one key head with the query heads that share it.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "support/forward_options.hpp"
#include "support/gradients.hpp"

namespace sdpa::testing {
namespace {

class BackwardReproducibility : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, BackwardReproducibility, ::testing::ValuesIn(every_kernel()), kernel_name);

template <class T>
std::vector<T> slice(const std::vector<T>& values, std::size_t index, std::size_t size) {
  const auto begin = values.begin() + static_cast<long>(index * size);
  return {begin, begin + static_cast<long>(size)};
}

// Heads [first, first + count) of batch entry b; dimensions of extent 1 stay.
template <class T>
Broadcast<T> heads_of(const Broadcast<T>& whole, std::size_t b, std::size_t first, std::size_t count) {
  if (!whole.present()) return whole;
  Broadcast<T> part;
  part.extents = {1, whole.extents[1] == 1 ? 1 : count, whole.extents[2], whole.extents[3]};
  for (std::size_t h = 0; h < part.extents[1]; ++h) {
    for (std::size_t i = 0; i < part.extents[2]; ++i) {
      for (std::size_t j = 0; j < part.extents[3]; ++j) part.data.push_back(whole.at(b, first + h, i, j));
    }
  }
  return part;
}

reference::PerHead heads_of(const reference::PerHead& whole, std::size_t b, std::size_t first, std::size_t count,
                            std::size_t num_heads) {
  reference::PerHead part;
  for (std::size_t h = 0; whole.present() && h < count; ++h) part.data.push_back(whole.at(b, first + h, num_heads));
  return part;
}

// Key head g of batch entry b with its query heads, as a problem of its own.
Problem unit_of(const Problem& p, std::size_t b, std::size_t g) {
  Problem part = p;
  const std::size_t group = p.num_heads / p.num_kv_heads;
  const std::size_t head = g * group;
  part.batch = part.num_kv_heads = 1;
  part.num_heads = group;
  part.query = slice(p.query, b * p.num_kv_heads + g, group * p.seqlen_q * p.head_dim);
  part.key = slice(p.key, b * p.num_kv_heads + g, p.seqlen_kv * p.head_dim);
  part.value = slice(p.value, b * p.num_kv_heads + g, p.seqlen_kv * p.head_dim_v);
  part.mask = heads_of(p.mask, b, head, group);
  part.bias = heads_of(p.bias, b, head, group);
  part.sinks = heads_of(p.sinks, b, head, group, p.num_heads);
  part.alibi_slopes = heads_of(p.alibi_slopes, b, head, group, p.num_heads);
  part.origin.batch += b;
  part.origin.head += head;
  for (auto* values : {&part.query_offsets, &part.query_lengths, &part.kv_lengths}) {
    if (!values->empty()) *values = {(*values)[b]};
  }
  if (!p.query_segments.empty()) part.query_segments = slice(p.query_segments, b, p.seqlen_q);
  if (!p.key_segments.empty()) part.key_segments = slice(p.key_segments, b, p.seqlen_kv);
  return part;
}

void add(std::vector<float>& sums, const std::vector<float>& values, std::size_t at) {
  for (std::size_t n = 0; n < values.size(); ++n) sums[at + n] += values[n];
}

void append(std::vector<float>& to, const std::vector<float>& values) {
  to.insert(to.end(), values.begin(), values.end());
}

// Gradients of all units, put together in the order of the units.
Gradients<float> by_units(const KernelTable& table, const Problem& p, const Upstream& upstream,
                          const RunOptions& options) {
  Gradients<float> whole;
  whole.bias.assign(p.bias.data.size(), 0.0F);
  const std::size_t group = p.num_heads / p.num_kv_heads;
  for (std::size_t b = 0; b < p.batch; ++b) {
    for (std::size_t g = 0; g < p.num_kv_heads; ++g) {
      const std::size_t unit = b * p.num_kv_heads + g;
      const std::size_t rows = group * p.seqlen_q;
      const Upstream above{slice(upstream.d_out, unit, rows * p.head_dim_v), slice(upstream.d_lse, unit, rows)};
      const Gradients<float> part = run_backward(table, unit_of(p, b, g), above, options);
      append(whole.query, part.query);
      append(whole.key, part.key);
      append(whole.value, part.value);
      if (!p.bias.present()) continue;
      const auto& extents = p.bias.extents;
      const std::size_t head = extents[1] == 1 ? 0 : g * group;
      add(whole.bias, part.bias, ((extents[0] == 1 ? 0 : b) * extents[1] + head) * extents[2] * extents[3]);
    }
  }
  return whole;
}

TEST_P(BackwardReproducibility, AUnitAloneGivesTheBitsThatItHasInTheWhole) {
  for (std::size_t option = 0; option < forward_options().size(); ++option) {
    SCOPED_TRACE(forward_options()[option].name);
    const std::uint64_t set = std::uint64_t{1} << option;
    const auto [p, options] = with_options(130, set, set);
    const Upstream upstream = random_upstream(p);
    const Gradients<float> whole = run_backward(table(), p, upstream, options);
    const Gradients<float> parts = by_units(table(), p, upstream, options);
    EXPECT_TRUE(same_bits(whole.query, parts.query));
    EXPECT_TRUE(same_bits(whole.key, parts.key));
    EXPECT_TRUE(same_bits(whole.value, parts.value));
    EXPECT_TRUE(same_bits(whole.bias, parts.bias));
  }
}

TEST_P(BackwardReproducibility, TheSumsOfARepeatedBiasAreThoseOfTheUnitsInOrder) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Problem p = random_problem(seed);
    Random random(seed);
    std::array<std::size_t, 4> extents{p.batch, p.num_heads, p.seqlen_q, p.seqlen_kv};
    for (std::size_t& extent : extents) {
      if (random.chance(0.5)) extent = 1;
    }
    p.bias = random_bias(random, extents);
    const Upstream upstream = random_upstream(p);
    const Gradients<float> whole = run_backward(table(), p, upstream);
    const Gradients<float> parts = by_units(table(), p, upstream, {});
    ASSERT_TRUE(same_bits(whole.query, parts.query)) << describe(p);
    ASSERT_TRUE(same_bits(whole.key, parts.key)) << describe(p);
    ASSERT_TRUE(same_bits(whole.value, parts.value)) << describe(p);
    ASSERT_TRUE(same_bits(whole.bias, parts.bias)) << describe(p);
  }
}

TEST_P(BackwardReproducibility, LayoutsAndRepeatedRunsGiveTheSameBits) {
  for (std::uint64_t seed = 61; seed <= 90; ++seed) {
    const Problem p = random_problem(seed);
    const Upstream upstream = random_upstream(p);
    const Gradients<float> first = run_backward(table(), p, upstream);
    ASSERT_TRUE(same_gradient_bits(first, run_backward(table(), p, upstream))) << describe(p);
    for (const Placement placement : {Placement::kBlhd, Placement::kScattered}) {
      RunOptions options;
      options.placement = placement;
      ASSERT_TRUE(same_gradient_bits(first, run_backward(table(), p, upstream, options))) << describe(p);
    }
  }
}

}  // namespace
}  // namespace sdpa::testing
