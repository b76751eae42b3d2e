// The wasm module's exports: plain functions of numbers. Pointers travel as doubles, so that addresses above 2 GiB do
// not turn negative in JavaScript.
#include <cstdint>
#include <cstdlib>
#include <string>

#include <emscripten/bind.h>

#include "binding/frame.hpp"
#include "binding/gemm_frame.hpp"
#include "binding/linear_frame.hpp"
#include "sdpa/attention.hpp"
#include "sdpa/gemm.hpp"
#include "sdpa/gradients.hpp"
#include "sdpa/linear.hpp"
#include "sdpa/version.hpp"
#include "sdpa/weights.hpp"
#include "sdpa/window.hpp"

namespace {

using sdpa::binding::BackwardCall;
using sdpa::binding::Call;
using sdpa::binding::decode;
using sdpa::binding::decode_backward;
using sdpa::binding::decode_gemm;
using sdpa::binding::decode_linear;
using sdpa::binding::decode_linear_gradients;
using sdpa::binding::decode_weights;
using sdpa::binding::decode_windows;
using sdpa::binding::WeightsCall;

const double* frame_at(double pointer) { return reinterpret_cast<const double*>(static_cast<std::uintptr_t>(pointer)); }

double allocate(double bytes) {
  const auto wanted = static_cast<std::size_t>(bytes);
  void* memory = std::aligned_alloc(sdpa::kWorkspaceAlignment, (wanted + 63) / 64 * 64);
  return static_cast<double>(reinterpret_cast<std::uintptr_t>(memory));
}

void release(double pointer) { std::free(reinterpret_cast<void*>(static_cast<std::uintptr_t>(pointer))); }

/// Bytes, or a status code below 0.
double bytes_or_status(const sdpa::WorkspaceSize& size) {
  return size.status.ok() ? static_cast<double>(size.bytes) : -static_cast<double>(size.status.code());
}

int code_of(sdpa::Status status) { return static_cast<int>(status.code()); }

double attention_workspace_bytes(double frame) {
  const Call call = decode(frame_at(frame));
  return bytes_or_status(sdpa::attention_workspace_bytes(call.tensors, call.options));
}

int attention(double frame) {
  const Call call = decode(frame_at(frame));
  return code_of(sdpa::attention(call.tensors, call.options, call.workspace));
}

double attention_weights_workspace_bytes(double frame) {
  const WeightsCall call = decode_weights(frame_at(frame));
  return bytes_or_status(sdpa::attention_weights_workspace_bytes(call.tensors, call.request, call.options));
}

int attention_weights(double frame) {
  const WeightsCall call = decode_weights(frame_at(frame));
  return code_of(sdpa::attention_weights(call.tensors, call.request, call.options, call.workspace));
}

double attention_backward_workspace_bytes(double frame) {
  const BackwardCall call = decode_backward(frame_at(frame));
  return bytes_or_status(sdpa::attention_backward_workspace_bytes(call.tensors, call.options));
}

int attention_backward(double frame) {
  const BackwardCall call = decode_backward(frame_at(frame));
  return code_of(sdpa::attention_backward(call.tensors, call.options, call.workspace));
}

double window_attention_workspace_bytes(double frame) {
  const Call call = decode(frame_at(frame));
  const sdpa::Windows windows = decode_windows(frame_at(frame));
  return bytes_or_status(sdpa::window_attention_workspace_bytes(call.tensors, windows, call.options));
}

int window_attention(double frame) {
  const Call call = decode(frame_at(frame));
  return code_of(sdpa::window_attention(call.tensors, decode_windows(frame_at(frame)), call.options, call.workspace));
}

/// Rows of the frame's query, to where its out lies; `factors` lie in wasm memory, too.
int normalize_rows(double frame, double factors) {
  const Call call = decode(frame_at(frame));
  return code_of(sdpa::normalize_rows(call.tensors.query, frame_at(factors), call.tensors.out.data_handle()));
}

double gemm_packed_bytes(double inner, double columns) {
  return bytes_or_status(sdpa::gemm_packed_bytes(static_cast<std::size_t>(inner), static_cast<std::size_t>(columns)));
}

int gemm_pack(double frame) {
  const auto [g, to] = decode_gemm(frame_at(frame));
  return code_of(
      sdpa::gemm_pack(g.b, g.inner, g.columns, {reinterpret_cast<float*>(to.data()), to.size() / sizeof(float)}));
}

double gemm_workspace_bytes(double frame) {
  return bytes_or_status(sdpa::gemm_workspace_bytes(decode_gemm(frame_at(frame)).arguments));
}

int gemm(double frame) {
  const auto call = decode_gemm(frame_at(frame));
  return code_of(sdpa::gemm(call.arguments, call.workspace));
}

double linear_attention_workspace_bytes(double frame) {
  const auto call = decode_linear(frame_at(frame));
  return bytes_or_status(sdpa::linear_attention_workspace_bytes(call.tensors, call.options));
}

int linear_attention(double frame) {
  const auto call = decode_linear(frame_at(frame));
  return code_of(sdpa::linear_attention(call.tensors, call.options, call.workspace));
}

double linear_attention_backward_workspace_bytes(double frame) {
  const auto call = decode_linear(frame_at(frame));
  const auto gradients = decode_linear_gradients(frame_at(frame), call.tensors);
  return bytes_or_status(sdpa::linear_attention_backward_workspace_bytes(call.tensors, gradients, call.options));
}

int linear_attention_backward(double frame) {
  const auto call = decode_linear(frame_at(frame));
  const auto gradients = decode_linear_gradients(frame_at(frame), call.tensors);
  return code_of(sdpa::linear_attention_backward(call.tensors, gradients, call.options, call.workspace));
}

std::string version() { return sdpa::kVersion; }

std::string build_name() { return SDPA_BUILD_NAME; }

std::string frame_fields() { return sdpa::binding::kFieldNames; }

std::string status_table() {
  std::string table;
  for (const auto& entry : sdpa::kStatusTable) {
    const int code = static_cast<int>(entry.code);
    if (code > 0) table += ',';
    // Digits by hand: std::to_string would link printf, a third of the module.
    if (code >= 10) table += static_cast<char>('0' + code / 10);
    table += static_cast<char>('0' + code % 10);
    table += ':';
    table += entry.name;
    table += ':';
    table += entry.error;
  }
  return table;
}

}  // namespace

