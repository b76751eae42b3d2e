#include "reference/weights.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sdpa::reference {

template <class Real>
std::vector<Real> weights(const Result<Real>& result) {
  const std::size_t keys = result.lse.empty() ? 0 : result.biased.size() / result.lse.size();
  std::vector<Real> all(result.biased.size(), Real{0});
  for (std::size_t n = 0; n < all.size(); ++n) {
    if (result.biased[n] == -std::numeric_limits<Real>::infinity()) continue;
    all[n] = std::exp(result.biased[n] - result.lse[n / keys]);
  }
  return all;
}

template <class Real>
Summarised<Real> summarise(const Problem& p, const Result<Real>& result, const Choice& choice) {
  const std::vector<Real> all = weights(result);
  Summarised<Real> to;
  const auto row_of = [&](std::size_t b, std::size_t h, std::size_t i) {
    return (b * p.num_heads + h) * p.seqlen_q + i;
  };
  for (std::size_t b = 0; b < p.batch; ++b) {
    for (const std::size_t h : choice.heads) {
      const auto weight = [&](std::size_t i, std::size_t j) { return all[row_of(b, h, i) * p.seqlen_kv + j]; };
      const auto takes_part = [&](std::size_t i, std::size_t j) {
        return result.biased[row_of(b, h, i) * p.seqlen_kv + j] != -std::numeric_limits<Real>::infinity();
      };
      // Keys that take part, the largest weight first; std::stable_sort leaves equal ones in their order.
      const auto ranked = [&](std::size_t i) {
        std::vector<std::size_t> keys;
        for (std::size_t j = 0; j < p.seqlen_kv; ++j) {
          if (takes_part(i, j)) keys.push_back(j);
        }
        std::stable_sort(keys.begin(), keys.end(),
                         [&](std::size_t x, std::size_t y) { return weight(i, x) > weight(i, y); });
        return keys;
      };
      switch (choice.summary) {
        case Summary::kRows:
          for (const std::size_t i : choice.picks) {
            for (std::size_t j = 0; j < p.seqlen_kv; ++j) to.values.push_back(weight(i, j));
          }
          break;
        case Summary::kColumns:
          for (std::size_t i = 0; i < p.seqlen_q; ++i) {
            for (const std::size_t j : choice.picks) to.values.push_back(weight(i, j));
          }
          break;
        case Summary::kTopK:
          for (std::size_t i = 0; i < p.seqlen_q; ++i) {
            const auto keys = ranked(i);
            for (std::size_t n = 0; n < choice.top_k; ++n) {
              to.values.push_back(n < keys.size() ? weight(i, keys[n]) : Real{0});
              to.indices.push_back(n < keys.size() ? static_cast<std::int64_t>(keys[n]) : -1);
            }
          }
          break;
        case Summary::kStats:
          for (std::size_t i = 0; i < p.seqlen_q; ++i) {
            const auto keys = ranked(i);
            to.values.push_back(keys.empty() ? Real{0} : weight(i, keys[0]));
            to.indices.push_back(keys.empty() ? -1 : static_cast<std::int64_t>(keys[0]));
            Real entropy = 0;
            for (std::size_t j = 0; j < p.seqlen_kv; ++j) {
              if (weight(i, j) > 0) entropy -= weight(i, j) * std::log(weight(i, j));
            }
            to.entropy.push_back(entropy);
          }
          break;
        case Summary::kSum:
        case Summary::kMean:
        case Summary::kMax:
          for (std::size_t r = 0; r + 1 < choice.row_cells.size(); ++r) {
            for (std::size_t c = 0; c + 1 < choice.column_cells.size(); ++c) {
              Real sum = 0;
              Real most = 0;
              std::size_t pairs = 0;
              for (std::size_t i = choice.row_cells[r]; i < choice.row_cells[r + 1]; ++i) {
                for (std::size_t j = choice.column_cells[c]; j < choice.column_cells[c + 1]; ++j, ++pairs) {
                  sum += weight(i, j);
                  most = std::max(most, weight(i, j));
                }
              }
              if (choice.summary == Summary::kMean) sum /= static_cast<Real>(pairs);
              to.values.push_back(choice.summary == Summary::kMax ? most : sum);
            }
          }
          break;
      }
    }
  }
  return to;
}

template std::vector<double> weights(const Result<double>&);
template std::vector<float> weights(const Result<float>&);
template Summarised<double> summarise(const Problem&, const Result<double>&, const Choice&);
template Summarised<float> summarise(const Problem&, const Result<float>&, const Choice&);

}  // namespace sdpa::reference
