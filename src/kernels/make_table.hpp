// The kernel table of one instruction set. Included by arch/*.cpp alone.
#pragma once

#include "kernels/attention_backward.hpp"
#include "kernels/attention_tiled.hpp"
#include "kernels/attention_weights.hpp"
#include "kernels/gemm.hpp"
#include "kernels/kernel_table.hpp"
#include "kernels/linear_backward.hpp"
#include "kernels/linear_forward.hpp"
#include "kernels/normalize.hpp"
#include "kernels/peak.hpp"

namespace sdpa::kernels {

#if defined(__wasm__)
template <class Arch>
inline constexpr const Probes* kProbes = nullptr;
#else
template <class Arch>
inline constexpr Probes kProbesOf{&madd_probe<Arch>, &exp_probe<Arch>, &tanh_probe<Arch>, &peak_flops<Arch>};
template <class Arch>
inline constexpr const Probes* kProbes = &kProbesOf<Arch>;
#endif

template <class Arch>
constexpr KernelTable make_table(const char* name) {
  return {name,
          simd::kWidth<Arch>,
          Arch::kFused,
          TileSize<Arch>::kBr,
          kBc,
          &AttentionWorkspace<Arch>::floats,
          &attention_block<Arch>,
          &BackwardWorkspace<Arch>::floats,
          &backward_begin<Arch>,
          &backward_block<Arch>,
          &backward_end<Arch>,
          &weights_block<Arch>,
          kGemmInner,
          &GemmWorkspace<Arch>::floats,
          &gemm<Arch>,
          &gemm_pack<Arch>,
          kLinearChunk,
          &LinearWorkspace<Arch>::floats,
          &linear_head<Arch>,
          &LinearBackwardWorkspace<Arch>::floats,
          &linear_backward_head<Arch>,
          &normalize_rows<Arch>,
          &read_element,
          kProbes<Arch>};
}

}  // namespace sdpa::kernels
