// Running problems on each kernel table of this machine, and comparing with the reference.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/dispatch.hpp"
#include "reference/attention.hpp"
#include "support/arguments.hpp"

namespace sdpa::kernels {

// How GoogleTest names a table in its messages, in place of an address.
void PrintTo(const KernelTable* table, std::ostream* stream);

}  // namespace sdpa::kernels

namespace sdpa::testing {

using kernels::KernelTable;

struct Actual {
  Status status;
  std::vector<float> out;     // (B, Hq, L, Dv)
  std::vector<float> lse;     // (B, Hq, L)
  std::vector<float> scores;  // (B, Hq, L, S), empty where no stage was asked for
};

// Runs the problem. The workspace has exactly the bytes that the library asked for and is full of NaN before the call.
// Fails the test where the status is not kOk or something outside the outputs was written.
Actual run(const KernelTable& table, const Problem& problem, const RunOptions& options = {});

// Status of the call alone, whatever it is. On an error it fails the test if anything was written.
Status status_of(const KernelTable& table, const Arguments& arguments);

struct Expected {
  reference::Result<double> exact;
  reference::Result<float> plain;  // what plain float32 arithmetic gives: the measure for the error
};

Expected expected(const Problem& problem);

// Fails where an output differs from the reference by more than the error bound.
//
// out: |error| <= 2 E + 4u sum_j w_j |v_j|, and <= 2e-6 on unit normal data (over 1 - p under dropout), where E is the
// largest error of the plain float32 computation of the same problem and u = 2^-24. The second term is what weights of
// relative error 4u give; it matters for rows of one or two keys, where the plain computation happens to be exact.
//
// lse and scores: 2 E + 4u max(1, |value|).
//
// Rows of which nothing is left have to be exactly 0, NaN and infinities to match exactly.
void expect_close(const Problem& problem, const Expected& expected, const Actual& actual, ScoresStage stage);

// run() and expect_close() together.
void expect_matches_reference(const KernelTable& table, const Problem& problem, const RunOptions& options = {});

// Bit for bit equality, NaN included.
bool same_bits(const std::vector<float>& a, const std::vector<float>& b);

// A test that runs once for each kernel table.
class KernelTest : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& table() const { return *GetParam(); }
  Actual run(const Problem& problem, const RunOptions& options = {}) const {
    return testing::run(table(), problem, options);
  }
  void expect_matches_reference(const Problem& problem, const RunOptions& options = {}) const {
    testing::expect_matches_reference(table(), problem, options);
  }
};

std::vector<const KernelTable*> every_kernel();
std::string kernel_name(const ::testing::TestParamInfo<const KernelTable*>& info);

}  // namespace sdpa::testing
