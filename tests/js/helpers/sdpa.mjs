// The build that a test run is about: SDPA_VARIANT = simd (default), relaxed or scalar.

import assert from 'node:assert/strict';
import v8 from 'node:v8';
import { load } from 'sdpa';

/** @type {'simd' | 'relaxed' | 'scalar'} */
export const VARIANT = /** @type {any} */ (process.env.SDPA_VARIANT || 'simd');

/** Makes this process accept relaxed SIMD: Node 20 has it behind a flag, which children of `node --test` do not inherit. */
export function allowRelaxedSimd() {
  if (process.versions.node.startsWith('20.')) v8.setFlagsFromString('--experimental-wasm-relaxed-simd');
}

/** Arguments for a child process that is to run the same build. */
export const childFlags =
  VARIANT === 'relaxed' && process.versions.node.startsWith('20.') ? ['--experimental-wasm-relaxed-simd'] : [];

/**
 * Loads the build that SDPA_VARIANT names, and makes sure that it is that one.
 * @param {import('sdpa').LoadOptions} [options]
 */
export async function loadVariant(options) {
  if (VARIANT === 'relaxed') allowRelaxedSimd();
  const sdpa = await load({ ...options, variant: VARIANT });
  assert.equal(sdpa.variant, VARIANT);
  return sdpa;
}

/**
 * A tensor in wasm memory with the same elements.
 * @param {any} sdpa
 * @param {{ data: any, shape: readonly number[] }} tensor
 * @param {string} [dtype] float32 where absent
 */
export function resident(sdpa, tensor, dtype) {
  const copy = sdpa.tensor(tensor.shape, dtype);
  copy.data.set(tensor.data);
  return copy;
}
