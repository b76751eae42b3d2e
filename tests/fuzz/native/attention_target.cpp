// The forward pass: valid calls against the oracle, broken ones against validate().

#include "check.hpp"
#include "draw.hpp"
#include "hostile.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sdpa::fuzzing;
  Bytes bytes(data, size);
  const bool broken = bytes.chance(80);
  const Drawn drawn = draw(bytes);
  const auto& [problem, run, table, wild] = drawn;
  if (broken) {
    require(survives_faults(bytes, drawn), problem, "a broken call");
    return 0;
  }
  const sdpa::testing::Actual actual = sdpa::testing::run(*table, problem, run);
  require(true, problem, "the call");
  if (wild) {
    // A dropped weight is 0, and 0 times an infinite value is NaN, as everywhere.
    if (problem.dropout.probability != 0) return 0;
    require(outputs_are_finite(sdpa::testing::expected(problem), actual), problem, "wild numbers");
  } else {
    require(outputs_are_close(problem, sdpa::reference::attention(problem), actual, run.scores_stage), problem,
            "attention");
  }
  return 0;
}
