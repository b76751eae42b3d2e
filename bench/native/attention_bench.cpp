// attention() over the case table, one line for each case and kernel table:
//
//   GFLOP/s   the case's FLOPs over the mean processor time of a call
//   peak      multiply-adds of the same kernel table that never leave the registers, measured just before and after
//   share     GFLOP/s over peak, in per cent
//   GB/s      in decode, where reading keys and values is the limit: operands and result, once each, over the time
//
// One thread; processor time, not wall time, so that a shared machine disturbs less. `sdpa_bench
// --benchmark_filter='decode.*avx512'` runs a part; --benchmark_format=json for tools.
#include <ctime>
#include <memory>
#include <string>

#include <benchmark/benchmark.h>

#include "case_table.hpp"
#include "core/dispatch.hpp"
#include "operands.hpp"

namespace sdpa::bench {
namespace {

using kernels::KernelTable;

// Seconds that this process has computed. Other processes' turns on a shared machine are not in it.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// GFLOP/s of the peak loop over about 10 ms: long enough for the clock to settle, short beside a measurement.
double peak(const KernelTable& table) {
  constexpr std::size_t kSteps = 100'000;
  double flops = 0;
  double elapsed = 0;
  for (const double start = cpu_seconds(); elapsed < 0.010; elapsed = cpu_seconds() - start) {
    flops += table.probes->peak_flops(kSteps);
  }
  return flops / elapsed / 1e9;
}

// No core does more than two multiply-adds of its widest vectors in a cycle; past that the loop was optimised away.
bool is_plausible(double peak, const KernelTable& table) { return peak < 32 * static_cast<double>(table.width); }

// The operands of the case at hand; the next case takes their place.
const Operands& operands_of(const cases::Case& c) {
  static std::string name;
  static std::unique_ptr<Operands> current;
  if (name != c.name()) {
    current.reset();
    current = std::make_unique<Operands>(c);
    name = c.name();
  }
  return *current;
}

// Set by any case that could not be measured, so that the program says so with its exit code.
bool failed = false;

void fail(benchmark::State& state, const char* why) {
  failed = true;
  state.SkipWithError(why);
}

void run(benchmark::State& state, const cases::Case& c, const KernelTable& table) {
  const Operands& operands = operands_of(c);
  const WorkspaceSize size = core::attention_workspace_bytes(table, operands.tensors, operands.options);
  if (!size.status.ok()) return fail(state, size.status.name());
  const auto workspace = make_aligned<std::byte>(size.bytes);

  const double before = peak(table);
  const double start = cpu_seconds();
  for (auto iteration : state) {
    const Status status = core::attention(table, operands.tensors, operands.options, {workspace.get(), size.bytes});
    if (!status.ok()) return fail(state, status.name());
    benchmark::ClobberMemory();
  }
  const double elapsed = cpu_seconds() - start;
  const double limit = (before + peak(table)) / 2;
  if (!is_plausible(limit, table)) return fail(state, "the peak loop does not compute what it counts");

  const double calls = static_cast<double>(state.iterations());
  const double gflops = calls * c.flops() / elapsed / 1e9;
  state.counters["GFLOP/s"] = gflops;
  state.counters["peak"] = limit;
  state.counters["share%"] = 100 * gflops / limit;
  if (c.decode()) state.counters["GB/s"] = calls * c.bytes() / elapsed / 1e9;
}

void add_all() {
  // All kernels of a case in a row, so that its operands are made once.
  for (const cases::Case& c : cases::kCases) {
    for (const KernelTable* table : core::available_kernels()) {
      const std::string name = c.name() + "/kernels:" + table->name;
      benchmark::RegisterBenchmark(name.c_str(), [&c, table](benchmark::State& state) {
        run(state, c, *table);
      })->Unit(benchmark::kMillisecond);
    }
  }
}

}  // namespace

int run_all(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  add_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return failed ? 1 : 0;
}

}  // namespace sdpa::bench

int main(int argc, char** argv) { return sdpa::bench::run_all(argc, argv); }
