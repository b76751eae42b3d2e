import v8 from 'node:v8';

/** Makes Node 20 accept relaxed SIMD, which it has behind a flag. */
export function allowRelaxedSimd() {
  if (process.versions.node.startsWith('20.')) v8.setFlagsFromString('--experimental-wasm-relaxed-simd');
}
