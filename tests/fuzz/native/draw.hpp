// A call drawn from a fuzzer's bytes.
#pragma once

#include "bytes.hpp"
#include "core/dispatch.hpp"
#include "support/arguments.hpp"
#include "support/problems.hpp"

namespace sdpa::fuzzing {

using testing::Problem;
using testing::RunOptions;

struct Drawn {
  Problem problem;
  RunOptions run;
  const kernels::KernelTable* table;
  // Some numbers are huge, infinite, NaN or subnormal: the oracle then says where results are finite, no more.
  bool wild = false;
};

// Any sizes, from 0 on, and any mix of options that are valid together.
Drawn draw(Bytes& bytes);

// Ends the process with that line where the fuzzer sees it, if GoogleTest has noted a failure or `passed` is false.
void require(bool passed, const Problem& problem, const char* what);

}  // namespace sdpa::fuzzing
