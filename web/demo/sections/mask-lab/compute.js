// One run of the lab: output and weights by the kernels, and what the mask leaves of the work.

import { masks } from 'sdpa';
import { normal } from '../../parts/data.js';
import { nextTask } from '../../parts/pace.js';
import { lengths } from './settings.js';

export const headDim = 32;
export const valueDim = 16;

/** Side of a tile of a block mask. */
export const tileSide = 64;

const most = lengths[lengths.length - 1];

/** @param {number} seed @param {number} width */
function draw(seed, width) {
  const next = normal(seed);
  return Float32Array.from({ length: most * width }, next);
}

/** @type {Record<'query' | 'key' | 'value', Float32Array> | undefined} */
let drawn;

/**
 * The first rows of tensors that are drawn once.
 * @param {number} rows
 * @param {number} columns
 */
export function inputs(rows, columns) {
  drawn ??= { query: draw(1, headDim), key: draw(2, headDim), value: draw(3, valueDim) };
  return {
    query: { data: drawn.query.subarray(0, rows * headDim), shape: [rows, headDim] },
    key: { data: drawn.key.subarray(0, columns * headDim), shape: [columns, headDim] },
    value: { data: drawn.value.subarray(0, columns * valueDim), shape: [columns, valueDim] },
  };
}

/**
 * @typedef {object} Outcome
 * @property {Float32Array} weights (rows, columns)
 * @property {Float32Array} out (rows, valueDim)
 * @property {Uint8Array} masked (rows, columns), 1 = hidden
 * @property {number[]} emptyRows that see nothing
 * @property {number} wrong cells that are hidden but have a weight, and numbers of empty rows that are not zero: none
 * @property {ReturnType<typeof masks.stats>} stats
 * @property {{ rows: number, columns: number, shares: Float32Array }} tiles the share of each that is allowed
 */

/**
 * @param {import('sdpa').Sdpa} sdpa
 * @param {import('./rules.js').Rules} rules
 * @returns {Promise<Outcome>} in several short tasks
 */
export async function compute(sdpa, { rows, columns, options, mask }) {
  const { query, key, value } = inputs(rows, columns);
  const { out, lse } = sdpa.attention(query, key, value, { ...options, returnLse: true });
  const all = Array.from({ length: rows }, (_, i) => i);
  const wanted = /** @type {import('sdpa').WeightsOptions & { rows: number[] }} */ ({ ...options, lse, rows: all });
  const weights = sdpa.attentionWeights(query, key, wanted).rows.data;
  await nextTask();
  const allowed = masks.toDense(mask).data;
  const masked = new Uint8Array(allowed.length);
  const emptyRows = [];
  let wrong = 0;
  for (let i = 0, at = 0; i < rows; i++) {
    let isEmpty = true;
    for (let j = 0; j < columns; j++, at++) {
      masked[at] = 1 - allowed[at];
      if (allowed[at]) isEmpty = false;
      else if (weights[at] !== 0) wrong++;
    }
    if (!isEmpty) continue;
    emptyRows.push(i);
    for (let d = 0; d < valueDim; d++) if (out.data[i * valueDim + d] !== 0) wrong++;
  }
  await nextTask();
  return {
    weights,
    out: out.data,
    masked,
    emptyRows,
    wrong,
    stats: masks.stats(mask),
    tiles: shareOfTiles(allowed, rows, columns),
  };
}

/**
 * @param {Uint8Array} allowed
 * @param {number} rows
 * @param {number} columns
 */
function shareOfTiles(allowed, rows, columns) {
  const [down, across] = [Math.ceil(rows / tileSide), Math.ceil(columns / tileSide)];
  const shares = new Float32Array(down * across);
  for (let i = 0; i < rows; i++) {
    const first = Math.floor(i / tileSide) * across;
    for (let j = 0; j < columns; j++) shares[first + Math.floor(j / tileSide)] += allowed[i * columns + j];
  }
  for (let k = 0; k < shares.length; k++) {
    const height = Math.min(tileSide, rows - Math.floor(k / across) * tileSide);
    shares[k] /= height * Math.min(tileSide, columns - (k % across) * tileSide);
  }
  return { rows: down, columns: across, shares };
}
