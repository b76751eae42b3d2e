#include "support/cache.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "support/storage16.hpp"

namespace sdpa::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::int32_t kNoPage = std::numeric_limits<std::int32_t>::max();
// Rows beyond what is needed: a cache's capacity.
constexpr std::size_t kSpareRows = 5;
constexpr std::size_t kSparePages = 3;

// max |x| / 127 rounded up to 12 significant bits, so that a product with an int8 is exact and the oracle is given the
// very numbers that are stored.
float scale_of(const float* row, std::size_t columns) {
  float largest = 0;
  for (std::size_t c = 0; c < columns; ++c) largest = std::max(largest, std::fabs(row[c]));
  if (largest == 0) return 0;
  int exponent = 0;
  const float fraction = std::frexp(largest / 127, &exponent);
  return std::ldexp(std::ceil(std::ldexp(fraction, 12)), exponent - 12);
}

std::unique_ptr<float[]> floats(std::size_t count, float value) {
  std::unique_ptr<float[]> result(new float[std::max<std::size_t>(count, 1)]);
  std::fill_n(result.get(), count, value);
  return result;
}

}  // namespace

Cache::Cache(Problem& p, const CacheKind& kind)
    : kind_(kind), batch_(p.batch), heads_(p.num_kv_heads), keys_(p.seqlen_kv), lengths_(p.kv_lengths) {
  if (lengths_.empty()) lengths_.assign(batch_, static_cast<std::int32_t>(keys_));
  slots_ = kind.ring_size == 0 ? keys_ : kind.ring_begin + kind.ring_size;
  for (const std::int32_t length : lengths_) {
    const auto lost = length - static_cast<std::int32_t>(kind.ring_size);
    held_from_.push_back(kind.ring_size == 0 ? 0 : std::max(static_cast<std::int32_t>(kind.ring_begin), lost));
  }
  if (kind.page_size == 0) {
    outer_ = batch_;
    inner_ = slots_ + kSpareRows;
  } else {
    pages_per_row_ = (slots_ + kind.page_size - 1) / kind.page_size + 1;
    outer_ = batch_ * pages_per_row_ + kSparePages;
    inner_ = kind.page_size;
    // Pages in no order.
    std::vector<std::int32_t> order(outer_);
    std::iota(order.begin(), order.end(), 0);
    Random random(outer_);
    for (std::size_t n = outer_; n > 1; --n)
      std::swap(order[n - 1], order[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(n) - 1))]);
    pages_.reset(new std::int32_t[batch_ * pages_per_row_]);
    for (std::size_t b = 0; b < batch_; ++b) {
      const std::size_t used = (static_cast<std::size_t>(lengths_[b]) + inner_ - 1) / inner_;
      for (std::size_t n = 0; n < pages_per_row_; ++n) {
        const std::size_t entry = b * pages_per_row_ + n;
        pages_[entry] = n < used ? order[entry] : kNoPage;
      }
    }
  }
  key_ = store(p.key, p.head_dim, kind.key_dtype);
  value_ = store(p.value, p.head_dim_v, kind.value_dtype);
}

std::size_t Cache::slot(std::size_t j) const {
  if (kind_.ring_size == 0 || j < kind_.ring_begin) return j;
  return kind_.ring_begin + (j - kind_.ring_begin) % kind_.ring_size;
}

std::size_t Cache::row_index(std::size_t b, std::size_t g, std::size_t j) const {
  std::size_t outer = b;
  std::size_t row = slot(j);
  if (kind_.page_size != 0) {
    outer = static_cast<std::size_t>(pages_[b * pages_per_row_ + row / kind_.page_size]);
    row %= kind_.page_size;
  }
  return (outer * heads_ + g) * inner_ + row;
}

