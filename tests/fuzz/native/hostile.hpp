// Calls that are broken on purpose.
#pragma once

#include "bytes.hpp"
#include "draw.hpp"

namespace sdpa::fuzzing {

// Each breaks one to three things of a call and makes it. It has to be refused, the question as the call, with nothing
// written; or it is a call like others, of memory that is there, and runs without leaving it.
bool survives_faults(Bytes& bytes, const Drawn& drawn);
bool survives_backward_faults(Bytes& bytes, const Drawn& drawn);
bool survives_weights_faults(Bytes& bytes, const Drawn& drawn);

}  // namespace sdpa::fuzzing
