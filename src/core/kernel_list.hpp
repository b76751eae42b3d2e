// The kernel tables that the build compiled in (SDPA_ARCH_* from CMake), fastest first, each with the question whether
// this processor has its instructions.
#pragma once

#include <array>

#include "kernels/kernel_table.hpp"

namespace sdpa::core {

struct KernelEntry {
  const kernels::KernelTable* table;
  bool (*runs_here)();
};

inline constexpr std::array kKernelList = {
#if defined(SDPA_ARCH_AVX512)
    KernelEntry{&arch::avx512,
                +[] {
                  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512cd") != 0 &&
                         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("fma") != 0;
                }},
#endif
#if defined(SDPA_ARCH_AVX2_FMA)
    KernelEntry{&arch::avx2_fma,
                +[] { return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0; }},
#endif
#if defined(SDPA_ARCH_SSE42)
    KernelEntry{&arch::sse42, +[] { return __builtin_cpu_supports("sse4.2") != 0; }},
#endif
#if defined(SDPA_ARCH_NEON64)
    KernelEntry{&arch::neon64, +[] { return true; }},
#endif
#if defined(SDPA_ARCH_WASM)
    KernelEntry{&arch::wasm, +[] { return true; }},
#endif
#if defined(SDPA_ARCH_SCALAR)
    KernelEntry{&arch::scalar, +[] { return true; }},
#endif
};

}  // namespace sdpa::core
