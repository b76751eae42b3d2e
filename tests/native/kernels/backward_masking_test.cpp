// What takes no part in a gradient never reaches it, whatever it holds.
//
// The method is that of attention_masking_test.cpp: poison something and compare bit for bit with the clean run. A NaN
// in what a row sees makes that row's gradient NaN, and through it those of the keys that the row sees; nothing else
// moves.
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/bounds.hpp"
#include "support/gradients.hpp"

namespace sdpa::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::size_t kRowsOfABatch = 2 * kQueries;

class BackwardMasking : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, BackwardMasking, ::testing::ValuesIn(every_kernel()), kernel_name);

// Those of the forward pass, and a bias that excludes.
std::vector<Bound> every_bound() {
  std::vector<Bound> bounds(std::begin(kBounds), std::end(kBounds));
  bounds.push_back({"bias of -infinity", [](Problem& p, Random& random) {
                      p.bias = random_bias(random, {2, 2, kQueries, kKeys});
                      for (float& cell : p.bias.data) {
                        if (random.chance(0.3)) cell = -kInfinity;
                      }
                    }});
  return bounds;
}

// Who sees whom of a bounded problem: row = head * kQueries + i.
class Sight {
 public:
  explicit Sight(const Problem& p) : seen_(p.batch * kRowsOfABatch * kKeys) {
    for (std::size_t b = 0; b < p.batch; ++b) {
      for (std::size_t row = 0; row < kRowsOfABatch; ++row) {
        for (std::size_t j = 0; j < kKeys; ++j) {
          const float bias = p.bias.present() ? p.bias.at(b, row / kQueries, row % kQueries, j) : 0;
          seen_[(b * kRowsOfABatch + row) * kKeys + j] =
              bias != -kInfinity && p.allowed(b, row / kQueries, row % kQueries, j);
        }
      }
    }
  }
  bool sees(std::size_t b, std::size_t row, std::size_t j) const {
    return seen_[(b * kRowsOfABatch + row) * kKeys + j];
  }
  bool sees_nothing(std::size_t b, std::size_t row) const {
    for (std::size_t j = 0; j < kKeys; ++j) {
      if (sees(b, row, j)) return false;
    }
    return true;
  }
  bool is_seen(std::size_t b, std::size_t j) const {
    for (std::size_t row = 0; row < kRowsOfABatch; ++row) {
      if (sees(b, row, j)) return true;
    }
    return false;
  }

 private:
  std::vector<bool> seen_;
};

// Fails where rows or keys that are not `spoilt` differ between the runs. `spoilt` has a flag for each row of the
// tensor.
void expect_same_but(const char* what, const std::vector<float>& before, const std::vector<float>& after,
                     std::size_t width, const std::vector<bool>& spoilt) {
  ASSERT_EQ(before.size(), spoilt.size() * width);
  for (std::size_t row = 0; row < spoilt.size(); ++row) {
    if (spoilt[row]) continue;
    for (std::size_t c = 0; c < width; ++c) {
      ASSERT_TRUE(same_bits({before[row * width + c]}, {after[row * width + c]}))
          << what << " row " << row << " column " << c << ": " << after[row * width + c] << " instead of "
          << before[row * width + c];
    }
  }
}

// The rows that `poisoned` has turned to NaN, and the keys that those see.
struct Spoilt {
  std::vector<bool> rows;
  std::vector<bool> keys;
};

Spoilt spoil(const Problem& p, const Sight& sight, const std::vector<bool>& rows) {
  Spoilt spoilt{rows, std::vector<bool>(p.batch * kKeys, false)};
  for (std::size_t b = 0; b < p.batch; ++b) {
    for (std::size_t row = 0; row < kRowsOfABatch; ++row) {
      if (!rows[b * kRowsOfABatch + row]) continue;
      for (std::size_t j = 0; j < kKeys; ++j) {
        if (sight.sees(b, row, j)) spoilt.keys[b * kKeys + j] = true;
      }
    }
  }
  return spoilt;
}

