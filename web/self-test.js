// A short numeric check of a build in this engine, run once by load(): a build that was miscompiled, by its compiler or
// by the engine's, answers wrongly here and the next one is taken.

import { attention } from './attention.js';
import { loadError } from './errors.js';

// Few, since all of it runs cold: rows for a vector and a rest, keys for tiles of both heights, columns for a block and a rest.
const heads = 1;
const rows = 5;
const keys = 23;
const size = 10;
const offset = keys - rows;

/**
 * Coarse numbers in -1 … 1 without a pattern that a wrong stride would keep.
 * @param {number} count
 * @param {number} seed
 */
function numbers(count, seed) {
  const data = new Float32Array(count);
  let state = seed;
  for (let i = 0; i < count; i++) {
    state = (state * 75 + 74) % 65537;
    data[i] = state / 32768 - 1;
  }
  return data;
}

/**
 * Causal attention of two heads in float64, row by row.
 * @param {Float32Array} query
 * @param {Float32Array} key
 * @param {Float32Array} value
 */
function expected(query, key, value) {
  const out = new Float64Array(heads * rows * size);
  for (let h = 0; h < heads; h++) {
    for (let i = 0; i < rows; i++) {
      const at = (h * rows + i) * size;
      let sum = 0;
      for (let j = 0; j <= i + offset; j++) {
        const from = (h * keys + j) * size;
        let dot = 0;
        for (let d = 0; d < size; d++) dot += query[at + d] * key[from + d];
        const weight = Math.exp(dot / Math.sqrt(size));
        sum += weight;
        for (let d = 0; d < size; d++) out[at + d] += weight * value[from + d];
      }
      for (let d = 0; d < size; d++) out[at + d] /= sum;
    }
  }
  return out;
}

/**
 * @param {import('./runtime.js').Runtime} runtime
 * @throws Error `load-failed` where the build computes wrongly
 */
export function selfTest(runtime) {
  const query = { data: numbers(heads * rows * size, 1), shape: [heads, rows, size] };
  const key = { data: numbers(heads * keys * size, 2), shape: [heads, keys, size] };
  const value = { data: numbers(heads * keys * size, 3), shape: [heads, keys, size] };
  const { out } = attention(runtime, query, key, value, { causal: true, align: 'lower-right' });
  const want = expected(query.data, key.data, value.data);
  let worst = 0;
  for (let i = 0; i < want.length; i++) {
    const error = Math.abs(out.data[i] - want[i]);
    // Written so that NaN counts as worst.
    if (!(error <= worst)) worst = error;
  }
  if (!(worst <= 1e-5)) {
    throw loadError(
      'load-failed',
      `the ${runtime.variant} build computes wrongly in this engine: error ${worst} in its self-test`,
    );
  }
}
