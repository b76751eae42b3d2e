// A program that uses what the build uses (embind, xsimd, relaxed madd): linking it builds Emscripten's system
// libraries, and running it shows that the toolchain makes right code.

#include <emscripten/bind.h>
#include <xsimd/xsimd.hpp>
#ifdef __wasm_relaxed_simd__
#include <wasm_simd128.h>
#endif

namespace {

using Batch = xsimd::batch<float>;

// a * b + c in every lane; 2 * 3 + 10 comes out as 23 or 32 where the compiler confuses the operands.
float madd(float a, float b, float c) {
#ifdef __wasm_relaxed_simd__
  const Batch sum = wasm_f32x4_relaxed_madd(Batch(a), Batch(b), Batch(c));
#else
  const Batch sum = xsimd::fma(Batch(a), Batch(b), Batch(c));
#endif
  return xsimd::reduce_add(sum) / static_cast<float>(Batch::size);
}

}  // namespace

EMSCRIPTEN_BINDINGS(smoke) { emscripten::function("madd", &madd); }
