// Every option with every other one, against the reference, on every kernel table, for prefill, a few rows and one row.
//
// The pairs are generated from the list of options; the few that exclude each other are values of the same thing.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/forward_options.hpp"
#include "support/kernels.hpp"
#include "support/sanitizer.hpp"

namespace sdpa::testing {
namespace {

constexpr std::size_t kPrefillRows = 61;

std::uint64_t bit(std::size_t option) { return std::uint64_t{1} << option; }

bool exclude_each_other(const ForwardOption& a, const ForwardOption& b) {
  return a.exclusive != nullptr && b.exclusive == a.exclusive;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t n = 0; n < a.size(); ++n) largest = std::max(largest, std::fabs(double{a[n]} - double{b[n]}));
  return largest;
}

// One option with itself (that is, alone) and with each that follows it in the list.
class AttentionPairs : public ::testing::TestWithParam<std::size_t> {
 protected:
  std::size_t option() const { return GetParam(); }
  template <class Visit>
  void for_each_partner(Visit visit) const {
    const auto options = forward_options();
    for (std::size_t other = option(); other < options.size(); ++other) {
      if (other != option() && exclude_each_other(options[option()], options[other])) continue;
      SCOPED_TRACE(options[option()].name + std::string(" with ") + options[other].name);
      visit(other);
    }
  }
};
std::string option_name(const ::testing::TestParamInfo<std::size_t>& info) {
  return forward_options()[info.param].name;
}

INSTANTIATE_TEST_SUITE_P(, AttentionPairs, ::testing::Range(std::size_t{0}, forward_options().size()), option_name);

TEST_P(AttentionPairs, MatchTheReference) {
  for_each_partner([&](std::size_t other) {
    for (const std::size_t rows : {kPrefillRows, std::size_t{3}, std::size_t{1}}) {
      const std::uint64_t both = bit(option()) | bit(other);
      const auto [problem, options] = with_options(rows, both, both);
      const Expected truth = expected(problem);
      for (const KernelTable* table : every_kernel()) {
        SCOPED_TRACE(table->name);
        expect_close(problem, truth, run(*table, problem, options), options.scores_stage);
      }
    }
  });
}

TEST_P(AttentionPairs, NoOptionIsIgnoredBesideAnother) {
  for_each_partner([&](std::size_t other) {
    // What a sanitizer looks for it finds in the other test of the pairs.
    if (kSanitized && other != option()) return;
    const KernelTable& table = *every_kernel().front();
    const std::uint64_t both = bit(option()) | bit(other);
    const auto with = with_options(kPrefillRows, both, both);
    const std::vector<float> out = run(table, with.problem, with.run).out;
    for (const std::size_t left_out : {option(), other}) {
      if (!forward_options()[left_out].changes_out) continue;
      const auto without = with_options(kPrefillRows, both & ~bit(left_out), both);
      EXPECT_GT(largest_difference(run(table, without.problem, without.run).out, out), 1e-3)
          << forward_options()[left_out].name << " changes nothing";
    }
  });
}

TEST(AttentionPairsList, NamesEachOptionOnceAndExcludesValuesOfTheSameThingAlone) {
  const auto options = forward_options();
  std::size_t pairs = 0;
  for (std::size_t a = 0; a < options.size(); ++a) {
    for (std::size_t b = a + 1; b < options.size(); ++b) {
      EXPECT_STRNE(options[a].name, options[b].name);
      pairs += exclude_each_other(options[a], options[b]) ? 0 : 1;
    }
  }
  // All but 3 pairs of alignments, 6 of stages, 1 of storage types.
  EXPECT_EQ(pairs, options.size() * (options.size() - 1) / 2 - 10);
}

}  // namespace
}  // namespace sdpa::testing
