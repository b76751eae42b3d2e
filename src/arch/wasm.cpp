// simd128, and with -mrelaxed-simd the same with relaxed multiply-add.
#include "kernels/make_table.hpp"

namespace sdpa::arch {

#if defined(__wasm_relaxed_simd__)
const kernels::KernelTable wasm = kernels::make_table<simd::WasmRelaxed>("relaxed");
#else
const kernels::KernelTable wasm = kernels::make_table<simd::WasmSimd>("simd");
#endif

}  // namespace sdpa::arch
