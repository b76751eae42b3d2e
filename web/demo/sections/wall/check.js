// Rows of an attention output, computed again from the definition in float64.

import { uniform } from '../../parts/data.js';

/** Keys between two looks at the clock. */
const chunk = 1024;

/**
 * @typedef {object} Problem one head
 * @property {{ readonly data: Float32Array }} query (tokens, headDim)
 * @property {{ readonly data: Float32Array }} key (tokens, headDim)
 * @property {{ readonly data: Float32Array }} value (tokens, headDim)
 * @property {number} tokens
 * @property {number} headDim
 * @property {boolean} causal query i sees keys 0 … i
 */

/**
 * Distinct rows in ascending order: the first, the last, and others at random.
 * @param {number} tokens
 * @param {number} count
 * @param {number} seed
 * @returns {number[]}
 */
export function sampleRows(tokens, count, seed) {
  const rows = new Set([0, tokens - 1]);
  const next = uniform(seed);
  while (rows.size < Math.min(count, tokens)) rows.add(Math.floor(next() * tokens));
  return [...rows].sort((a, b) => a - b);
}

/**
 * One row of softmax(Q·Kᵀ/√D)·V, every step in float64.
 * @param {Problem} problem
 * @param {number} row
 * @param {import('../../parts/pace.js').Pace} pace
 * @returns {Promise<Float64Array>} (headDim)
 */
export async function referenceRow({ query, key, value, tokens, headDim, causal }, row, pace) {
  const keys = causal ? row + 1 : tokens;
  const weights = new Float64Array(keys);
  const q = query.data.slice(row * headDim, (row + 1) * headDim);
  let max = -Infinity;
  await chunks(keys, pace, (from, to) => {
    const k = key.data;
    for (let j = from; j < to; j++) {
      let dot = 0;
      for (let d = 0, at = j * headDim; d < headDim; d++) dot += q[d] * k[at + d];
      weights[j] = dot / Math.sqrt(headDim);
      if (weights[j] > max) max = weights[j];
    }
  });
  const out = new Float64Array(headDim);
  let sum = 0;
  await chunks(keys, pace, (from, to) => {
    const v = value.data;
    for (let j = from; j < to; j++) {
      const weight = Math.exp(weights[j] - max);
      sum += weight;
      for (let d = 0, at = j * headDim; d < headDim; d++) out[d] += weight * v[at + d];
    }
  });
  return out.map((number) => number / sum);
}

/**
 * The largest absolute difference between rows of `out` and the same rows in float64.
 * @param {Problem} problem
 * @param {Float32Array} out (tokens, headDim)
 * @param {readonly number[]} rows
 * @param {import('../../parts/pace.js').Pace} pace
 * @param {(fraction: number) => void} [onProgress]
 * @returns {Promise<{ maxError: number, row: number }>} NaN where a number of `out` is none; `row` is where it is largest
 */
export async function checkRows(problem, out, rows, pace, onProgress) {
  const { headDim } = problem;
  let maxError = 0;
  let worst = rows[0];
  for (let i = 0; i < rows.length; i++) {
    const expected = await referenceRow(problem, rows[i], pace);
    for (let d = 0; d < headDim; d++) {
      const error = Math.abs(out[rows[i] * headDim + d] - expected[d]);
      // Not `error > maxError`: that is false for NaN.
      if (error <= maxError) continue;
      maxError = error;
      worst = rows[i];
      if (Number.isNaN(error)) return { maxError, row: worst };
    }
    onProgress?.((i + 1) / rows.length);
  }
  return { maxError, row: worst };
}

/**
 * @param {number} count
 * @param {import('../../parts/pace.js').Pace} pace
 * @param {(from: number, to: number) => void} work
 */
async function chunks(count, pace, work) {
  for (let from = 0; from < count; from += chunk) {
    work(from, Math.min(count, from + chunk));
    if (pace.left <= 0) await pace.rest();
  }
}
