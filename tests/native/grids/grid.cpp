#include "grids/grid.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string_view>

#include "grids/errors.hpp"

namespace sdpa::grids {
namespace {

// Multiply-adds of a setting that is run in any case; of dearer ones so many are drawn as cost this each on average.
constexpr double kAffordable = 1e7;
constexpr std::size_t kLeastOfASize = 2;
constexpr std::size_t kSmallTable = 100;  // settings of a table that is run as a whole
// Of the sample: settings, and multiply-adds of one and of all.
constexpr std::size_t kSampleSettings = 80;
constexpr double kSampleOne = 4e7;
constexpr double kSampleAll = 6e8;
// Multiply-adds of the rows that the oracle computes, and the least number of rows all the same.
constexpr double kOracle = 3e6;
constexpr std::size_t kLeastRows = 12;
// Rows of all repeats together, where they do not cost more multiply-adds than that.
constexpr std::size_t kEnoughRows = 100;
constexpr double kRepeats = 1e7;
// Where the error of those is too large: repeats more, at least and in multiply-adds, with so many times the rows, and
// what each repeat costs beside its own.
constexpr std::size_t kLeastMore = 8;
constexpr double kMore = 1e9;
constexpr std::size_t kMoreRows = 6;
constexpr double kOverhead = 2e5;
// Multiply-adds that kernels without vectors are asked for, and those that two kernels are.
constexpr double kScalar = 2e6;
constexpr double kTwoKernels = 5e8;

constexpr double kFactor = 2;

constexpr double kUnitRoundoff = 0x1p-24;
constexpr std::size_t kMostMessages = 8;

bool same_size(const Setting& a, const Setting& b) {
  return a.shape.seqlen_q == b.shape.seqlen_q && a.shape.seqlen_kv == b.shape.seqlen_kv &&
         a.shape.head_dim == b.shape.head_dim && a.shape.head_dim_v == b.shape.head_dim_v;
}

void shuffle(std::vector<std::size_t>& order, Random& random) {
  for (std::size_t n = order.size(); n > 1; --n)
    std::swap(order[n - 1], order[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(n) - 1))]);
}

// The first and the last row, and others at random.
std::vector<std::size_t> pick_rows(const Problem& p, std::uint64_t seed, std::size_t factor) {
  const double row = static_cast<double>(p.batch * p.num_heads * p.seqlen_kv * (p.head_dim + p.head_dim_v));
  const auto affordable = static_cast<std::size_t>(kOracle / std::max(row, 1.0));
  const auto count = std::min(p.seqlen_q, factor * std::max(kLeastRows, affordable));
  std::vector<std::size_t> rows(p.seqlen_q);
  std::iota(rows.begin(), rows.end(), 0);
  if (count == p.seqlen_q) return rows;
  rows.erase(rows.begin());
  rows.pop_back();
  Random random(seed);
  shuffle(rows, random);
  rows.resize(count - 2);
  rows.push_back(0);
  rows.push_back(p.seqlen_q - 1);
  std::sort(rows.begin(), rows.end());
  return rows;
}

// The fastest, and one of the others in turn; of a large call the fastest or the second.
std::vector<const KernelTable*> kernels_for(std::size_t index, double work) {
  const auto tables = core::available_kernels();
  if (tables.size() == 1) return {tables[0]};
  if (work > kTwoKernels) return {tables[index % 2]};
  const bool has_time = work <= kScalar || tables.size() == 2;
  const std::size_t others = tables.size() - (has_time ? 1 : 2);
  return {tables[0], tables[1 + index % others]};
}

std::string describe(const Setting& setting, const Problem& problem) {
  const DType dtype = setting.dtype;
  std::string text = dtype == DType::kFloat32 ? "float32 " : dtype == DType::kFloat16 ? "float16 " : "bfloat16 ";
  text += testing::describe(problem);
  if (setting.page_size > 0) text += " pages:" + std::to_string(setting.page_size);
  return text;
}

// How many times a setting is called, with other numbers each time.
std::size_t repeats_of(const Setting& setting, std::size_t rows) {
  const auto affordable = static_cast<std::size_t>(std::clamp(kRepeats / (1 + work(setting)), 1.0, 100.0));
  return std::min(affordable, (kEnoughRows + rows - 1) / std::max<std::size_t>(rows, 1));
}

}  // namespace

bool is_full() {
  const char* mode = std::getenv("SDPA_GRIDS");
  return mode != nullptr && std::string_view(mode) == "full";
}

std::vector<std::size_t> Grid::affordable() const {
  std::vector<std::size_t> chosen;
  if (settings_.size() <= kSmallTable) {
    chosen.resize(settings_.size());
    std::iota(chosen.begin(), chosen.end(), 0);
    return chosen;
  }
  Random random(settings_.size());
  for (std::size_t begin = 0, end = 0; begin < settings_.size(); begin = end) {
    std::vector<std::size_t> expensive;
    double share = 0;
    for (end = begin; end < settings_.size() && same_size(settings_[begin], settings_[end]); ++end) {
      const double cost = work(settings_[end]);
      if (cost <= kAffordable) {
        chosen.push_back(end);
      } else {
        expensive.push_back(end);
        share += kAffordable / cost;
      }
    }
    shuffle(expensive, random);
    expensive.resize(std::min(expensive.size(), std::max(kLeastOfASize, static_cast<std::size_t>(share))));
    chosen.insert(chosen.end(), expensive.begin(), expensive.end());
  }
  return chosen;
}

