/** What caches hold of their tokens, and attention over it in float64. */

import { TOLERANCE } from './cases.mjs';
import { fillNormal } from './normals.mjs';
import { toHalf, toInt8Row } from './rounding.mjs';
import { largestDifference } from './statistics.mjs';

/** @typedef {import('./cases.mjs').Case} Case */
/** @typedef {'float32' | 'float16' | 'int8'} DType */

/** Where in the pool of numbers keys and values begin: each token has numKvHeads · headDim of them, head by head. */
const KEY_START = 20011;
export const VALUE_START = 40009;

/** Of the query's own numbers: so many keys repeat the pool that one of them would be a query out of it, and take all the weight. */
export const QUERY_SEED = 3;

/**
 * Tokens to append, some at once.
 * @param {Case} c
 * @param {number} first
 * @param {number} count
 * @param {number} chunk at most at once
 * @returns {Generator<Record<'key' | 'value', { data: Float32Array, shape: number[] }>>} (1, chunk, numKvHeads, headDim)
 */
export function* tokenChunks({ numKvHeads, headDim }, first, count, chunk) {
  const elements = numKvHeads * headDim;
  for (let at = first; at < first + count; at += chunk) {
    const shape = [1, Math.min(chunk, first + count - at), numKvHeads, headDim];
    /** @param {number} start */
    const tokens = (start) => {
      const data = new Float32Array(shape[1] * elements);
      fillNormal(data, start + at * elements);
      return { data, shape };
    };
    yield { key: tokens(KEY_START), value: tokens(VALUE_START) };
  }
}

/**
 * @param {DType} dtype
 * @param {Float32Array} row of one token and head
 * @returns {ArrayLike<number>} what a cache holds of it
 */
function stored(dtype, row) {
  if (dtype === 'int8') return toInt8Row(row);
  return dtype === 'float16' ? row.map(toHalf) : row;
}

/** Results of one query over a case's tokens. */
export class StoredTokens {
  #case;
  #query;
  /** By type and first token. @type {Map<string, { head: number, want: Float64Array }[]>} */
  #results = new Map();

  /** @param {Case} c with one query row a head @param {Float32Array} query */
  constructor(c, query) {
    this.#case = c;
    this.#query = query;
  }

  /**
   * Compares the rows of the first, the middle and the last head with float64 over what the cache holds.
   * @param {DType} dtype
   * @param {number} first of the tokens, as many as the case has keys
   * @param {Float32Array} out
   * @returns {number} largest absolute error
   * @throws Error where it is above the tolerance
   */
  check(dtype, first, out) {
    const { nickname, headDim } = this.#case;
    const rows = this.#rows(dtype, first);
    const errors = rows.map(({ head, want }) =>
      largestDifference(out.subarray(head * headDim, (head + 1) * headDim), want),
    );
    const worst = Math.max(...errors);
    if (worst <= TOLERANCE) return worst;
    throw new Error(`the error of ${nickname} over a cache of ${dtype} is ${worst}, allowed are ${TOLERANCE}`);
  }

  /** @param {DType} dtype @param {number} first */
  #rows(dtype, first) {
    const { numHeads } = this.#case;
    const name = `${dtype} ${first}`;
    const found =
      this.#results.get(name) ??
      [0, numHeads >> 1, numHeads - 1].map((head) => ({ head, want: this.#row(dtype, first, head) }));
    this.#results.set(name, found);
    return found;
  }

  /** @param {DType} dtype @param {number} first @param {number} head */
  #row(dtype, first, head) {
    const { numHeads, numKvHeads, seqlenKv, headDim } = this.#case;
    const kvHead = Math.floor((head * numKvHeads) / numHeads);
    const row = new Float32Array(headDim);
    /** @param {number} start @param {number} j */
    const token = (start, j) => {
      fillNormal(row, start + ((first + j) * numKvHeads + kvHead) * headDim);
      return stored(dtype, row);
    };
    const scores = new Float64Array(seqlenKv);
    for (let j = 0; j < seqlenKv; j++) {
      const key = token(KEY_START, j);
      for (let d = 0; d < headDim; d++) scores[j] += this.#query[head * headDim + d] * key[d];
      scores[j] /= Math.sqrt(headDim);
    }
    const top = scores.reduce((most, s) => Math.max(most, s), -Infinity);
    const weights = scores.map((s) => Math.exp(s - top));
    const sum = weights.reduce((total, w) => total + w, 0);
    const out = new Float64Array(headDim);
    for (let j = 0; j < seqlenKv; j++) {
      const value = token(VALUE_START, j);
      for (let d = 0; d < headDim; d++) out[d] += (weights[j] / sum) * value[d];
    }
    return out;
  }
}
