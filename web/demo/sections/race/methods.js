// The methods of the race, on one head of causal tokens, each in slices.

import { headDim } from './task.js';

/** Tokens before the own one that the window leaves. */
export const windowLeft = 255;

/** Tokens that a method with a state takes in one call. */
const chunk = 1024;

/**
 * @typedef {{ data: Float32Array, shape: number[] }} Matrix
 * @typedef {{ query: Matrix, key: Matrix, value: Matrix, length: number }} Inputs (length, headDim)
 * @typedef {{ signal?: AbortSignal, onProgress?: (fraction: number) => void, pace: import('../../parts/pace.js').Pace }} Course
 */

/**
 * @typedef {object} Method
 * @property {string} name of its row
 * @property {string} title
 * @property {string} what it is
 * @property {string} needs name of the function of the instance
 * @property {(sdpa: any, inputs: Inputs, course: Course) => Promise<Float32Array>} run gives (length, headDim)
 */

/** @param {any} options @returns {Method['run']} */
const attend =
  (options) =>
  async (sdpa, { query, key, value, length }, { signal, onProgress }) => {
    const { out } = await sdpa.attentionAsync(query, key, value, {
      ...(typeof options === 'function' ? options(sdpa, length) : options),
      signal,
      onProgress: (/** @type {{ done: number, total: number }} */ { done, total }) => onProgress?.(done / total),
    });
    return out.data;
  };

/**
 * A method that hands a state from one piece of the sequence to the next.
 * @param {(sdpa: any, piece: (matrix: Matrix) => Matrix, tokens: number, length: number, all: Record<'query' | 'key' | 'value', Matrix> & { state: any }) => { out: Matrix, state: any }} call
 * @returns {Method['run']}
 */
const recur =
  (call) =>
  async (sdpa, { query, key, value, length }, { onProgress, pace }) => {
    const result = new Float32Array(length * headDim);
    /** @type {any} */
    let state;
    for (let from = 0; from < length; from += chunk) {
      const tokens = Math.min(chunk, length - from);
      const piece = (/** @type {Matrix} */ { data }) => ({
        data: data.subarray(from * headDim, (from + tokens) * headDim),
        shape: [1, tokens, headDim],
      });
      const next = call(sdpa, piece, tokens, length, { query, key, value, state });
      state = next.state;
      result.set(next.out.data, from * headDim);
      onProgress?.((from + tokens) / length);
      if (pace.left <= 5) await pace.rest();
    }
    return result;
  };

/** @type {readonly Method[]} */
export const methods = [
  {
    name: 'exact',
    title: 'Exact',
    what: 'every token before',
    needs: 'attentionAsync',
    run: attend({ causal: true }),
  },
  {
    name: 'window',
    title: 'Window',
    what: `the last ${windowLeft + 1} tokens`,
    needs: 'attentionAsync',
    run: attend({ window: [windowLeft, 0] }),
  },
  {
    name: 'bigbird',
    title: 'Block-sparse',
    what: 'BigBird: blocks of 64, a band of 3, 3 at random, the first and the last',
    needs: 'attentionAsync',
    run: attend((/** @type {any} */ { masks }, /** @type {number} */ length) => ({
      causal: true,
      blockMask: masks.bigbird(length, { seed: 1 }),
    })),
  },
  {
    name: 'linear',
    title: 'Linear',
    what: 'linear attention by elu + 1: a state of 64 × 65 numbers',
    needs: 'linearAttention',
    run: recur((sdpa, piece, _tokens, _length, { query, key, value, state }) =>
      sdpa.linearAttention(piece(query), piece(key), piece(value), { causal: true, state, returnState: true }),
    ),
  },
  {
    name: 'ssd',
    title: 'State space',
    what: "Mamba-2's: half of the first token is left at the end",
    needs: 'ssd',
    run: recur((sdpa, piece, tokens, length, { query, key, value, state }) => {
      const dt = { data: new Float32Array(tokens).fill(Math.LN2 / length), shape: [1, tokens] };
      return sdpa.ssd(piece(value), dt, [-1], piece(key), piece(query), { state, returnState: true });
    }),
  },
];

/** @param {import('sdpa').Sdpa} sdpa @returns {readonly Method[]} those that the library has */
export const methodsOf = (sdpa) =>
  methods.filter(({ needs }) => typeof (/** @type {any} */ (sdpa)[needs]) === 'function');