void expect_spoilt_alone(const Spoilt& spoilt, const Gradients<float>& before, const Gradients<float>& after,
                         bool value_too) {
  expect_same_but("query", before.query, after.query, kHeadDim, spoilt.rows);
  expect_same_but("key", before.key, after.key, kHeadDim, spoilt.keys);
  expect_same_but("value", before.value, after.value, kHeadDimV,
                  value_too ? spoilt.keys : std::vector<bool>(spoilt.keys.size(), false));
  for (std::size_t row = 0; row < spoilt.rows.size(); ++row) {
    // A row whose sink has all of the weight has no gradient to spoil.
    if (!spoilt.rows[row] || before.query[row * kHeadDim + 1] == 0.0F) continue;
    ASSERT_TRUE(std::isnan(after.query[row * kHeadDim + 1])) << "row " << row << " hides the NaN";
  }
}

std::vector<bool> rows_that_see(const Problem& p, const Sight& sight, std::size_t j) {
  std::vector<bool> rows(p.batch * kRowsOfABatch);
  for (std::size_t n = 0; n < rows.size(); ++n) rows[n] = sight.sees(n / kRowsOfABatch, n % kRowsOfABatch, j);
  return rows;
}

std::vector<std::size_t> some_keys(const KernelTable& table) {
  const std::size_t tile = table.keys_per_tile;
  return {0, 3, tile - 1, tile, 2 * tile, kKeys - 1};
}

// What comes of a NaN that `poison` puts into row j of keys or values of each batch entry.
template <class F>
void expect_nan_of_a_key_reaches_those_that_see_it(const KernelTable& table, bool value_too, F&& poison) {
  for (const Bound& bound : every_bound()) {
    SCOPED_TRACE(bound.name);
    const Problem clean = bounded(bound);
    const Sight sight(clean);
    const Upstream upstream = random_upstream(clean);
    const Gradients<float> before = run_backward(table, clean, upstream);
    for (const std::size_t j : some_keys(table)) {
      SCOPED_TRACE(j);
      Problem poisoned = clean;
      for (std::size_t b = 0; b < clean.batch; ++b) poison(poisoned, b * kKeys + j, j);
      expect_spoilt_alone(spoil(clean, sight, rows_that_see(clean, sight, j)), before,
                          run_backward(table, poisoned, upstream), value_too);
    }
  }
}

TEST_P(BackwardMasking, ANanInAKeyReachesTheRowsThatSeeItAndThroughThemTheirKeys) {
  expect_nan_of_a_key_reaches_those_that_see_it(
      table(), true, [](Problem& p, std::size_t row, std::size_t j) { p.key[row * kHeadDim + j % kHeadDim] = kNan; });
}

TEST_P(BackwardMasking, ANanInAValueReachesTheScoresOfTheRowsThatSeeItAndNoValue) {
  expect_nan_of_a_key_reaches_those_that_see_it(table(), false, [](Problem& p, std::size_t row, std::size_t j) {
    p.value[row * kHeadDimV + j % kHeadDimV] = kNan;
  });
}

TEST_P(BackwardMasking, ANanInAQueryOrInWhatComesFromAboveStaysInItsRowAndTheKeysThatItSees) {
  for (const Bound& bound : every_bound()) {
    SCOPED_TRACE(bound.name);
    const Problem clean = bounded(bound);
    const Sight sight(clean);
    const Upstream upstream = random_upstream(clean);
    const Gradients<float> before = run_backward(table(), clean, upstream);
    for (const std::size_t row : {std::size_t{0}, std::size_t{17}, kQueries - 1, kQueries + 40}) {
      SCOPED_TRACE(row);
      std::vector<bool> rows(clean.batch * kRowsOfABatch, false);
      rows[row] = !sight.sees_nothing(0, row);
      const Spoilt spoilt = spoil(clean, sight, rows);
      Problem poisoned = clean;
      poisoned.query[row * kHeadDim + row % kHeadDim] = kNan;
      expect_spoilt_alone(spoilt, before, run_backward(table(), poisoned, upstream), true);
      Upstream above = upstream;
      above.d_out[row * kHeadDimV + row % kHeadDimV] = kNan;
      expect_spoilt_alone(spoilt, before, run_backward(table(), clean, above), true);
      above = upstream;
      above.d_lse[row] = kNan;
      expect_spoilt_alone(spoilt, before, run_backward(table(), clean, above), false);
    }
  }
}

