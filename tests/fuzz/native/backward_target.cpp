// The backward pass: valid calls against the oracle, broken ones against validate_backward().

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
    require(survives_backward_faults(bytes, drawn), problem, "a broken call");
    return 0;
  }
  auto upstream = sdpa::testing::random_upstream(problem, bytes.byte());
  if (bytes.chance(80)) upstream.d_lse.clear();
  const auto actual = sdpa::testing::run_backward(*table, problem, upstream, run);
  require(true, problem, "the call");
  if (wild) return 0;
  const Bounds bounds = bounds_of(problem, sdpa::reference::attention(problem));
  require(gradients_are_close(bounds, sdpa::reference::gradients(problem, upstream),
                              sdpa::reference::gradient_sizes(problem, upstream), actual),
          problem, "gradients");
  return 0;
}
