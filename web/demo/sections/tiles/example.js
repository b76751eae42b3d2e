// The small example: its numbers from the library, and what the library makes of them.

import { normal } from '../../parts/data.js';

export const sizes = { queries: 6, keys: 12, headDim: 4, valueDim: 2, rowTile: 3, keyTile: 4 };

/** What may be set as a mask, and its options. */
const maskOptions = {
  none: {},
  'lower-right': { causal: true, align: /** @type {const} */ ('lower-right') },
  'upper-left': { causal: true, align: /** @type {const} */ ('upper-left') },
};

/** @typedef {keyof typeof maskOptions} MaskName */

/**
 * @typedef {object} Example
 * @property {Float32Array} scores (queries, keys), scaled, before any mask
 * @property {Uint8Array} allowed (queries, keys)
 * @property {Float32Array} value (keys, valueDim)
 * @property {Float32Array} out (queries, valueDim), by attention()
 * @property {Float32Array} lse (queries), by attention()
 * @property {Float32Array} weights (queries, keys), by attentionWeights()
 */

/**
 * @param {import('sdpa').Sdpa} sdpa
 * @param {number} seed
 * @param {MaskName} mask
 * @returns {Example}
 */
export function makeExample(sdpa, seed, mask) {
  const { queries, keys, headDim, valueDim } = sizes;
  const next = normal(seed);
  const draw = (/** @type {number} */ rows, /** @type {number} */ columns) => ({
    data: Float32Array.from({ length: rows * columns }, next),
    shape: [rows, columns],
  });
  const [query, key, value] = [draw(queries, headDim), draw(keys, headDim), draw(keys, valueDim)];
  const options = maskOptions[mask];
  const { out, lse, scores } = sdpa.attention(query, key, value, { ...options, returnLse: true, scores: 'scaled' });
  const all = Array.from({ length: queries }, (_, i) => i);
  const { rows } = sdpa.attentionWeights(query, key, { ...options, lse, rows: all });
  const offset = mask === 'upper-left' ? 0 : keys - queries;
  const allowed = Uint8Array.from({ length: queries * keys }, (_, at) =>
    Number(mask === 'none' || (at % keys) - Math.floor(at / keys) <= offset),
  );
  return {
    scores: scores.data,
    allowed,
    value: value.data,
    out: out.data,
    lse: lse.data,
    weights: rows.data,
  };
}

/** @param {number} seed @param {MaskName} mask */
export function codeFor(seed, mask) {
  const options = mask === 'none' ? '' : `causal: true, align: '${mask}', `;
  return `
import { load } from 'sdpa';

const sdpa = await load();
let state = ${seed}; // any numbers will do
const random = (...shape) => ({ data: Float32Array.from({ length: shape[0] * shape[1] }, () => Math.sin(state++)), shape });
const [query, key, value] = [random(6, 4), random(12, 4), random(12, 2)];
const { out, lse } = sdpa.attention(query, key, value, { ${options}returnLse: true });
const { rows } = sdpa.attentionWeights(query, key, { ${options}lse, rows: [0, 1, 2, 3, 4, 5] });
console.log(out.data, rows.data);`;
}
