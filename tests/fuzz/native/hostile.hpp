// Calls that are broken on purpose.
#pragma once

#include "bytes.hpp"
#include "draw.hpp"

namespace sdpa::fuzzing {

// Breaks one to three things of the call and makes it. It has to be refused, the question as the call, with nothing
// written; or it is a call like others, of memory that is there, and runs without reading past it.
bool survives_faults(Bytes& bytes, const Drawn& drawn);

}  // namespace sdpa::fuzzing
