#include "broken.hpp"

#include <algorithm>
#include <array>

namespace sdpa::fuzzing {
namespace {

constexpr auto kLow32 = std::numeric_limits<std::int32_t>::min();
constexpr auto kHigh32 = std::numeric_limits<std::int32_t>::max();
constexpr auto kLow64 = std::numeric_limits<std::int64_t>::min();
constexpr auto kHigh64 = std::numeric_limits<std::int64_t>::max();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::int64_t any_integer(Bytes& bytes) {
  return bytes.choose<std::int64_t>(
      {0, 1, -1, 5, 1000, 1LL << 31, (1LL << 31) + 1, -(1LL << 31), -(1LL << 31) - 1, kLow64, kHigh64, kHigh64 - 1});
}

double any_number(Bytes& bytes) {
  return bytes.choose({0.0, 1.0, -1.0, 1e300, -1e300, 1e-320, kNan, kInfinity, -kInfinity});
}

void break_positions(Bytes& bytes, AttentionOptions& o) {
  switch (bytes.size(0, 6)) {
    case 0:
      o.window_left = any_integer(bytes);
      break;
    case 1:
      o.window_right = any_integer(bytes);
      break;
    case 2:
      o.chunk = any_integer(bytes);
      break;
    case 3:
      o.global_keys = any_integer(bytes);
      break;
    case 4:
      o.align = static_cast<sdpa::Align>(bytes.choose({0, 1, 2, 3, 4, 255}));
      break;
    case 5:
      o.query_offset = any_integer(bytes);
      break;
    default:
      o.causal = true;
      o.align = sdpa::Align::kUnset;
  }
}

void break_lists(Bytes& bytes, const Extents& query, const Extents& key, AttentionOptions& o) {
  const std::size_t batch = query[0];
  const std::size_t queries = batch * query[2];
  const std::size_t keys = batch * key[2];
  switch (bytes.size(0, 4)) {
    case 0:
      o.query_offsets = any_list(bytes, batch);
      o.align = sdpa::Align::kOffset;
      break;
    case 1:
      o.query_lengths = any_list(bytes, batch);
      break;
    case 2:
      o.kv_lengths = any_list(bytes, batch);
      break;
    case 3:
      o.query_starts = any_list(bytes, 4);
      o.key_starts = any_list(bytes, 4);
      break;
    default:
      o.query_segments = any_list(bytes, queries);
      o.key_segments = any_list(bytes, keys);
  }
}

void break_numbers(Bytes& bytes, AttentionOptions& o) {
  switch (bytes.size(0, 3)) {
    case 0:
      o.scale = any_number(bytes);
      break;
    case 1:
      o.softcap = any_number(bytes);
      break;
    case 2:
      o.dropout.probability = any_number(bytes);
      break;
    default:
      o.scores_stage = static_cast<ScoresStage>(bytes.choose({0, 1, 2, 3, 4, 5, 255}));
  }
}

void break_mask(Bytes& bytes, AttentionOptions& o) {
  BlockMask& mask = o.block_mask;
  std::size_t& field =
      *bytes.choose({&mask.batch, &mask.heads, &mask.rows, &o.origin.batch, &o.origin.head, &o.origin.row});
  field = any_size(bytes, field);
}

}  // namespace

std::size_t any_size(Bytes& bytes, std::size_t now) {
  return bytes.choose({std::size_t{0}, std::size_t{1}, now / 2, now - 1, now + 1, 2 * now, std::size_t{1} << 31,
                       std::size_t{1} << 32, std::size_t{1} << 61, kMost / 8, kMost - 1, kMost});
}

std::span<const std::int32_t> any_list(Bytes& bytes, std::size_t usual) {
  static constexpr std::array<std::int32_t, 300> kZeros{};
  static constexpr std::array<std::int32_t, 6> kRising{0, 1, 2, 3, 4, 5};
  static constexpr std::array<std::int32_t, 4> kFalling{0, 2, 1, 3};
  static constexpr std::array<std::int32_t, 4> kPast{0, 1, 2, kHigh32};
  static constexpr std::array<std::int32_t, 4> kNegative{0, -1, 1, 2};
  static constexpr std::array<std::int32_t, 4> kLowest{kLow32, kLow32, kLow32, kLow32};
  const std::span<const std::int32_t> list =
      bytes.choose<std::span<const std::int32_t>>({kZeros, kRising, kFalling, kPast, kNegative, kLowest});
  return list.first(
      std::min(list.size(), bytes.choose({usual, usual + 1, std::size_t{0}, std::size_t{1}, list.size()})));
}

void break_option(Bytes& bytes, const Extents& query, const Extents& key, AttentionOptions& options) {
  switch (bytes.size(0, 3)) {
    case 0:
      return break_positions(bytes, options);
    case 1:
      return break_lists(bytes, query, key, options);
    case 2:
      return break_numbers(bytes, options);
    default:
      return break_mask(bytes, options);
  }
}

bool operands_within(const AttentionOptions& now, const AttentionOptions& before, bool same_keys) {
  const BlockMask &mask = now.block_mask, &had = before.block_mask;
  return within(now.mask.extents(), before.mask.extents()) && within(now.bias.extents(), before.bias.extents()) &&
         size_of(now.bias.dtype()) <= size_of(before.bias.dtype()) && now.bias.stride(3) <= before.bias.stride(3) &&
         (mask.tiles == nullptr ||
          (mask.rows == had.rows && mask.batch == had.batch && mask.heads == had.heads && same_keys));
}

}  // namespace sdpa::fuzzing
