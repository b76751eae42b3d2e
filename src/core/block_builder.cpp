#include "core/block_builder.hpp"

#include <cmath>

namespace sdpa::core {
namespace {

// The second-level cache of a core is smaller; what a core gets of the third is rarely more.
constexpr double kCacheBytes = 8 << 20;

// Keys and values of a head that are worth bringing in while the head before it is computed: they share the
// second-level cache with that one's.
constexpr std::size_t kNearBytes = 128 << 10;

double bytes_of(const InputView& view) {
  double bytes = static_cast<double>(size_of(view.dtype()));
  for (std::size_t rank = 0; rank < 4; ++rank) bytes *= static_cast<double>(view.extent(rank));
  return bytes;
}

template <class View>
std::size_t broadcast_stride(const View& view, std::size_t rank) {
  return view.extent(rank) == 1 ? 0 : view.stride(rank);
}

template <class View>
std::size_t broadcast_offset(const View& view, std::size_t b, std::size_t h, std::size_t i) {
  return b * broadcast_stride(view, 0) + h * broadcast_stride(view, 1) + i * broadcast_stride(view, 2);
}

static_assert(kernels::kMaskTile == kBlockMaskTile);
constexpr std::size_t tiles_of(std::size_t cells) { return (cells + kBlockMaskTile - 1) / kBlockMaskTile; }

const float* per_head(const PerHead& numbers, std::size_t b, std::size_t h) {
  return numbers.data == nullptr ? nullptr : numbers.data + b * numbers.batch_stride + h;
}

}  // namespace

double scale_of(const AttentionOptions& options, std::size_t head_dim) {
  return options.scale.value_or(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

const char* rows_from(const InputView& view, std::size_t b, std::size_t h, std::size_t first) {
  return static_cast<const char*>(view.head(b, h)) + first * view.stride(2) * size_of(view.dtype());
}

BlockBuilder::BlockBuilder(const kernels::KernelTable& table, const AttentionTensors& tensors,
                           const AttentionOptions& options, std::byte* memory)
    : t_(tensors), o_(options) {
  const std::size_t rows = table.rows_per_block;
  auto* sizes = reinterpret_cast<std::size_t*>(memory);
  bounds_ = {sizes, sizes + rows, sizes + 2 * rows, sizes + 3 * rows, reinterpret_cast<std::int64_t*>(sizes + 4 * rows),
             false};
  streams_ = bytes_of(t_.key) + bytes_of(t_.value) > kCacheBytes;
}

std::size_t BlockBuilder::bytes_for(const kernels::KernelTable& table) {
  return kernels::round_up(table.rows_per_block * (4 * sizeof(std::size_t) + sizeof(std::int64_t)),
                           kWorkspaceAlignment);
}

kernels::AttentionBlock BlockBuilder::build(const RowRules& rules, const Place& at) {
  kernels::AttentionBlock block{};
  place_tensors(at, block);
  place_rows(rules, at, block);
  place_masks(rules, at, block);
  block.rows = at.heads * at.rows;
  block.rows_per_head = at.rows;
  block.num_keys = t_.key.extent(2);
  block.head_dim = t_.query.extent(3);
  block.head_dim_v = t_.value.extent(3);
  block.scale = scale_of(o_, block.head_dim);
  block.softcap = o_.softcap;
  block.streams = streams_;
  return block;
}

kernels::NextBlock BlockBuilder::next_at(const Place& at) const {
  const auto [b, g, h, heads, first, rows] = at;
  const std::size_t keys = t_.key.extent(2);
  const std::size_t key_bytes = t_.key.extent(3) * size_of(t_.key.dtype());
  const std::size_t value_bytes = t_.value.extent(3) * size_of(t_.value.dtype());
  if (t_.map.pages != nullptr || t_.map.ring_size != 0 || keys * (key_bytes + value_bytes) > kNearBytes) return {};
  const auto piece = [](const auto& view, const void* data, std::size_t n, std::size_t of_heads, std::size_t bytes) {
    if (view.stride(2) != view.extent(3) || (of_heads > 1 && view.stride(1) != n * view.stride(2))) {
      return kernels::NextBlock::Piece{};
    }
    const char* begin = static_cast<const char*>(data);
    return kernels::NextBlock::Piece{begin, begin + of_heads * n * view.extent(3) * bytes};
  };
  const auto of_input = [&](const InputView& view, std::size_t head, std::size_t from, std::size_t n,
                            std::size_t of_heads) {
    return piece(view, rows_from(view, at.b, head, from), n, of_heads, size_of(view.dtype()));
  };
  return {{of_input(t_.query, h, first, rows, heads), of_input(t_.key, g, 0, keys, 1),
           of_input(t_.value, g, 0, keys, 1),
           piece(t_.out, t_.out.data_handle() + t_.out.offset(b, h, first, 0), rows, heads, sizeof(float))}};
}

void BlockBuilder::place_tensors(const Place& at, kernels::AttentionBlock& block) const {
  const auto [b, g, h, heads, first, rows] = at;
  block.query = {rows_from(t_.query, b, h, first), t_.query.dtype(), t_.query.stride(2), 0, nullptr};
  block.query_head_stride = t_.query.stride(1);
  block.key = stored_rows(t_.key, t_.map.key_scales, b, g);
  block.value = stored_rows(t_.value, t_.map.value_scales, b, g);
  const KeyValueMap& map = t_.map;
  block.map = {map.pages == nullptr ? nullptr : map.pages + b * map.pages_per_row, map.page_size, map.ring_begin,
               map.ring_size};
  if (t_.out.data_handle() != nullptr) {
    block.out = t_.out.data_handle() + t_.out.offset(b, h, first, 0);
    block.out_head_stride = t_.out.stride(1);
    block.out_stride = t_.out.stride(2);
  }
  if (t_.lse.data_handle() != nullptr) {
    block.lse = t_.lse.data_handle() + t_.lse.offset(b, h, first, 0);
    block.lse_head_stride = t_.lse.stride(1);
    block.lse_stride = t_.lse.stride(2);
  }
  if (t_.scores.data_handle() != nullptr) {
    block.scores = t_.scores.data_handle() + t_.scores.offset(b, h, first, 0);
    block.scores_head_stride = t_.scores.stride(1);
    block.scores_stride = t_.scores.stride(2);
    block.stage = static_cast<kernels::Stage>(o_.scores_stage);
  }
}

void BlockBuilder::place_rows(const RowRules& rules, const Place& at, kernels::AttentionBlock& block) {
  const auto [b, g, h, heads, first, rows] = at;
  // Heads of a batch entry see the same.
  if (const Filled wanted{b, first, rows, heads}; filled_ != wanted) {
    filled_ = wanted;
    rules.fill(first, rows, bounds_);
    for (std::size_t r = rows; r < heads * rows; ++r) {
      bounds_.key_begin[r] = bounds_.key_begin[r - rows];
      bounds_.key_end[r] = bounds_.key_end[r - rows];
      bounds_.hole_begin[r] = bounds_.hole_begin[r - rows];
      bounds_.hole_end[r] = bounds_.hole_end[r - rows];
      bounds_.position[r] = bounds_.position[r - rows];
    }
  }
  block.key_begin = bounds_.key_begin;
  block.key_end = bounds_.key_end;
  block.position = bounds_.position;
  if (bounds_.has_holes) {
    block.hole_begin = bounds_.hole_begin;
    block.hole_end = bounds_.hole_end;
  }
  if (t_.map.held_from != nullptr) {
    block.lost_begin = t_.map.ring_begin;
    block.lost_end = static_cast<std::size_t>(t_.map.held_from[b]);
  }
  block.alibi = per_head(o_.alibi_slopes, b, h);
  block.sinks = per_head(o_.sinks, b, h);
}

void BlockBuilder::place_masks(const RowRules& rules, const Place& at, kernels::AttentionBlock& block) const {
  const auto [b, g, h, heads, first, rows] = at;
  if (o_.mask.data_handle() != nullptr) {
    block.mask = {o_.mask.data_handle() + broadcast_offset(o_.mask, b, h, first), broadcast_stride(o_.mask, 1),
                  broadcast_stride(o_.mask, 2), broadcast_stride(o_.mask, 3)};
  }
  if (o_.bias.data_handle() != nullptr) {
    const std::size_t bytes = broadcast_offset(o_.bias, b, h, first) * size_of(o_.bias.dtype());
    block.bias = {static_cast<const char*>(o_.bias.data_handle()) + bytes, broadcast_stride(o_.bias, 1),
                  broadcast_stride(o_.bias, 2), broadcast_stride(o_.bias, 3)};
    block.bias_dtype = o_.bias.dtype();
  }
  if (rules.compares_segments()) {
    block.query_segments = o_.query_segments.data() + b * t_.query.extent(2) + first;
    block.key_segments = o_.key_segments.data() + b * t_.key.extent(2);
  }
  if (o_.block_mask.tiles != nullptr) block.block_mask = block_mask_rows(at);
  if (o_.dropout.probability > 0) {
    const double p = o_.dropout.probability;
    block.dropout = {static_cast<std::uint64_t>(p * 4294967296.0),
                     p < 1 ? static_cast<float>(1.0 / (1.0 - p)) : 0.0F,
                     o_.dropout.seed_low,
                     o_.dropout.seed_high,
                     static_cast<std::uint32_t>(o_.origin.batch + b),
                     static_cast<std::uint32_t>(o_.origin.head + h),
                     static_cast<std::uint32_t>(o_.origin.row + first)};
  }
}

kernels::BlockMaskRows BlockBuilder::block_mask_rows(const Place& at) const {
  const BlockMask& mask = o_.block_mask;
  const std::size_t columns = tiles_of(t_.key.extent(2));
  const std::size_t head = tiles_of(mask.rows) * columns;
  const std::size_t batch_index = mask.batch == 1 ? 0 : o_.origin.batch + at.b;
  const std::size_t head_index = mask.heads == 1 ? 0 : o_.origin.head + at.h;
  return {mask.tiles + (batch_index * mask.heads + head_index) * head, mask.bits, mask.heads == 1 ? 0 : head, columns,
          o_.origin.row + at.first};
}

// Keys or values of a head. In pages the page's number stands for the batch entry, which the kernel adds.
kernels::InputRows BlockBuilder::stored_rows(const InputView& view, const float* scales, std::size_t b,
                                             std::size_t h) const {
  const bool paged = t_.map.page_size != 0;
  const std::size_t outer = paged ? 0 : b;
  const std::size_t columns = view.extent(3);
  const float* head_scales =
      scales == nullptr ? nullptr : scales + (outer * view.stride(0) + h * view.stride(1)) / columns;
  return {view.head(outer, h), view.dtype(), view.stride(2), paged ? view.stride(0) : 0, head_scales};
}

}  // namespace sdpa::core
