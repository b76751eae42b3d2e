#include "support/forward_options.hpp"

#include <cmath>

#include "support/storage16.hpp"

namespace sdpa::testing {
namespace {

constexpr std::size_t kKeys = 203;

std::int32_t part(std::size_t length, std::size_t numerator, std::size_t denominator) {
  return static_cast<std::int32_t>(length * numerator / denominator);
}

void align(Problem& p, Align align) {
  if (p.align == Align::kNone) p.align = align;
}

// All inputs in one storage type.
void store(Problem& p, RunOptions& run, DType dtype) {
  run.query_dtype = run.key_dtype = run.value_dtype = run.bias_dtype = dtype;
  for (auto* values : {&p.query, &p.key, &p.value, &p.bias.data}) round_to(*values, dtype);
}

template <ScoresStage kStage>
void stage(Problem&, RunOptions& run, Random&) {
  run.scores_stage = kStage;
}

void scale(Problem& p, RunOptions&, Random&) { p.scale = 0.07F; }

void softcap(Problem& p, RunOptions&, Random&) { p.softcap = 0.8F; }

void mask(Problem& p, RunOptions&, Random& random) {
  p.mask = random_mask(random, {p.batch, 1, p.seqlen_q, p.seqlen_kv}, 0.7);
}

void bias(Problem& p, RunOptions&, Random& random) {
  p.bias = random_bias(random, {1, p.num_heads, p.seqlen_q, p.seqlen_kv});
}

void causal_lower_right(Problem& p, RunOptions&, Random&) {
  p.causal = true;
  p.align = Align::kLowerRight;
}

void causal_upper_left(Problem& p, RunOptions&, Random&) {
  p.causal = true;
  p.align = Align::kUpperLeft;
}

void causal_offset(Problem& p, RunOptions&, Random&) {
  p.causal = true;
  p.align = Align::kOffset;
  for (std::size_t b = 0; b < p.batch; ++b) p.query_offsets.push_back(static_cast<std::int32_t>(30 + 50 * b));
}

void window(Problem& p, RunOptions&, Random&) {
  p.window_left = 20;
  p.window_right = 3;
  align(p, Align::kLowerRight);
}

void chunk(Problem& p, RunOptions&, Random&) {
  p.chunk = 23;
  p.query_offset = 71;
  align(p, Align::kOffset);
}

void global_keys(Problem& p, RunOptions&, Random&) {
  p.global_keys = 5;
  if (p.window_left < 0) p.window_left = 11;
  align(p, Align::kLowerRight);
}

void alibi(Problem& p, RunOptions&, Random&) {
  for (std::size_t h = 0; h < p.num_heads; ++h)
    p.alibi_slopes.data.push_back(std::ldexp(1.0F, -2 * static_cast<int>(h) - 2));
  align(p, Align::kLowerRight);
}

void query_lengths(Problem& p, RunOptions&, Random&) {
  for (std::size_t b = 0; b < p.batch; ++b) p.query_lengths.push_back(part(p.seqlen_q, 7 - b, 8));
}

void kv_lengths(Problem& p, RunOptions&, Random&) {
  for (std::size_t b = 0; b < p.batch; ++b) p.kv_lengths.push_back(part(p.seqlen_kv, 7 - 5 * b, 9));
}

void segments(Problem& p, RunOptions&, Random& random) {
  p.query_segments = random_segments(random, p.batch, p.seqlen_q, 2);
  p.key_segments = random_segments(random, p.batch, p.seqlen_kv, 2);
}

// The second sequence has no query, and rows and keys are left over at the end.
void packed_sequences(Problem& p, RunOptions&, Random&) {
  const std::size_t queries = p.seqlen_q;
  const std::size_t keys = p.seqlen_kv;
  p.query_starts = {0, part(queries, 1, 6), part(queries, 1, 6), part(queries, 5, 9), part(queries, 17, 18)};
  p.key_starts = {0, part(keys, 1, 5), part(keys, 3, 10), part(keys, 7, 10), part(keys, 49, 50)};
}

void block_mask(Problem& p, RunOptions&, Random& random) {
  p.block_mask = random_block_mask(random, {p.batch, p.num_heads, p.seqlen_q, p.seqlen_kv});
}

void sinks(Problem& p, RunOptions&, Random& random) {
  p.sinks.data = random.normals(p.batch * p.num_heads);
  for (float& sink : p.sinks.data) sink += 3;  // beside 203 scores around 0
  p.sinks.per_batch = true;
}

void dropout(Problem& p, RunOptions&, Random&) { p.dropout = {0.3, (std::uint64_t{77} << 32) | 12345}; }

constexpr const char* kAlign = "where the queries stand";
constexpr const char* kStage = "the stage of the scores";
constexpr const char* kStorage = "the storage type";

constexpr ForwardOption kOptions[] = {
    {.name = "Scale", .apply = scale},
    {.name = "Softcap", .apply = softcap},
    {.name = "Mask", .apply = mask},
    {.name = "Bias", .apply = bias},
    {.name = "CausalLowerRight", .exclusive = kAlign, .apply = causal_lower_right},
    {.name = "CausalUpperLeft", .exclusive = kAlign, .apply = causal_upper_left},
    {.name = "CausalOffsets", .exclusive = kAlign, .apply = causal_offset},
    {.name = "Window", .apply = window},
    {.name = "Chunk", .apply = chunk},
    {.name = "GlobalKeysUnderAWindow", .apply = global_keys},
    {.name = "AlibiSlopes", .apply = alibi},
    {.name = "QueryLengths", .apply = query_lengths},
    {.name = "KvLengths", .apply = kv_lengths},
    {.name = "Segments", .apply = segments},
    {.name = "PackedSequences", .shape = [](Shape& shape) { shape.batch = 1; }, .apply = packed_sequences},
    {.name = "BlockMask", .apply = block_mask},
    {.name = "Sinks", .apply = sinks},
    {.name = "Dropout", .apply = dropout},
    {.name = "GroupedHeads",
     .changes_out = false,
     .shape = [](Shape& shape) { shape.num_heads = 2 * shape.num_kv_heads; },
     .apply = [](Problem&, RunOptions&, Random&) {}},
    {.name = "LogSumExp", .changes_out = false, .apply = [](Problem&, RunOptions& run, Random&) { run.lse = true; }},
    {.name = "ScaledScores", .exclusive = kStage, .changes_out = false, .apply = stage<ScoresStage::kScaled>},
    {.name = "CappedScores", .exclusive = kStage, .changes_out = false, .apply = stage<ScoresStage::kCapped>},
    {.name = "BiasedScores", .exclusive = kStage, .changes_out = false, .apply = stage<ScoresStage::kBiased>},
    {.name = "Weights", .exclusive = kStage, .changes_out = false, .apply = stage<ScoresStage::kWeights>},
    {.name = "RowsBeforeHeads",
     .changes_out = false,
     .apply = [](Problem&, RunOptions& run, Random&) { run.placement = Placement::kBlhd; }},
    {.name = "Float16",
     .exclusive = kStorage,
     .changes_out = false,
     .apply = [](Problem& p, RunOptions& run, Random&) { store(p, run, DType::kFloat16); }},
    {.name = "BFloat16",
     .exclusive = kStorage,
     .changes_out = false,
     .apply = [](Problem& p, RunOptions& run, Random&) { store(p, run, DType::kBFloat16); }},
};

}  // namespace

std::span<const ForwardOption> forward_options() { return kOptions; }

OptionedProblem with_options(std::size_t seqlen_q, std::uint64_t applied, std::uint64_t shaped) {
  const auto options = forward_options();
  const auto has = [](std::uint64_t set, std::size_t n) { return (set >> n & 1) != 0; };
  Shape shape{.seqlen_q = seqlen_q,
              .seqlen_kv = kKeys,
              .head_dim = 24,
              .head_dim_v = 40,
              .batch = 2,
              .num_heads = 2,
              .num_kv_heads = 2};
  for (std::size_t n = 0; n < options.size(); ++n) {
    if (has(shaped, n) && options[n].shape != nullptr) options[n].shape(shape);
  }
  OptionedProblem result{make_problem(shape, 5), {.lse = false}};
  for (std::size_t n = 0; n < options.size(); ++n) {
    Random random(100 + n);
    if (has(applied, n)) options[n].apply(result.problem, result.run, random);
  }
  return result;
}

}  // namespace sdpa::testing
