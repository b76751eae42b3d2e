#include "support/arguments.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "support/block_tiles.hpp"
#include "support/storage16.hpp"

namespace sdpa::testing {
namespace {

Place place(const Extents& extents, Placement placement, bool broadcast) {
  const std::size_t elements = extents[0] * extents[1] * extents[2] * extents[3];
  if (placement == Placement::kBhld || (placement == Placement::kBlhd && broadcast)) {
    return {0, elements, contiguous_strides(extents)};
  }
  if (placement == Placement::kBlhd) return {0, elements, contiguous_strides(extents, Layout::kBlhd)};
  const std::size_t column = broadcast ? 2 : 1;
  const std::size_t row = extents[3] * column + 3;
  const std::size_t head = extents[2] * row + 5;
  const std::size_t batch = extents[1] * head + 7;
  Place result{11, 11 + extents[0] * batch, {batch, head, row, column}};
  if (broadcast) {
    for (std::size_t r = 0; r < 4; ++r) {
      if (extents[r] == 1) result.strides[r] = 1'000'003;
    }
  }
  return result;
}

template <class Visit>
void for_each(const Extents& extents, const Place& place, Visit visit) {
  std::size_t index = 0;
  for (std::size_t b = 0; b < extents[0]; ++b) {
    for (std::size_t h = 0; h < extents[1]; ++h) {
      for (std::size_t i = 0; i < extents[2]; ++i) {
        for (std::size_t j = 0; j < extents[3]; ++j) {
          const auto& s = place.strides;
          visit(index++, place.start + b * s[0] + h * s[1] + i * s[2] + j * s[3]);
        }
      }
    }
  }
}

std::uint16_t to_bits(float value, DType dtype) {
  return dtype == DType::kFloat16 ? to_float16(value) : to_bfloat16(value);
}

std::int64_t window(std::int64_t bound) { return bound < 0 ? kUnlimited : bound; }

}  // namespace

std::vector<std::size_t> Place::elements(const Extents& extents) const {
  std::vector<std::size_t> result;
  for_each(extents, *this, [&](std::size_t, std::size_t at) { result.push_back(at); });
  return result;
}

Arguments::Arguments(const Problem& p, const RunOptions& run) {
  const Extents q{p.batch, p.num_heads, p.seqlen_q, p.head_dim};
  const Extents k{p.batch, p.num_kv_heads, p.seqlen_kv, p.head_dim};
  const Extents v{p.batch, p.num_kv_heads, p.seqlen_kv, p.head_dim_v};
  tensors.query = input(p.query, q, run.query_dtype, run.placement, false);
  tensors.key = input(p.key, k, run.key_dtype, run.placement, false);
  tensors.value = input(p.value, v, run.value_dtype, run.placement, false);
  tensors.out = output(out_, {p.batch, p.num_heads, p.seqlen_q, p.head_dim_v}, run.placement);
  const Placement plain = run.placement == Placement::kBlhd ? Placement::kBhld : run.placement;
  if (run.lse) tensors.lse = output(lse_, {p.batch, p.num_heads, p.seqlen_q, 1}, plain);
  if (run.scores_stage != ScoresStage::kNone) {
    tensors.scores = output(scores_, {p.batch, p.num_heads, p.seqlen_q, p.seqlen_kv}, plain);
  }

  if (p.scale) options.scale = *p.scale;
  options.softcap = p.softcap;
  if (p.mask.present()) options.mask = mask(p.mask, plain);
  if (p.bias.present()) options.bias = input(p.bias.data, p.bias.extents, run.bias_dtype, plain, true);
  set_positions(p);
  options.query_lengths = copy(p.query_lengths);
  options.kv_lengths = copy(p.kv_lengths);
  options.query_starts = copy(p.query_starts);
  options.key_starts = copy(p.key_starts);
  options.query_segments = copy(p.query_segments);
  options.key_segments = copy(p.key_segments);
  if (p.block_mask.present()) set_block_mask(p.block_mask);
  options.alibi_slopes = per_head(p.alibi_slopes, p.num_heads);
  options.sinks = per_head(p.sinks, p.num_heads);
  options.dropout = {p.dropout.probability, static_cast<std::uint32_t>(p.dropout.seed),
                     static_cast<std::uint32_t>(p.dropout.seed >> 32)};
  options.origin = {p.origin.batch, p.origin.head, p.origin.row};
  options.scores_stage = run.scores_stage;
}

void Arguments::set_positions(const Problem& p) {
  options.causal = p.causal;
  options.window_left = window(p.window_left);
  options.window_right = window(p.window_right);
  options.chunk = p.chunk;
  options.global_keys = p.global_keys;
  switch (p.align) {
    case reference::Align::kNone:
      options.align = sdpa::Align::kUnset;
      break;
    case reference::Align::kLowerRight:
      options.align = sdpa::Align::kLowerRight;
      break;
    case reference::Align::kUpperLeft:
      options.align = sdpa::Align::kUpperLeft;
      break;
    case reference::Align::kOffset:
      options.align = sdpa::Align::kOffset;
      break;
  }
  options.query_offset = p.query_offset;
  options.query_offsets = copy(p.query_offsets);
}

void Arguments::set_block_mask(const Broadcast<std::uint8_t>& values) {
  const BlockTiles mask = block_tiles(values);
  options.block_mask = {copy(mask.tiles).data(), copy(mask.bits).data(), values.extents[0], values.extents[1],
                        values.extents[2]};
}

PerHead Arguments::per_head(const reference::PerHead& values, std::size_t num_heads) {
  if (!values.present()) return {};
  return {copy(values.data).data(), values.per_batch ? num_heads : 0};
}

template <class T>
std::span<const T> Arguments::copy(const std::vector<T>& values) {
  if (values.empty()) return {};
  auto& buffer = inputs_.emplace_back(new std::byte[values.size() * sizeof(T)]);
  std::memcpy(buffer.get(), values.data(), values.size() * sizeof(T));
  return {reinterpret_cast<const T*>(buffer.get()), values.size()};
}

InputView Arguments::input(const std::vector<float>& values, const Extents& extents, DType dtype, Placement placement,
                           bool broadcast) {
  const Place target = place(extents, placement, broadcast);
  const std::size_t element = size_of(dtype);
  // One byte more than nothing, so that an empty tensor has an address too.
  auto& buffer = inputs_.emplace_back(new std::byte[std::max<std::size_t>(target.size * element, 1)]);
  const auto write = [&](std::size_t at, float value) {
    if (dtype == DType::kFloat32) {
      std::memcpy(buffer.get() + at * element, &value, element);
    } else {
      const std::uint16_t bits = to_bits(value, dtype);
      std::memcpy(buffer.get() + at * element, &bits, element);
    }
  };
  for (std::size_t at = 0; at < target.size; ++at) write(at, std::numeric_limits<float>::quiet_NaN());
  for_each(extents, target, [&](std::size_t index, std::size_t at) { write(at, values[index]); });
  return {buffer.get() + target.start * element, dtype, extents, target.strides};
}

TensorView<const std::uint8_t> Arguments::mask(const Broadcast<std::uint8_t>& values, Placement placement) {
  const Place target = place(values.extents, placement, true);
  auto& buffer = inputs_.emplace_back(new std::byte[std::max<std::size_t>(target.size, 1)]);
  std::memset(buffer.get(), 255, target.size);
  for_each(values.extents, target,
           [&](std::size_t index, std::size_t at) { buffer[at] = std::byte{values.data[index]}; });
  return {reinterpret_cast<const std::uint8_t*>(buffer.get()) + target.start, values.extents, target.strides};
}

TensorView<float> Arguments::output(Output& target, const Extents& extents, Placement placement) {
  target.extents = extents;
  target.place = place(extents, placement, false);
  target.data.reset(new float[std::max<std::size_t>(target.place.size, 1)]);
  std::fill_n(target.data.get(), target.place.size, kUnwritten);
  return {target.data.get() + target.place.start, extents, target.place.strides};
}

std::vector<float> Arguments::gather(const Output& output) {
  std::vector<float> values;
  if (output.data == nullptr) return values;
  for (const std::size_t at : output.place.elements(output.extents)) values.push_back(output.data[at]);
  return values;
}

bool Arguments::untouched(const Output& output) {
  if (output.data == nullptr) return true;
  std::vector<bool> owned(output.place.size, false);
  for (const std::size_t at : output.place.elements(output.extents)) owned[at] = true;
  for (std::size_t at = 0; at < output.place.size; ++at) {
    if (!owned[at] && output.data[at] != kUnwritten) return false;
  }
  return true;
}

bool Arguments::nothing_written() const {
  const auto unwritten = [](const Output& output) {
    return output.data == nullptr || std::all_of(output.data.get(), output.data.get() + output.place.size,
                                                 [](float x) { return x == kUnwritten; });
  };
  return unwritten(out_) && unwritten(lse_) && unwritten(scores_);
}

}  // namespace sdpa::testing
