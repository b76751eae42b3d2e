#include "hostile.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

#include "support/arguments.hpp"
#include "support/workspace.hpp"

namespace sdpa::fuzzing {
namespace {

using testing::Arguments;

constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
constexpr auto kLow32 = std::numeric_limits<std::int32_t>::min();
constexpr auto kHigh32 = std::numeric_limits<std::int32_t>::max();
constexpr auto kLow64 = std::numeric_limits<std::int64_t>::min();
constexpr auto kHigh64 = std::numeric_limits<std::int64_t>::max();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array<float, 4> kScales{1, 1, 1, 1};

std::size_t any_size(Bytes& bytes, std::size_t now) {
  return bytes.choose({std::size_t{0}, std::size_t{1}, now / 2, now - 1, now + 1, 2 * now, std::size_t{1} << 31,
                       std::size_t{1} << 32, std::size_t{1} << 61, kMost / 8, kMost - 1, kMost});
}

std::int64_t any_integer(Bytes& bytes) {
  return bytes.choose<std::int64_t>(
      {0, 1, -1, 5, 1000, 1LL << 31, (1LL << 31) + 1, -(1LL << 31), -(1LL << 31) - 1, kLow64, kHigh64, kHigh64 - 1});
}

double any_number(Bytes& bytes) {
  return bytes.choose({0.0, 1.0, -1.0, 1e300, -1e300, 1e-320, kNan, kInfinity, -kInfinity});
}

Extents with(const Extents& extents, std::size_t rank, std::size_t extent) {
  Extents result = extents;
  result[rank] = extent;
  return result;
}

InputView with_extent(const InputView& v, std::size_t rank, std::size_t extent) {
  return {v.data_handle(),
          v.dtype(),
          with(v.extents(), rank, extent),
          {v.stride(0), v.stride(1), v.stride(2), v.stride(3)}};
}

template <class T>
TensorView<T> with_extent(const TensorView<T>& v, std::size_t rank, std::size_t extent) {
  return {v.data_handle(), with(v.extents(), rank, extent), v.strides()};
}

// Lists of numbers that lie in static memory, of any length.
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

void break_extent(Bytes& bytes, Arguments& a) {
  AttentionTensors& t = a.tensors;
  const std::size_t rank = bytes.size(0, 3);
  const std::size_t extent = any_size(bytes, t.query.extent(rank));
  // Of one tensor, or of all that have it.
  const std::uint8_t which = bytes.chance(128) ? 0x7f : static_cast<std::uint8_t>(1 << bytes.size(0, 6));
  const auto has = [&](int n) { return (which >> n & 1) != 0; };
  if (has(0)) t.query = with_extent(t.query, rank, extent);
  if (has(1)) t.key = with_extent(t.key, rank, extent);
  if (has(2)) t.value = with_extent(t.value, rank, extent);
  if (has(3)) t.out = with_extent(t.out, rank, extent);
  if (has(4)) t.lse = with_extent(t.lse, rank, extent);
  if (has(5) && bytes.chance(128)) a.options.mask = with_extent(a.options.mask, rank, extent);
  if (has(6) && bytes.chance(128)) a.options.bias = with_extent(a.options.bias, rank, extent);
}

void break_tensor(Bytes& bytes, Arguments& a) {
  AttentionTensors& t = a.tensors;
  InputView& view = *bytes.choose({&t.query, &t.key, &t.value, &a.options.bias});
  const DType dtype = bytes.choose({view.dtype(), DType::kInt8, static_cast<DType>(4), static_cast<DType>(255)});
  const std::size_t column = bytes.choose({std::size_t{1}, std::size_t{0}, std::size_t{2}, kMost});
  const void* data = bytes.chance(60) ? nullptr : view.data_handle();
  view = {data, dtype, view.extents(), {view.stride(0), view.stride(1), view.stride(2), column}};
  if (bytes.chance(60)) t.out = {nullptr, t.out.extents(), t.out.strides()};
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

void break_lists(Bytes& bytes, const Arguments& a, AttentionOptions& o) {
  const std::size_t batch = a.tensors.query.extent(0);
  const std::size_t queries = batch * a.tensors.query.extent(2);
  const std::size_t keys = batch * a.tensors.key.extent(2);
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

// A table of pages and a ring that say nothing true: of these a call that is refused is all there may be.
void break_map(Bytes& bytes, KeyValueMap& map) {
  static constexpr std::array<std::int32_t, 4> kPages{};
  map.page_size = bytes.choose({std::size_t{0}, std::size_t{1}, std::size_t{16}, kMost});
  map.pages = bytes.chance(128) ? kPages.data() : nullptr;
  map.pages_per_row = any_size(bytes, 4);
  map.ring_size = bytes.choose({std::size_t{0}, std::size_t{8}, kMost});
  map.key_scales = bytes.chance(128) ? kScales.data() : nullptr;
  map.value_scales = bytes.chance(128) ? kScales.data() : nullptr;
}

bool within(const Extents& now, const Extents& before) {
  for (std::size_t r = 0; r < 4; ++r) {
    if (now[r] > before[r]) return false;
  }
  return true;
}

bool covers_keys(const AttentionTensors& t) {
  const KeyValueMap& map = t.map;
  if (map.page_size == 0) return true;
  // Of numbers whose product does not fit, it is enough.
  return map.pages_per_row > kMost / map.page_size || map.pages_per_row * map.page_size >= t.key.extent(2);
}

// Whether the call stays in memory that the caller has: nothing has become larger, and no map was made up.
bool may_run(const Arguments& a, const Arguments& before) {
  const AttentionTensors &t = a.tensors, &was = before.tensors;
  const AttentionOptions &o = a.options, &had = before.options;
  const auto same_map = t.map.page_size == 0 && t.map.ring_size == 0;
  const auto input = [](const InputView& now, const InputView& then) {
    return within(now.extents(), then.extents()) && size_of(now.dtype()) <= size_of(then.dtype()) &&
           now.dtype() != DType::kInt8 && now.stride(3) <= then.stride(3);
  };
  return same_map && input(t.query, was.query) && input(t.key, was.key) && input(t.value, was.value) &&
         input(o.bias, had.bias) && within(o.mask.extents(), had.mask.extents()) &&
         within(t.out.extents(), was.out.extents()) && within(t.lse.extents(), was.lse.extents()) &&
         within(t.scores.extents(), was.scores.extents()) &&
         // Another number of rows or keys is another order of tiles.
         (o.block_mask.tiles == nullptr ||
          (o.block_mask.rows == had.block_mask.rows && o.block_mask.batch == had.block_mask.batch &&
           o.block_mask.heads == had.block_mask.heads && t.key.extent(2) == was.key.extent(2)));
}

}  // namespace

bool survives_faults(Bytes& bytes, const Drawn& drawn) {
  const Arguments before(drawn.problem, drawn.run);
  Arguments a(drawn.problem, drawn.run);
  const std::size_t faults = bytes.size(1, 3);
  for (std::size_t n = 0; n < faults; ++n) {
    switch (bytes.size(0, 6)) {
      case 0:
        break_extent(bytes, a);
        break;
      case 1:
        break_tensor(bytes, a);
        break;
      case 2:
        break_positions(bytes, a.options);
        break;
      case 3:
        break_lists(bytes, a, a.options);
        break;
      case 4:
        break_numbers(bytes, a.options);
        break;
      case 5:
        break_mask(bytes, a.options);
        break;
      default:
        break_map(bytes, a.tensors.map);
    }
  }
  const WorkspaceSize size = core::attention_workspace_bytes(*drawn.table, a.tensors, a.options);
  if (size.status.ok() && !covers_keys(a.tensors)) {
    std::fprintf(stderr, "too few pages for the keys\n");
    return false;
  }
  if (size.status.ok() && !(size.bytes < std::size_t{1} << 26 && may_run(a, before))) return true;
  const bool too_small = size.status.ok() && size.bytes > 0 && bytes.chance(30);
  const testing::Workspace workspace(size.status.ok() ? size.bytes - (too_small ? 1 : 0) : 0);
  const Status status = core::attention(*drawn.table, a.tensors, a.options, workspace.span());
  const Status wanted = too_small ? Status(StatusCode::kWorkspaceTooSmall) : size.status;
  if (status != wanted) {
    std::fprintf(stderr, "the call answers %s, not %s\n", status.name(), wanted.name());
    return false;
  }
  if (status.ok() ? a.gaps_untouched() : a.nothing_written()) return true;
  std::fprintf(stderr, "%s, and something was written\n", status.name());
  return false;
}

}  // namespace sdpa::fuzzing
