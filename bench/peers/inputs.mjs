/** What all contestants are given, and the check of what they answer. Runs in Node and in the browser. */

import { randomSource, referenceAttention } from '../../tests/js/helpers/reference.mjs';

/** @typedef {import('../js/cases.mjs').Case} Case */

/** @typedef {{ query: Float32Array, key: Float32Array, value: Float32Array }} Inputs (B, H, L, D), (B, Hkv, S, D) twice */

/** So many rows of each result are compared with float64. */
const CHECKED_ROWS = 32;

/** @param {Case} c @returns {Inputs} unit normal numbers, the same each time */
export function inputsOf({ batch, numHeads, numKvHeads, seqlenQ, seqlenKv, headDim }) {
  const { tensor } = randomSource(20);
  return {
    query: tensor(batch, numHeads, seqlenQ, headDim).data,
    key: tensor(batch, numKvHeads, seqlenKv, headDim).data,
    value: tensor(batch, numKvHeads, seqlenKv, headDim).data,
  };
}

/**
 * @param {Case} c
 * @param {Inputs} inputs
 * @param {ArrayLike<number>} out (B, H, L, D)
 * @returns {number} largest absolute error of rows spread over the whole, the first and the last among them; NaN where any
 *   number of the result is not finite
 * @throws {Error} where the result has another size
 */
export function largestErrorOf(c, { query, key, value }, out) {
  const { numHeads, numKvHeads, seqlenQ, seqlenKv, headDim, option } = c;
  if (out.length !== query.length) throw new Error(`the result has ${out.length} numbers, not ${query.length}`);
  for (let n = 0; n < out.length; n++) if (!Number.isFinite(out[n])) return NaN;
  let worst = 0;
  for (const row of spread(out.length / headDim, CHECKED_ROWS)) {
    const head = Math.floor(row / seqlenQ);
    const kvHead = Math.floor(head / numHeads) * numKvHeads + Math.floor(((head % numHeads) * numKvHeads) / numHeads);
    /** @param {Float32Array} data @param {number} n @param {number} rows */
    const block = (data, n, rows) => ({
      data: data.subarray(n * rows * headDim, (n + 1) * rows * headDim),
      shape: [rows, headDim],
    });
    // Keys that a causal row does not see are left out here, so that the reference is told of no mask.
    const seen = option === 'causal' ? (row % seqlenQ) + 1 + seqlenKv - seqlenQ : seqlenKv;
    /** @param {Float32Array} data */
    const visible = (data) => {
      const whole = block(data, kvHead, seqlenKv);
      return { data: whole.data.subarray(0, seen * headDim), shape: [seen, headDim] };
    };
    const want = referenceAttention(block(query, row, 1), visible(key), visible(value)).out;
    want.forEach((number, d) => (worst = Math.max(worst, Math.abs(out[row * headDim + d] - number))));
  }
  return worst;
}

/**
 * @param {number} total
 * @param {number} count
 * @returns {number[]} indices below `total`, evenly spread from 0 to the last, each once
 */
export function spread(total, count) {
  if (total <= count) return Array.from({ length: total }, (_, n) => n);
  return Array.from({ length: count }, (_, n) => Math.round((n * (total - 1)) / (count - 1)));
}

/**
 * (B, H, L, D) to (B, L, H, D); with the two sizes exchanged also the way back.
 * @param {Float32Array} data
 * @param {number} batch
 * @param {number} heads
 * @param {number} rows
 * @param {number} headDim
 */
export function swapHeadsAndRows(data, batch, heads, rows, headDim) {
  const swapped = new Float32Array(data.length);
  for (let b = 0; b < batch; b++) {
    for (let h = 0; h < heads; h++) {
      for (let i = 0; i < rows; i++) {
        const from = ((b * heads + h) * rows + i) * headDim;
        swapped.set(data.subarray(from, from + headDim), ((b * rows + i) * heads + h) * headDim);
      }
    }
  }
  return swapped;
}

/**
 * Keys or values with a head for each of the query's, as libraries without grouped heads need them.
 * @param {Case} c
 * @param {Float32Array} data (B, Hkv, S, D)
 */
export function repeatHeads({ batch, numHeads, numKvHeads, seqlenKv, headDim }, data) {
  if (numHeads === numKvHeads) return data;
  const length = seqlenKv * headDim;
  const repeated = new Float32Array(batch * numHeads * length);
  for (let head = 0; head < batch * numHeads; head++) {
    // Batches need no care: both counts of heads are the same in each.
    const from = Math.floor((head * numKvHeads) / numHeads) * length;
    repeated.set(data.subarray(from, from + length), head * length);
  }
  return repeated;
}

/**
 * What is added to the scores of a causal call by libraries that take a mask.
 * @param {Case} c
 * @param {number} excluded
 * @returns {Float32Array} (L, S)
 */
export function causalBias({ seqlenQ, seqlenKv }, excluded) {
  const bias = new Float32Array(seqlenQ * seqlenKv);
  for (let i = 0; i < seqlenQ; i++) bias.fill(excluded, i * seqlenKv + i + 1 + seqlenKv - seqlenQ, (i + 1) * seqlenKv);
  return bias;
}