Cache::Store Cache::store(std::vector<float>& rows, std::size_t columns, DType dtype) const {
  const std::size_t count = outer_ * heads_ * inner_;
  const std::size_t element = size_of(dtype);
  Store result{columns, dtype, nullptr, nullptr, {heads_ * inner_ * columns, inner_ * columns, columns, 1}};
  result.data.reset(new std::byte[std::max<std::size_t>(count * columns * element, 1)]);
  if (dtype == DType::kInt8) result.scales = floats(count, kNan);

  const auto write = [&](std::size_t at, float value, float scale) {
    std::byte* target = result.data.get() + at * element;
    if (dtype == DType::kFloat32) {
      std::memcpy(target, &value, element);
    } else if (dtype == DType::kInt8) {
      const auto steps =
          static_cast<std::int8_t>(std::isnan(value) ? -128 : std::lrint(scale == 0 ? 0 : value / scale));
      std::memcpy(target, &steps, element);
    } else {
      const std::uint16_t bits = dtype == DType::kFloat16 ? to_float16(value) : to_bfloat16(value);
      std::memcpy(target, &bits, element);
    }
  };
  for (std::size_t at = 0; at < count * columns; ++at) write(at, kNan, 1);
  round_to(rows, dtype);
  for (std::size_t b = 0; b < batch_; ++b) {
    for (std::size_t g = 0; g < heads_; ++g) {
      // In the order in which they came: in a ring the later ones overwrite.
      for (std::size_t j = 0; j < static_cast<std::size_t>(lengths_[b]); ++j) {
        float* row = rows.data() + ((b * heads_ + g) * keys_ + j) * columns;
        const std::size_t index = row_index(b, g, j);
        const float scale = dtype == DType::kInt8 ? scale_of(row, columns) : 1;
        for (std::size_t c = 0; c < columns; ++c) {
          write(index * columns + c, row[c], scale);
          if (dtype == DType::kInt8) row[c] = scale == 0 ? 0 : scale * static_cast<float>(std::lrint(row[c] / scale));
        }
        if (dtype == DType::kInt8) result.scales[index] = scale;
      }
    }
  }
  return result;
}

void Cache::install(Arguments& arguments) const {
  const auto view = [&](const Store& store) {
    return InputView(store.data.get(), store.dtype, {batch_, heads_, keys_, store.columns}, store.strides);
  };
  arguments.tensors.key = view(key_);
  arguments.tensors.value = view(value_);
  KeyValueMap& map = arguments.tensors.map;
  map.key_scales = key_.scales.get();
  map.value_scales = value_.scales.get();
  map.pages = pages_.get();
  map.pages_per_row = pages_per_row_;
  map.page_size = kind_.page_size;
  map.ring_begin = kind_.ring_begin;
  map.ring_size = kind_.ring_size;
  if (kind_.ring_size != 0) map.held_from = held_from_.data();
}

Problem Cache::oracle(const Problem& problem) const {
  Problem p = problem;
  const std::size_t num_heads = p.num_heads;
  p.mask.extents = {p.batch, num_heads, p.seqlen_q, p.seqlen_kv};
  p.mask.data.clear();
  for (std::size_t row = 0; row < p.batch * num_heads * p.seqlen_q; ++row) {
    const std::size_t b = row / (num_heads * p.seqlen_q);
    for (std::size_t j = 0; j < p.seqlen_kv; ++j) {
      const bool held = j < kind_.ring_begin || static_cast<std::int32_t>(j) >= held_from_[b];
      const bool masked =
          problem.mask.present() && problem.mask.at(b, row / p.seqlen_q % num_heads, row % p.seqlen_q, j) == 0;
      p.mask.data.push_back(held && !masked ? 1 : 0);
    }
  }
  for (std::size_t head = 0; head < p.batch * heads_; ++head) {
    const std::size_t b = head / heads_;
    for (std::size_t j = kind_.ring_begin; static_cast<std::int32_t>(j) < held_from_[b]; ++j) {
      const auto at = static_cast<long>(head * keys_ + j);
      std::fill_n(p.key.begin() + at * static_cast<long>(p.head_dim), p.head_dim, kNan);
      std::fill_n(p.value.begin() + at * static_cast<long>(p.head_dim_v), p.head_dim_v, kNan);
    }
  }
  return p;
}

namespace {

Actual run_with(const KernelTable& table, const Problem& problem, const Cache& cache, const RunOptions& options) {
  Arguments arguments(problem, options);
  cache.install(arguments);
  const Status status = status_of(table, arguments);
  EXPECT_TRUE(status.ok()) << status.name() << " for " << describe(problem);
  EXPECT_TRUE(arguments.gaps_untouched()) << "written outside the outputs: " << describe(problem);
  return {status, arguments.out(), arguments.lse(), arguments.scores()};
}

}  // namespace

Actual run_cached(const KernelTable& table, Problem problem, const CacheKind& kind, const RunOptions& options) {
  const Cache cache(problem, kind);
  return run_with(table, problem, cache, options);
}

void expect_cached_matches_reference(const KernelTable& table, Problem problem, const CacheKind& kind,
                                     const RunOptions& options) {
  const Cache cache(problem, kind);
  const Problem oracle = cache.oracle(problem);
  expect_close(oracle, expected(oracle), run_with(table, problem, cache, options), options.scores_stage);
}

}  // namespace sdpa::testing
