#include "kernels/make_table.hpp"

namespace sdpa::arch {

const kernels::KernelTable avx512 = kernels::make_table<simd::Avx512>("avx512");

}  // namespace sdpa::arch
