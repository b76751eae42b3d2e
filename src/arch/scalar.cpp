#include "kernels/make_table.hpp"

namespace sdpa::arch {

const kernels::KernelTable scalar = kernels::make_table<simd::Scalar>("scalar");

}  // namespace sdpa::arch