EMSCRIPTEN_BINDINGS(sdpa) {
  emscripten::function("version", &version);
  emscripten::function("buildName", &build_name);
  emscripten::function("frameFields", &frame_fields);
  emscripten::function("statusTable", &status_table);
  emscripten::function("allocate", &allocate);
  emscripten::function("release", &release);
  emscripten::function("attentionWorkspaceBytes", &attention_workspace_bytes);
  emscripten::function("attention", &attention);
  emscripten::function("attentionWeightsWorkspaceBytes", &attention_weights_workspace_bytes);
  emscripten::function("attentionWeights", &attention_weights);
  emscripten::function("attentionBackwardWorkspaceBytes", &attention_backward_workspace_bytes);
  emscripten::function("attentionBackward", &attention_backward);
  emscripten::function("windowAttentionWorkspaceBytes", &window_attention_workspace_bytes);
  emscripten::function("windowAttention", &window_attention);
  emscripten::function("normalizeRows", &normalize_rows);
  emscripten::function("gemmPackedBytes", &gemm_packed_bytes);
  emscripten::function("gemmPack", &gemm_pack);
  emscripten::function("gemmWorkspaceBytes", &gemm_workspace_bytes);
  emscripten::function("gemm", &gemm);
  emscripten::function("linearAttentionWorkspaceBytes", &linear_attention_workspace_bytes);
  emscripten::function("linearAttention", &linear_attention);
  emscripten::function("linearAttentionBackwardWorkspaceBytes", &linear_attention_backward_workspace_bytes);
  emscripten::function("linearAttentionBackward", &linear_attention_backward);
}