TEST_P(BackwardMasking, GarbageInRowsThatSeeNothingAndInKeysThatNobodySeesChangesNoBit) {
  for (const Bound& bound : every_bound()) {
    SCOPED_TRACE(bound.name);
    Problem clean = bounded(bound);
    const Sight sight(clean);
    Upstream upstream = random_upstream(clean);
    const Gradients<float> before = run_backward(table(), clean, upstream);
    for (const float garbage : {kNan, kInfinity, -kInfinity, 3.4e38F}) {
      Problem poisoned = clean;
      Upstream above = upstream;
      for (std::size_t b = 0; b < clean.batch; ++b) {
        for (std::size_t row = 0; row < kRowsOfABatch; ++row) {
          if (!sight.sees_nothing(b, row)) continue;
          const std::size_t n = b * kRowsOfABatch + row;
          std::fill_n(poisoned.query.begin() + static_cast<long>(n * kHeadDim), kHeadDim, garbage);
          std::fill_n(above.d_out.begin() + static_cast<long>(n * kHeadDimV), kHeadDimV, garbage);
          // A row within its length has its sink for a log-sum-exp, whose gradient counts.
          if (!clean.sinks.present()) above.d_lse[n] = garbage;
        }
        for (std::size_t j = 0; j < kKeys; ++j) {
          if (sight.is_seen(b, j)) continue;
          std::fill_n(poisoned.key.begin() + static_cast<long>((b * kKeys + j) * kHeadDim), kHeadDim, garbage);
          std::fill_n(poisoned.value.begin() + static_cast<long>((b * kKeys + j) * kHeadDimV), kHeadDimV, garbage);
        }
      }
      EXPECT_TRUE(same_gradient_bits(before, run_backward(table(), poisoned, above))) << garbage;
    }
  }
}

TEST_P(BackwardMasking, RowsBeyondTheirLengthCountForNothingButTheirLogSumExp) {
  Problem clean = make_problem({.seqlen_q = 5, .seqlen_kv = 7, .head_dim = 3, .batch = 2});
  clean.query_lengths = {3, 5};
  clean.sinks = {{0.5F}, false};
  Random random(3);
  clean.bias = random_bias(random, {2, 1, 5, 7});
  const Upstream upstream = random_upstream(clean);
  const Gradients<float> before = run_backward(table(), clean, upstream);
  Problem poisoned = clean;
  Upstream above = upstream;
  for (std::size_t row = 3; row < 5; ++row) {
    std::fill_n(poisoned.query.begin() + static_cast<long>(row * 3), 3, kNan);
    std::fill_n(poisoned.bias.data.begin() + static_cast<long>(row * 7), 7, kNan);
    std::fill_n(above.d_out.begin() + static_cast<long>(row * 3), 3, kNan);
  }
  EXPECT_TRUE(same_gradient_bits(before, run_backward(table(), poisoned, above)));
  expect_gradients_match(table(), clean, upstream);
}

TEST_P(BackwardMasking, ABiasBehindAMaskIsNotReadAndHasAGradientOfZero) {
  Problem clean = make_problem({.seqlen_q = 33, .seqlen_kv = 120, .head_dim = 5, .num_heads = 2, .num_kv_heads = 1});
  Random random(3);
  clean.bias = random_bias(random, {1, 2, 33, 120});
  clean.mask = random_mask(random, {1, 2, 33, 120}, 0.6);
  const Upstream upstream = random_upstream(clean);
  const Gradients<float> before = run_backward(table(), clean, upstream);
  for (const float garbage : {kNan, kInfinity, -kInfinity}) {
    Problem poisoned = clean;
    for (std::size_t n = 0; n < clean.mask.data.size(); ++n) {
      if (clean.mask.data[n] == 0) poisoned.bias.data[n] = garbage;
    }
    const Gradients<float> after = run_backward(table(), poisoned, upstream);
    EXPECT_TRUE(same_gradient_bits(before, after)) << garbage;
    for (std::size_t n = 0; n < clean.mask.data.size(); ++n) {
      if (clean.mask.data[n] != 0) continue;
      ASSERT_EQ(after.bias[n], 0.0F) << n;
    }
  }
}

}  // namespace
}  // namespace sdpa::testing