std::vector<std::size_t> Grid::sample() const {
  std::vector<std::size_t> order(settings_.size());
  std::iota(order.begin(), order.end(), 0);
  Random random(settings_.size());
  shuffle(order, random);
  std::vector<std::size_t> chosen;
  double all = 0;
  for (const std::size_t index : order) {
    const double cost = work(settings_[index]);
    if (cost > kSampleOne || all + cost > kSampleAll) continue;
    all += cost;
    chosen.push_back(index);
    if (chosen.size() == kSampleSettings) break;
  }
  if (chosen.empty()) chosen.push_back(order[0]);
  return chosen;
}

std::vector<std::size_t> Grid::chosen() const {
  if (const char* one = std::getenv("SDPA_GRIDS_CASE")) {
    const auto index = static_cast<std::size_t>(std::strtoull(one, nullptr, 10));
    return index < settings_.size() ? std::vector<std::size_t>{index} : std::vector<std::size_t>{};
  }
  return is_full() ? affordable() : sample();
}

void Grid::run() {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<std::size_t> indices = chosen();
  for (const std::size_t index : indices) {
    run_setting(index, settings_[index]);
    if (index % 2 == 1 && settings_[index].dtype == DType::kFloat32) {
      Setting stored = settings_[index];
      stored.dtype = index % 4 == 1 ? DType::kFloat16 : DType::kBFloat16;
      run_setting(index, stored);
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf(
      "[   grid   ] %-40s %5zu of %5zu settings %6zu calls %6.1f s  %4zu repeated  worst %4.2f, with a softcap %4.2f  "
      "%s\n",
      table_.c_str(), indices.size(), settings_.size(), calls_, seconds.count(), again_, worst_, worst_capped_,
      worst_name_.c_str());
  EXPECT_GT(calls_, 0U);
  EXPECT_EQ(failures_, 0U) << table_;
}

void Grid::run_setting(std::size_t index, const Setting& setting) {
  const std::vector<const KernelTable*> kernels = kernels_for(index, work(setting));
  std::vector<Errors> errors(kernels.size());
  std::string name;
  const auto too_large = [&] {
    return std::any_of(errors.begin(), errors.end(), [&](const Errors& e) { return !acceptable(e); });
  };
  std::size_t enough = 1;
  std::size_t most = 1;
  for (std::size_t n = 0, next = 1; n < next; ++n) {
    const std::size_t seed = index + 1 + 1'000'000 * n;
    Problem problem = make(setting, seed);
    const Call call(problem, setting);
    const std::vector<std::size_t> picks = pick_rows(problem, seed, n < enough ? 1 : kMoreRows);
    const ChosenRows rows = chosen_rows(problem, picks);
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      errors[k].add(problem, call.run(*kernels[k]), picks, rows);
      ++calls_;
    }
    if (n == 0) {
      enough = repeats_of(setting, problem.batch * problem.num_heads * picks.size());
      most = enough + std::max(kLeastMore, static_cast<std::size_t>(kMore / (kOverhead + 2 * work(setting))));
      name = '#' + std::to_string(index) + ' ' + describe(setting, problem);
      next = enough;
    }
    // Judged a few times only: of many looks one would find the error small by chance.
    if (n + 1 == next && next < most && too_large()) {
      again_ += next == enough ? 1 : 0;
      next = std::min(4 * next, most);
    }
  }
  for (std::size_t k = 0; k < kernels.size(); ++k) judge(setting, errors[k], kernels[k]->name + (' ' + name));
}

double Grid::absolute(const Errors& e) const { return absolute_ == Absolute::kRounding ? e.rounding : 0; }

bool Grid::acceptable(const Errors& e) const {
  return e.out <= kFactor * e.plain_out + absolute(e) &&
         e.lse <= kFactor * e.plain_lse + 4 * kUnitRoundoff * e.largest_lse;
}

void Grid::judge(const Setting& setting, const Errors& e, const std::string& name) {
  const double ratio = e.out <= absolute(e) ? 0 : (e.out - absolute(e)) / e.plain_out;
  double& worst = setting.softcap > 0 ? worst_capped_ : worst_;
  if (ratio > worst) {
    worst = ratio;
    if (worst >= std::max(worst_, worst_capped_)) worst_name_ = name;
  }
  if (acceptable(e) || ++failures_ > kMostMessages) return;
  ADD_FAILURE() << table_ << ' ' << name << "\n  out: error " << e.out << " at " << e.where << ", plain float32 "
                << e.plain_out << "\n  lse: error " << e.lse << ", plain float32 " << e.plain_lse;
}

}  // namespace sdpa::grids
