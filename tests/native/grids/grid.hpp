// A table of settings, run and judged.
//
// Each setting is judged as flash-attention judges its own calls: the largest error against float64 is at most twice
// that of the plain float32 computation of the same rows, plus the absolute term of the table where it has one. Inputs
// of 16 bits are rounded first, for the kernel and for both computations. The errors are those of the first row, the
// last and a dozen or more others of each head. Both are the largest of few draws with long tails: where the rows are
// few, and where the error is too large, the call is repeated with other numbers and judged by the rows of all calls
// together.
//
// All settings of a table that are cheap are run, and of each size that is not, as many as cost the same, drawn at
// random; each with the fastest kernels and in turn with the others, and half of them in float16 or bfloat16 as well.
// That is the whole sweep; without SDPA_GRIDS=full a small sample is run, the same each time. SDPA_GRIDS_CASE=n runs
// setting n alone.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "grids/call.hpp"

namespace sdpa::grids {

// What is allowed beside twice the error of the plain computation.
enum class Absolute {
  kNothing,
  kRounding,  // Errors::rounding
};

struct Errors;

class Grid {
 public:
  explicit Grid(std::string table, Absolute absolute = Absolute::kNothing)
      : table_(std::move(table)), absolute_(absolute) {}

  // Settings of one size come one after the other.
  void add(const Setting& setting) { settings_.push_back(setting); }

  // Runs the settings, prints a line of sums, and fails the test for each setting whose error is too large.
  void run();

 private:
  std::vector<std::size_t> chosen() const;
  std::vector<std::size_t> affordable() const;
  std::vector<std::size_t> sample() const;
  void run_setting(std::size_t index, const Setting& setting);
  double absolute(const Errors& errors) const;
  bool acceptable(const Errors& errors) const;
  void judge(const Setting& setting, const Errors& errors, const std::string& name);

  std::string table_;
  Absolute absolute_;
  std::vector<Setting> settings_;
  std::size_t calls_ = 0;
  std::size_t again_ = 0;  // settings whose first rows were too few to judge them
  std::size_t failures_ = 0;
  double worst_ = 0;  // largest error over that of the plain computation, without a softcap
  double worst_capped_ = 0;
  std::string worst_name_;
};

// Whether SDPA_GRIDS asks for the whole sweep.
bool is_full();

}  // namespace sdpa::grids
