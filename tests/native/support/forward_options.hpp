// Every option of the forward call as data, so that tests can try each alone and each with each other.
#pragma once

#include <cstdint>
#include <span>

#include "support/arguments.hpp"
#include "support/problems.hpp"

namespace sdpa::testing {

struct ForwardOption {
  const char* name;
  // Values of one and the same thing exclude each other: options that have this in common. nullptr: nothing does.
  const char* exclusive = nullptr;
  // Whether the option changes the output, so that one can see when it is ignored.
  bool changes_out = true;
  // What it asks of the sizes, before there is a problem.
  void (*shape)(Shape&) = nullptr;
  // Sets it on the problem, which may have any other option by then. An alignment is chosen only where none is.
  void (*apply)(Problem&, RunOptions&, Random&) = nullptr;
};

// In the order in which they are applied: storage types last, for they round what is there.
std::span<const ForwardOption> forward_options();

// A problem of more than a tile in each direction, nothing a multiple of anything, with those of the options (by their
// index) whose bit of `applied` is set. The data and the sizes are those of all of the options in `shaped`.
struct OptionedProblem {
  Problem problem;
  RunOptions run;
};
OptionedProblem with_options(std::size_t seqlen_q, std::uint64_t applied, std::uint64_t shaped);

}  // namespace sdpa::testing
