#include "kernels/make_table.hpp"

namespace sdpa::arch {

const kernels::KernelTable neon64 = kernels::make_table<simd::Neon64>("neon64");

}  // namespace sdpa::arch
