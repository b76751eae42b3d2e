#include "grids/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sdpa::grids {
namespace {

using reference::Problem;

// Keys at a time: their sums are independent of one another, so a processor can add up many at once.
constexpr std::size_t kKeys = 16;

enum class Cell : std::uint8_t { kOut, kKept, kDropped };

// The rows that read one head of keys and values.
struct Group {
  const Problem& p;
  std::size_t b;
  std::size_t g;
  std::span<const std::size_t> picks;

  std::size_t heads() const { return p.num_heads / p.num_kv_heads; }
  std::size_t rows() const { return heads() * picks.size(); }
  std::size_t head(std::size_t row) const { return g * heads() + row / picks.size(); }
  std::size_t query(std::size_t row) const { return picks[row % picks.size()]; }
  // Row of the result.
  std::size_t target(std::size_t row) const {
    return (b * p.num_heads + head(row)) * picks.size() + row % picks.size();
  }
};

// (rows, S)
std::vector<Cell> cells_of(const Group& group) {
  const Problem& p = group.p;
  std::vector<Cell> cells(group.rows() * p.seqlen_kv, Cell::kOut);
  for (std::size_t row = 0; row < group.rows(); ++row) {
    const std::size_t h = group.head(row);
    const std::size_t i = group.query(row);
    for (std::size_t j = 0; j < p.seqlen_kv; ++j) {
      if (!p.allowed(group.b, h, i, j)) continue;
      if (p.bias.present() && p.bias.at(group.b, h, i, j) == -std::numeric_limits<float>::infinity()) continue;
      cells[row * p.seqlen_kv + j] = p.dropped(group.b, h, i, j) ? Cell::kDropped : Cell::kKept;
    }
  }
  return cells;
}

template <class Real>
Real score(const Group& group, std::size_t row, std::size_t j, Real scale, Real dot) {
  const Problem& p = group.p;
  const Real cap{p.softcap};
  const std::size_t h = group.head(row);
  const std::size_t i = group.query(row);
  const Real scaled = scale * dot;
  Real s = cap > 0 ? cap * std::tanh(scaled / cap) : scaled;
  s += p.bias.present() ? Real{p.bias.at(group.b, h, i, j)} : Real{0};
  if (p.alibi_slopes.present()) {
    const Problem::Positions at = *p.positions(group.b, i, j);
    const std::int64_t distance = at.query > at.key ? at.query - at.key : at.key - at.query;
    s -= Real{p.alibi_slopes.at(group.b, h, p.num_heads)} * static_cast<Real>(distance);
  }
  return s;
}

bool any_of(const Cell* cells, std::size_t count) {
  return std::any_of(cells, cells + count, [](Cell cell) { return cell != Cell::kOut; });
}

// Scores of the cells that take part, (rows, S); the others are left as they are.
template <class Real>
std::vector<Real> scores_of(const Group& group, const std::vector<Cell>& cells) {
  const Problem& p = group.p;
  const Real scale = p.scale ? Real{*p.scale} : Real{1} / std::sqrt(static_cast<Real>(p.head_dim));
  const float* keys = p.key.data() + (group.b * p.num_kv_heads + group.g) * p.seqlen_kv * p.head_dim;
  std::vector<Real> scores(group.rows() * p.seqlen_kv);
  std::vector<Real> panel(p.head_dim * kKeys);  // (D, keys)
  for (std::size_t first = 0; first < p.seqlen_kv; first += kKeys) {
    const std::size_t count = std::min(kKeys, p.seqlen_kv - first);
    for (std::size_t k = 0; k < count; ++k) {
      for (std::size_t d = 0; d < p.head_dim; ++d) panel[d * kKeys + k] = Real{keys[(first + k) * p.head_dim + d]};
    }
    for (std::size_t row = 0; row < group.rows(); ++row) {
      const std::size_t at = row * p.seqlen_kv + first;
      if (!any_of(cells.data() + at, count)) continue;
      const std::size_t from = (group.b * p.num_heads + group.head(row)) * p.seqlen_q + group.query(row);
      const float* query = p.query.data() + from * p.head_dim;
      Real dots[kKeys] = {};
      for (std::size_t d = 0; d < p.head_dim; ++d) {
        const Real q{query[d]};
        for (std::size_t k = 0; k < kKeys; ++k) dots[k] += q * panel[d * kKeys + k];
      }
      for (std::size_t k = 0; k < count; ++k) {
        if (cells[at + k] != Cell::kOut) scores[at + k] = score(group, row, first + k, scale, dots[k]);
      }
    }
  }
  return scores;
}

// Scores become weights, and the log-sum-exp of each row is written.
template <class Real>
void softmax(const Group& group, const std::vector<Cell>& cells, std::vector<Real>& scores, RowsOf<Real>& result) {
  constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
  const Problem& p = group.p;
  for (std::size_t row = 0; row < group.rows(); ++row) {
    const Cell* cell = cells.data() + row * p.seqlen_kv;
    Real* s = scores.data() + row * p.seqlen_kv;
    const Real sink = p.sinks.present() ? Real{p.sinks.at(group.b, group.head(row), p.num_heads)} : -kInfinity;
    result.lse[group.target(row)] = sink;
    if (!any_of(cell, p.seqlen_kv)) continue;
    Real m = sink;
    for (std::size_t j = 0; j < p.seqlen_kv && !std::isnan(m); ++j) {
      if (cell[j] != Cell::kOut && (std::isnan(s[j]) || s[j] > m)) m = s[j];
    }
    Real z = sink == -kInfinity ? Real{0} : std::exp(sink - m);
    for (std::size_t j = 0; j < p.seqlen_kv; ++j) {
      if (cell[j] == Cell::kOut) continue;
      s[j] = std::exp(s[j] - m);
      z += s[j];
    }
    for (std::size_t j = 0; j < p.seqlen_kv; ++j) {
      if (cell[j] != Cell::kOut) s[j] /= z;
    }
    result.lse[group.target(row)] = m + std::log(z);
  }
}

template <class Real>
void add_values(const Group& group, const std::vector<Cell>& cells, const std::vector<Real>& weights,
                RowsOf<Real>& result) {
  const Problem& p = group.p;
  const Real kept = Real{1} / (Real{1} - static_cast<Real>(p.dropout.probability));
  const float* values = p.value.data() + (group.b * p.num_kv_heads + group.g) * p.seqlen_kv * p.head_dim_v;
  std::vector<Real> panel(kKeys * p.head_dim_v);  // (keys, Dv)
  for (std::size_t first = 0; first < p.seqlen_kv; first += kKeys) {
    const std::size_t count = std::min(kKeys, p.seqlen_kv - first);
    std::copy_n(values + first * p.head_dim_v, count * p.head_dim_v, panel.begin());
    for (std::size_t row = 0; row < group.rows(); ++row) {
      const std::size_t at = row * p.seqlen_kv + first;
      Real* out = result.out.data() + group.target(row) * p.head_dim_v;
      for (std::size_t k = 0; k < count; ++k) {
        if (cells[at + k] != Cell::kKept) continue;
        const Real weight = weights[at + k] * kept;
        const Real* value = panel.data() + k * p.head_dim_v;
        for (std::size_t d = 0; d < p.head_dim_v; ++d) out[d] += weight * value[d];
      }
    }
  }
}

template <class Real>
void compute(const Group& group, const std::vector<Cell>& cells, RowsOf<Real>& result) {
  std::vector<Real> scores = scores_of<Real>(group, cells);
  softmax(group, cells, scores, result);
  add_values(group, cells, scores, result);
}

template <class Real>
RowsOf<Real> empty_rows(const Problem& p, std::size_t picks) {
  const std::size_t rows = p.batch * p.num_heads * picks;
  return {std::vector<Real>(rows * p.head_dim_v, 0), std::vector<Real>(rows, -std::numeric_limits<Real>::infinity())};
}

}  // namespace

ChosenRows chosen_rows(const Problem& p, std::span<const std::size_t> picks) {
  ChosenRows rows{empty_rows<double>(p, picks.size()), empty_rows<float>(p, picks.size())};
  for (std::size_t b = 0; b < p.batch; ++b) {
    for (std::size_t g = 0; g < p.num_kv_heads; ++g) {
      const Group group{p, b, g, picks};
      const std::vector<Cell> cells = cells_of(group);
      compute(group, cells, rows.exact);
      compute(group, cells, rows.plain);
    }
  }
  return rows;
}

}  // namespace sdpa::grids
