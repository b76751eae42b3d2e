#include "kernels/make_table.hpp"

namespace sdpa::arch {

const kernels::KernelTable avx2_fma = kernels::make_table<simd::Avx2Fma>("avx2_fma");

}  // namespace sdpa::arch
