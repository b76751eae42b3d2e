// One broken rule each: what a call may not be, and the status that it answers. This file has the faults of tensors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "support/arguments.hpp"

namespace sdpa::testing {

// What the faults are made of.
inline Problem small_problem() {
  return make_problem(
      {.seqlen_q = 3, .seqlen_kv = 5, .head_dim = 4, .head_dim_v = 2, .batch = 2, .num_heads = 4, .num_kv_heads = 2});
}

// The same data seen with another extent along one dimension.
inline InputView with_extent(const InputView& view, std::size_t rank, std::size_t extent) {
  Extents extents = view.extents();
  extents[rank] = extent;
  return {view.data_handle(), view.dtype(), extents, contiguous_strides(view.extents())};
}

template <class T>
TensorView<T> with_extent(const TensorView<T>& view, std::size_t rank, std::size_t extent) {
  Extents extents = view.extents();
  extents[rank] = extent;
  return {view.data_handle(), extents, contiguous_strides(view.extents())};
}

inline InputView with_column_stride(const InputView& view) {
  Strides strides = contiguous_strides(view.extents());
  strides[3] = 2;
  return {view.data_handle(), view.dtype(), view.extents(), strides};
}

inline constexpr float kOneScale = 1;
inline constexpr std::array<std::int32_t, 4> kPages{0, 1, 2, 3};
inline constexpr std::array<std::int32_t, 2> kHeldFrom{0, -1};
inline constexpr auto kBadDtype = static_cast<DType>(7);

struct Fault {
  const char* what;
  StatusCode code;
  void (*make)(Arguments&);
  RunOptions run{};
};

using enum StatusCode;

// Plain data: an initialiser list of objects with destructors takes minutes to compile under the sanitizers.
inline constexpr Fault kTensorFaults[] = {
    {"no query", kMissingTensor,
     [](Arguments& a) { a.tensors.query = InputView(nullptr, DType::kFloat32, a.tensors.query.extents()); }},
    {"no key", kMissingTensor,
     [](Arguments& a) { a.tensors.key = InputView(nullptr, DType::kFloat32, a.tensors.key.extents()); }},
    {"no value", kMissingTensor,
     [](Arguments& a) { a.tensors.value = InputView(nullptr, DType::kFloat32, a.tensors.value.extents()); }},
    {"no out", kMissingTensor,
     [](Arguments& a) { a.tensors.out = TensorView<float>(nullptr, a.tensors.out.extents()); }},
    {"query of no type", kInvalidDtype,
     [](Arguments& a) {
       a.tensors.query = InputView(a.tensors.query.data_handle(), kBadDtype, a.tensors.query.extents());
     }},
    {"key of no type", kInvalidDtype,
     [](Arguments& a) { a.tensors.key = InputView(a.tensors.key.data_handle(), kBadDtype, a.tensors.key.extents()); }},
    {"value of no type", kInvalidDtype,
     [](Arguments& a) {
       a.tensors.value = InputView(a.tensors.value.data_handle(), kBadDtype, a.tensors.value.extents());
     }},
    {"key of another batch", kBatchMismatch, [](Arguments& a) { a.tensors.key = with_extent(a.tensors.key, 0, 1); }},
    {"value of another batch", kBatchMismatch,
     [](Arguments& a) { a.tensors.value = with_extent(a.tensors.value, 0, 1); }},
    {"value of other heads", kHeadsMismatch,
     [](Arguments& a) { a.tensors.value = with_extent(a.tensors.value, 1, 1); }},
    {"three query heads over two", kHeadsNotMultiple,
     [](Arguments& a) { a.tensors.query = with_extent(a.tensors.query, 1, 3); }},
    {"one query head over two", kHeadsNotMultiple,
     [](Arguments& a) { a.tensors.query = with_extent(a.tensors.query, 1, 1); }},
    {"no key heads", kHeadsNotMultiple,
     [](Arguments& a) {
       a.tensors.key = with_extent(a.tensors.key, 1, 0);
       a.tensors.value = with_extent(a.tensors.value, 1, 0);
     }},
    {"value of another length", kSeqlenMismatch,
     [](Arguments& a) { a.tensors.value = with_extent(a.tensors.value, 2, 4); }},
    {"key of another head size", kHeadDimMismatch,
     [](Arguments& a) { a.tensors.key = with_extent(a.tensors.key, 3, 3); }},
    {"head size 0", kHeadDimZero,
     [](Arguments& a) {
       a.tensors.query = with_extent(a.tensors.query, 3, 0);
       a.tensors.key = with_extent(a.tensors.key, 3, 0);
     }},
    {"value head size 0", kHeadDimZero,
     [](Arguments& a) {
       a.tensors.value = with_extent(a.tensors.value, 3, 0);
       a.tensors.out = with_extent(a.tensors.out, 3, 0);
     }},
    {"query with gaps between columns", kColumnStride,
     [](Arguments& a) { a.tensors.query = with_column_stride(a.tensors.query); }},
    {"key with gaps between columns", kColumnStride,
     [](Arguments& a) { a.tensors.key = with_column_stride(a.tensors.key); }},
    {"value with gaps between columns", kColumnStride,
     [](Arguments& a) { a.tensors.value = with_column_stride(a.tensors.value); }},
    {"out with gaps between columns", kColumnStride,
     [](Arguments& a) {
       Strides strides = contiguous_strides(a.tensors.out.extents());
       strides[3] = 2;
       a.tensors.out = TensorView<float>(a.tensors.out.data_handle(), a.tensors.out.extents(), strides);
     }},
    {"out of another head size", kOutShape, [](Arguments& a) { a.tensors.out = with_extent(a.tensors.out, 3, 1); }},
    {"out of another batch", kOutShape, [](Arguments& a) { a.tensors.out = with_extent(a.tensors.out, 0, 1); }},
    {"lse of another length", kLseShape, [](Arguments& a) { a.tensors.lse = with_extent(a.tensors.lse, 2, 2); }},
    {"lse with columns", kLseShape, [](Arguments& a) { a.tensors.lse = with_extent(a.tensors.lse, 3, 2); }},
    {"scores of another length",
     kScoresShape,
     [](Arguments& a) { a.tensors.scores = with_extent(a.tensors.scores, 3, 4); },
     {.scores_stage = ScoresStage::kScaled}},
    {"sizes whose product does not fit", kSizeOverflow,
     [](Arguments& a) {
       constexpr std::size_t kHuge = std::numeric_limits<std::size_t>::max() / 16;
       a.tensors.query = with_extent(a.tensors.query, 0, kHuge);
       a.tensors.key = with_extent(a.tensors.key, 0, kHuge);
       a.tensors.value = with_extent(a.tensors.value, 0, kHuge);
       a.tensors.out = with_extent(a.tensors.out, 0, kHuge);
       a.tensors.lse = {};
     }},
    {"keys whose product does not fit", kSizeOverflow,
     [](Arguments& a) {
       constexpr std::size_t kHuge = std::numeric_limits<std::size_t>::max() / 8;
       a.tensors.key = with_extent(a.tensors.key, 2, kHuge);
       a.tensors.value = with_extent(a.tensors.value, 2, kHuge);
     }},
    {"query in int8", kInvalidDtype,
     [](Arguments& a) {
       a.tensors.query = InputView(a.tensors.query.data_handle(), DType::kInt8, a.tensors.query.extents());
     }},
    {"keys in int8 without scales", kInvalidMap,
     [](Arguments& a) {
       a.tensors.key = InputView(a.tensors.key.data_handle(), DType::kInt8, a.tensors.key.extents());
       a.tensors.map.value_scales = &kOneScale;
     }},
    {"values in int8 without scales", kInvalidMap,
     [](Arguments& a) {
       a.tensors.value = InputView(a.tensors.value.data_handle(), DType::kInt8, a.tensors.value.extents());
       a.tensors.map.key_scales = &kOneScale;
     }},
    {"pages without their table", kInvalidMap,
     [](Arguments& a) {
       a.tensors.map.page_size = 4;
       a.tensors.map.pages_per_row = 2;
     }},
    {"too few pages for the keys", kInvalidMap,
     [](Arguments& a) {
       a.tensors.map.page_size = 4;
       a.tensors.map.pages = kPages.data();
       a.tensors.map.pages_per_row = 1;
     }},
    {"no page, of a size near the largest", kInvalidMap,
     [](Arguments& a) {
       a.tensors.map.page_size = std::numeric_limits<std::size_t>::max();
       a.tensors.map.pages = kPages.data();
     }},
    {"a ring in pages", kInvalidMap,
     [](Arguments& a) {
       a.tensors.map.page_size = 4;
       a.tensors.map.pages = kPages.data();
       a.tensors.map.pages_per_row = 2;
       a.tensors.map.ring_size = 4;
     }},
    {"keys held from before the first", kInvalidMap,
     [](Arguments& a) {
       a.tensors.map.ring_size = 5;
       a.tensors.map.held_from = kHeldFrom.data();
     }},
};

}  // namespace sdpa::testing
