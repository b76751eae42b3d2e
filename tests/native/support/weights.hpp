// Asking for weights on a kernel table, and comparing with the reference.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/weights.hpp"
#include "sdpa/weights.hpp"
#include "support/kernels.hpp"

namespace sdpa::testing {

using reference::Choice;
using reference::Summary;

// An answer before anything was written to it.
inline constexpr std::int32_t kUnwrittenIndex = -77;

struct Weights {
  Status status;
  std::vector<float> values;
  std::vector<std::int32_t> indices;
  std::vector<float> entropy;
  std::vector<double> sums;
};

struct AskOptions {
  float lse_less = 0;     // taken from that lse
  bool with_lse = true;   // whether the call gets the lse of the forward pass, or computes it
  bool sums = false;      // Summary::kSum in double precision
  bool defaults = false;  // all heads, one cell of rows, a cell for each key, said by empty lists
};

// A choice of each kind whose cells, rows and keys are no multiple of anything.
std::vector<Choice> every_choice(const Problem& problem);
std::string name_of(const Choice& choice);

// The result has a margin that must stay as it is; the workspace is of the exact size and full of NaN.
Weights ask(const KernelTable& table, const Problem& problem, const Choice& choice, const RunOptions& run = {},
            const AskOptions& how = {});

// values and entropy: |error| <= 2 E + 4u max(1, |value|), where E is the largest error of the plain float32
// computation and u = 2^-24. Indices may be those of weights that are as large within that bound.
void expect_weights(const Problem& problem, const Expected& expected, const Choice& choice, const Weights& actual);

}  // namespace sdpa::testing
