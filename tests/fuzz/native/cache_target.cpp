// Keys and values in a cache: pages in any order, rings that have lost keys, storage in 8 and 16 bits, lengths. What
// the cache does not hold is NaN, and pages that nobody needs are no pages.

#include "check.hpp"
#include "draw.hpp"
#include "support/cache.hpp"

namespace {

using sdpa::DType;
using sdpa::fuzzing::Bytes;

sdpa::testing::CacheKind draw_kind(Bytes& bytes) {
  sdpa::testing::CacheKind kind;
  const auto dtype = [&] { return bytes.choose({DType::kFloat32, DType::kInt8, DType::kFloat16, DType::kBFloat16}); };
  kind.key_dtype = dtype();
  kind.value_dtype = dtype();
  if (bytes.chance(110)) {
    kind.page_size = bytes.size(1, 40);
  } else if (bytes.chance(150)) {
    kind.ring_begin = bytes.size(0, 20);
    kind.ring_size = bytes.size(1, 100);
  }
  return kind;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sdpa::fuzzing;
  Bytes bytes(data, size);
  const sdpa::testing::CacheKind kind = draw_kind(bytes);
  auto [problem, run, table, wild] = draw(bytes);
  // Numbers that are none have no int8, and a lost key has no score.
  if (wild) return 0;
  run.scores_stage = sdpa::ScoresStage::kNone;
  const sdpa::testing::Cache cache(problem, kind);
  const Problem oracle = cache.oracle(problem);
  const auto actual = sdpa::testing::run_cached(*table, problem, kind, run);
  require(true, problem, "the call");
  require(outputs_are_close(oracle, sdpa::reference::attention(oracle), actual, run.scores_stage), problem, "cache");
  return 0;
}
