#include "hostile.hpp"

#include <array>
#include <cstdio>

#include "broken.hpp"
#include "support/arguments.hpp"
#include "support/workspace.hpp"

namespace sdpa::fuzzing {
namespace {

using testing::Arguments;

constexpr std::array<float, 4> kScales{1, 1, 1, 1};

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

bool covers_keys(const AttentionTensors& t) {
  const KeyValueMap& map = t.map;
  if (map.page_size == 0) return true;
  // Of numbers whose product does not fit, it is enough.
  return map.pages_per_row > kMost / map.page_size || map.pages_per_row * map.page_size >= t.key.extent(2);
}

// Whether the call stays in memory that the caller has: nothing has become larger, and no map was made up.
bool may_run(const Arguments& a, const Arguments& before) {
  const AttentionTensors &t = a.tensors, &was = before.tensors;
  const auto input = [](const InputView& now, const InputView& then) {
    return within(now.extents(), then.extents()) && size_of(now.dtype()) <= size_of(then.dtype()) &&
           now.dtype() != DType::kInt8 && now.stride(3) <= then.stride(3);
  };
  return t.map.page_size == 0 && t.map.ring_size == 0 && input(t.query, was.query) && input(t.key, was.key) &&
         input(t.value, was.value) && within(t.out.extents(), was.out.extents()) &&
         within(t.lse.extents(), was.lse.extents()) && within(t.scores.extents(), was.scores.extents()) &&
         operands_within(a.options, before.options, t.key.extent(2) == was.key.extent(2));
}

}  // namespace

bool survives_faults(Bytes& bytes, const Drawn& drawn) {
  const Arguments before(drawn.problem, drawn.run);
  Arguments a(drawn.problem, drawn.run);
  const std::size_t faults = bytes.size(1, 3);
  for (std::size_t n = 0; n < faults; ++n) {
    switch (bytes.size(0, 5)) {
      case 0:
        break_extent(bytes, a);
        break;
      case 1:
        break_tensor(bytes, a);
        break;
      case 2:
        break_map(bytes, a.tensors.map);
        break;
      default:
        break_option(bytes, a.tensors.query.extents(), a.tensors.key.extents(), a.options);
    }
  }
  const WorkspaceSize size = core::attention_workspace_bytes(*drawn.table, a.tensors, a.options);
  if (size.status.ok() && !covers_keys(a.tensors)) {
    std::fprintf(stderr, "too few pages for the keys\n");
    return false;
  }
  if (size.status.ok() && !(size.bytes < std::size_t{1} << 26 && may_run(a, before))) return true;
  // A call without a result asks nothing of its workspace.
  const Extents& out = a.tensors.out.extents();
  const bool empty = out[0] == 0 || out[1] == 0 || out[2] == 0;
  const bool too_small = size.status.ok() && size.bytes > 0 && !empty && bytes.chance(30);
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
