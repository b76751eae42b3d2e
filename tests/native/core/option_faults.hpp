// The faults of options, see faults.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "core/faults.hpp"

namespace sdpa::testing {

inline constexpr std::array<std::uint8_t, 64> kMaskData{};
inline constexpr std::array<float, 64> kBiasData{};
inline constexpr std::array<std::int32_t, 3> kThree{1, 1, 1};
inline constexpr std::array<std::int32_t, 2> kNegative{1, -1};
inline constexpr std::array<std::int32_t, 2> kPastQueries{3, 4};
inline constexpr std::array<std::int32_t, 2> kPastKeys{6, 5};
inline constexpr std::array<std::int32_t, 2> kTwo{1, 1};
inline constexpr std::array<std::int32_t, 6> kSixIds{};
inline constexpr std::array<std::int32_t, 10> kTenIds{};
inline constexpr std::array<std::int32_t, 3> kStarts{0, 1, 3};
inline constexpr std::array<std::int32_t, 3> kLateStarts{1, 2, 3};
inline constexpr std::array<std::int32_t, 4> kDescendingStarts{0, 2, 1, 3};
inline constexpr std::array<std::int32_t, 3> kStartsPastKeys{0, 1, 6};
inline constexpr std::array<std::uint32_t, 8> kEmptyTiles{};
inline constexpr std::array<float, 4> kSlopes{};
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The first batch row alone: packed sequences are of one.
inline void keep_one_batch(Arguments& a) {
  a.tensors.query = with_extent(a.tensors.query, 0, 1);
  a.tensors.key = with_extent(a.tensors.key, 0, 1);
  a.tensors.value = with_extent(a.tensors.value, 0, 1);
  a.tensors.out = with_extent(a.tensors.out, 0, 1);
  a.tensors.lse = with_extent(a.tensors.lse, 0, 1);
}

inline void pack(Arguments& a, std::span<const std::int32_t> query_starts, std::span<const std::int32_t> key_starts) {
  keep_one_batch(a);
  a.options.query_starts = query_starts;
  a.options.key_starts = key_starts;
}

inline constexpr Fault kOptionFaults[] = {
    {"bias of no type", kInvalidDtype,
     [](Arguments& a) {
       a.options.bias = InputView(kBiasData.data(), kBadDtype, {1, 1, 1, 5});
     }},
    {"mask of two columns", kMaskShape,
     [](Arguments& a) {
       a.options.mask = {kMaskData.data(), {1, 1, 1, 2}};
     }},
    {"mask of no columns", kMaskShape,
     [](Arguments& a) {
       a.options.mask = {kMaskData.data(), {1, 1, 1, 0}};
     }},
    {"mask of three heads", kMaskShape,
     [](Arguments& a) {
       a.options.mask = {kMaskData.data(), {1, 3, 1, 5}};
     }},
    {"mask of key heads", kMaskShape,
     [](Arguments& a) {
       a.options.mask = {kMaskData.data(), {1, 2, 1, 5}};
     }},
    {"bias of four rows", kBiasShape,
     [](Arguments& a) {
       a.options.bias = InputView(kBiasData.data(), DType::kFloat32, {1, 1, 4, 5});
     }},
    {"bias of three batches", kBiasShape,
     [](Arguments& a) {
       a.options.bias = InputView(kBiasData.data(), DType::kFloat32, {3, 1, 1, 1});
     }},
    {"scale NaN", kInvalidScale, [](Arguments& a) { a.options.scale = kNan; }},
    {"scale infinite", kInvalidScale, [](Arguments& a) { a.options.scale = -kInfinity; }},
    {"softcap negative", kInvalidSoftcap, [](Arguments& a) { a.options.softcap = -1; }},
    {"softcap NaN", kInvalidSoftcap, [](Arguments& a) { a.options.softcap = kNan; }},
    {"softcap infinite", kInvalidSoftcap, [](Arguments& a) { a.options.softcap = kInfinity; }},
    {"window to the left negative", kInvalidWindow,
     [](Arguments& a) {
       a.options.align = sdpa::Align::kLowerRight;
       a.options.window_left = -1;
     }},
    {"window to the right negative", kInvalidWindow,
     [](Arguments& a) {
       a.options.align = sdpa::Align::kLowerRight;
       a.options.window_right = -2;
     }},
    {"causal without align", kAlignRequired, [](Arguments& a) { a.options.causal = true; }},
    {"window to the left without align", kAlignRequired, [](Arguments& a) { a.options.window_left = 2; }},
    {"window to the right without align", kAlignRequired, [](Arguments& a) { a.options.window_right = 2; }},
    {"offset past 2^31", kInvalidOffset,
     [](Arguments& a) {
       a.options.align = sdpa::Align::kOffset;
       a.options.query_offset = (std::int64_t{1} << 31) + 1;
     }},
    {"offset before -2^31", kInvalidOffset,
     [](Arguments& a) {
       a.options.align = sdpa::Align::kOffset;
       a.options.query_offset = -(std::int64_t{1} << 31) - 1;
     }},
    {"three offsets for a batch of two", kInvalidOffset,
     [](Arguments& a) {
       a.options.align = sdpa::Align::kOffset;
       a.options.query_offsets = kThree;
     }},
    {"offsets beside another alignment", kInvalidOffset,
     [](Arguments& a) {
       a.options.align = sdpa::Align::kUpperLeft;
       a.options.query_offsets = kTwo;
     }},
    {"an alignment that is none", kInvalidOffset, [](Arguments& a) { a.options.align = static_cast<sdpa::Align>(9); }},
    {"three query lengths for a batch of two", kInvalidQueryLength,
     [](Arguments& a) { a.options.query_lengths = kThree; }},
    {"query length negative", kInvalidQueryLength, [](Arguments& a) { a.options.query_lengths = kNegative; }},
    {"query length past the queries", kInvalidQueryLength,
     [](Arguments& a) { a.options.query_lengths = kPastQueries; }},
    {"three key lengths for a batch of two", kInvalidKvLength, [](Arguments& a) { a.options.kv_lengths = kThree; }},
    {"key length negative", kInvalidKvLength, [](Arguments& a) { a.options.kv_lengths = kNegative; }},
    {"key length past the keys", kInvalidKvLength, [](Arguments& a) { a.options.kv_lengths = kPastKeys; }},
    {"stage without scores", kInvalidScoresStage, [](Arguments& a) { a.options.scores_stage = ScoresStage::kWeights; }},
    {"scores without a stage",
     kInvalidScoresStage,
     [](Arguments& a) { a.options.scores_stage = ScoresStage::kNone; },
     {.scores_stage = ScoresStage::kScaled}},
    {"a stage that is none",
     kInvalidScoresStage,
     [](Arguments& a) { a.options.scores_stage = static_cast<ScoresStage>(9); },
     {.scores_stage = ScoresStage::kScaled}},
    {"bias in int8", kInvalidDtype,
     [](Arguments& a) {
       a.options.bias = InputView(kBiasData.data(), DType::kInt8, {1, 1, 1, 5});
     }},
    {"chunk without align", kAlignRequired, [](Arguments& a) { a.options.chunk = 2; }},
    {"slopes without align", kAlignRequired,
     [](Arguments& a) {
       a.options.alibi_slopes = {kSlopes.data(), 0};
     }},
    {"chunk negative", kInvalidChunk,
     [](Arguments& a) {
       a.options.align = sdpa::Align::kLowerRight;
       a.options.chunk = -1;
     }},
    {"global keys negative", kInvalidGlobalKeys, [](Arguments& a) { a.options.global_keys = -1; }},
    {"segments of queries alone", kInvalidSegments, [](Arguments& a) { a.options.query_segments = kSixIds; }},
    {"segments of keys alone", kInvalidSegments, [](Arguments& a) { a.options.key_segments = kTenIds; }},
    {"segments of too many queries", kInvalidSegments,
     [](Arguments& a) {
       a.options.query_segments = kTenIds;
       a.options.key_segments = kTenIds;
     }},
    {"segments of too few keys", kInvalidSegments,
     [](Arguments& a) {
       a.options.query_segments = kSixIds;
       a.options.key_segments = kSixIds;
     }},
    {"packed sequences in a batch of two", kInvalidStarts,
     [](Arguments& a) { a.options.query_starts = a.options.key_starts = kStarts; }},
    {"starts of queries alone", kInvalidStarts, [](Arguments& a) { pack(a, kStarts, {}); }},
    {"starts of keys alone", kInvalidStarts, [](Arguments& a) { pack(a, {}, kStarts); }},
    {"starts of different numbers of sequences", kInvalidStarts,
     [](Arguments& a) { pack(a, kStarts, std::span(kStarts).first(2)); }},
    {"starts of queries that begin late", kInvalidStarts, [](Arguments& a) { pack(a, kLateStarts, kStarts); }},
    {"starts of keys that begin late", kInvalidStarts, [](Arguments& a) { pack(a, kStarts, kLateStarts); }},
    {"starts of queries that descend", kInvalidStarts,
     [](Arguments& a) { pack(a, kDescendingStarts, std::span(kSixIds).first(4)); }},
    {"starts of keys that descend", kInvalidStarts,
     [](Arguments& a) { pack(a, std::span(kSixIds).first(4), kDescendingStarts); }},
    {"starts past the keys", kInvalidStarts, [](Arguments& a) { pack(a, kStarts, kStartsPastKeys); }},
    {"block mask of too few rows", kBlockMaskShape,
     [](Arguments& a) {
       a.options.block_mask = {kEmptyTiles.data(), nullptr, 1, 1, 2};
     }},
    {"block mask that ends before the last row of a piece", kBlockMaskShape,
     [](Arguments& a) {
       a.options.block_mask = {kEmptyTiles.data(), nullptr, 1, 1, 3};
       a.options.origin.row = 1;
     }},
    {"block mask of a piece so far down that its end does not fit", kBlockMaskShape,
     [](Arguments& a) {
       a.options.block_mask = {kEmptyTiles.data(), nullptr, 1, 1, 3};
       a.options.origin.row = std::numeric_limits<std::size_t>::max() - 1;
     }},
    {"block mask of two heads", kBlockMaskShape,
     [](Arguments& a) {
       a.options.block_mask = {kEmptyTiles.data(), nullptr, 1, 2, 3};
     }},
    {"block mask that ends before the last head of a piece", kBlockMaskShape,
     [](Arguments& a) {
       a.options.block_mask = {kEmptyTiles.data(), nullptr, 1, 4, 3};
       a.options.origin.head = 1;
     }},
    {"block mask of no batch", kBlockMaskShape,
     [](Arguments& a) {
       a.options.block_mask = {kEmptyTiles.data(), nullptr, 0, 1, 3};
     }},
    {"block mask that ends before the last batch of a piece", kBlockMaskShape,
     [](Arguments& a) {
       a.options.block_mask = {kEmptyTiles.data(), nullptr, 2, 1, 3};
       a.options.origin.batch = 1;
     }},
    {"dropout negative", kInvalidDropout, [](Arguments& a) { a.options.dropout.probability = -0.1; }},
    {"dropout past 1", kInvalidDropout, [](Arguments& a) { a.options.dropout.probability = 1.5; }},
    {"dropout NaN", kInvalidDropout, [](Arguments& a) { a.options.dropout.probability = kNan; }},
};

}  // namespace sdpa::testing
