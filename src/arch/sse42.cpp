#include "kernels/make_table.hpp"

namespace sdpa::arch {

const kernels::KernelTable sse42 = kernels::make_table<simd::Sse42>("sse42");

}  // namespace sdpa::arch
