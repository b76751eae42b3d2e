// Linear attention of every kind against its recurrence: any sizes and chunks, a state handed in and out, keys that are
// masked.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bytes.hpp"
#include "core/dispatch.hpp"
#include "sdpa/linear.hpp"
#include "support/linear.hpp"
#include "support/workspace.hpp"

namespace {

using namespace sdpa;
using fuzzing::Bytes;
using testing::LinearProblem;

constexpr float kUnwritten = 12345;
// Of the largest number that is wanted. The delta rules take differences of the state's numbers, token after token.
constexpr double kTolerance = 1e-4;

LinearProblem draw_linear(Bytes& bytes) {
  constexpr std::array<std::array<std::size_t, 3>, 8> kHeads{
      {{1, 1, 1}, {2, 2, 2}, {4, 2, 2}, {2, 2, 4}, {1, 1, 3}, {6, 3, 3}, {2, 1, 2}, {0, 0, 0}}};
  LinearProblem p;
  const auto [heads, key_heads, states] = kHeads[bytes.size(0, kHeads.size() - 1)];
  p.heads = heads;
  p.key_heads = key_heads;
  p.states = states;
  p.batch = bytes.size(0, 2);
  p.keys = bytes.chance(100) ? bytes.size(0, 80) : bytes.size(0, 9);
  p.options.causal = bytes.chance(180);
  p.queries = p.options.causal ? p.keys : bytes.size(0, 9);
  p.head_dim = bytes.size(1, 20);
  p.head_dim_v = bytes.size(1, 36);
  p.options.chunk = bytes.chance(100) ? bytes.size(1, 90) : 0;
  p.options.normalised = bytes.chance(60);
  p.options.epsilon = p.options.normalised && bytes.chance(128) ? 1e-3 : 0;
  if (!p.options.normalised) {
    p.decay_columns = bytes.choose({std::size_t{0}, std::size_t{1}, p.head_dim});
    p.beta_heads = bytes.choose({std::size_t{0}, std::size_t{1}, p.states});
    p.steps = bytes.chance(50);
    p.with_skip = p.steps && bytes.chance(128);
    p.options.scale = bytes.choose({1.0, 0.5, -2.0});
  }
  p.with_state = bytes.chance(128);
  p.masked = bytes.chance(100);
  p.layout = bytes.chance(80) ? Layout::kBlhd : Layout::kBhld;
  testing::fill(p, 1 + bytes.byte());
  return p;
}

void require(bool passed, const char* what, const LinearProblem& p) {
  if (passed) return;
  std::fprintf(stderr, "%s: B %zu, heads %zu %zu %zu, L %zu, S %zu, D %zu, Dv %zu, decay %zu, beta %zu, chunk %zu",
               what, p.batch, p.heads, p.key_heads, p.states, p.queries, p.keys, p.head_dim, p.head_dim_v,
               p.decay_columns, p.beta_heads, p.options.chunk);
  std::fprintf(stderr, "%s%s%s%s%s%s, scale %g\n", p.options.causal ? ", causal" : "",
               p.options.normalised ? ", normalised" : "", p.steps ? ", steps" : "", p.with_skip ? ", skip" : "",
               p.with_state ? ", state" : "", p.masked ? ", masked" : "", p.options.scale);
  std::abort();
}

void compare(const char* what, const std::vector<float>& got, const std::vector<double>& want, const LinearProblem& p) {
  require(got.size() == want.size(), what, p);
  double largest = 1;
  for (const double x : want) largest = std::max(largest, std::fabs(x));
  for (std::size_t n = 0; n < want.size(); ++n) {
    if (std::fabs(double{got[n]} - want[n]) <= kTolerance * largest) continue;
    std::fprintf(stderr, "%zu: %g instead of %g\n", n, double{got[n]}, want[n]);
    require(false, what, p);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  const auto tables = core::available_kernels();
  const kernels::KernelTable& table = *tables[bytes.size(0, tables.size() - 1)];
  const LinearProblem p = draw_linear(bytes);
  std::vector<float> out(testing::count(p.out_extents()), kUnwritten);
  std::vector<float> state(p.state_size(), kUnwritten);
  LinearTensors t = testing::tensors_of(p);
  t.out = {out.data(), p.out_extents(), contiguous_strides(p.out_extents(), p.layout)};
  t.next_state = state.data();
  const WorkspaceSize needed = core::linear_attention_workspace_bytes(table, t, p.options);
  const testing::Workspace workspace(needed.status.ok() ? needed.bytes : 0);
  const Status status = core::linear_attention(table, t, p.options, workspace.span());
  require(status == needed.status, "the question and the call disagree", p);
  if (!status.ok()) {
    // Options that exclude each other.
    const auto unwritten = [](float x) { return x == kUnwritten; };
    require(std::all_of(out.begin(), out.end(), unwritten) && std::all_of(state.begin(), state.end(), unwritten),
            "an error, and something was written", p);
    return 0;
  }
  const testing::LinearResult want = testing::linear_reference(p);
  compare("out", out, want.out, p);
  compare("state", state, want.state, p);
  return 0;
}
