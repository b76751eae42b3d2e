// Weights of any part of the matrix, at any coarseness, from the log-sum-exp of the rows: exp(s - lse) needs no other keys.

import { rowsFrom } from '../../parts/one-head.js';

/**
 * @typedef {import('../../parts/one-head.js').Rows} Rows
 * @typedef {import('../../parts/heat-map-view.js').View} View
 */

/**
 * One head, ready to be looked at.
 * @typedef {object} Prepared
 * @property {Rows} query (L, D)
 * @property {Rows} key (S, D)
 * @property {boolean} causal
 * @property {number} offset key at which query 0 stands
 * @property {{ data: Float32Array, shape: number[] }} lse (L)
 * @property {Float32Array} sums (S): what all queries give to each key
 */

/**
 * @typedef {{ signal?: AbortSignal, onProgress?: (fraction: number) => void }} Course
 */

/**
 * Both passes over the whole matrix that the rest needs.
 * @param {import('sdpa').Sdpa} sdpa
 * @param {{ query: Rows, key: Rows, causal: boolean, offset: number }} head
 * @param {Course} [course]
 * @returns {Promise<Prepared>}
 */
export async function prepare(sdpa, { query, key, causal, offset }, { signal, onProgress } = {}) {
  const positional = causal ? { causal, queryOffset: offset } : {};
  const [keys] = key.shape;
  // Values of one column: what is wanted is the log-sum-exp.
  const value = { data: new /** @type {any} */ (key.data.constructor)(keys), shape: [keys, 1], dtype: key.dtype };
  const half =
    (/** @type {number} */ from) =>
    (/** @type {{ done: number, total: number }} */ { done, total }) =>
      onProgress?.(from + done / total / 2);
  const { lse } = await sdpa.attentionAsync(query, key, value, {
    ...positional,
    returnLse: true,
    signal,
    onProgress: half(0),
  });
  const { columnSums } = await sdpa.attentionWeightsAsync(query, key, {
    ...positional,
    lse,
    columnSums: true,
    signal,
    onProgress: half(0.5),
  });
  return { query, key, causal, offset, lse, sums: columnSums.data };
}

/**
 * @typedef {object} Cells
 * @property {View} region in tokens
 * @property {number} rows of cells
 * @property {number} columns
 * @property {Float32Array} values (rows, columns)
 * @property {Uint8Array | undefined} masked (rows, columns), cells of which no query sees a key
 */

/**
 * First token of a cell, as `pool` of attentionWeights() cuts.
 * @param {number} first token of the region
 * @param {number} tokens of the region
 * @param {number} cells
 * @param {number} cell 0 … cells
 */
export const cellStart = (first, tokens, cells, cell) => first + Math.floor((cell * tokens) / cells);

/**
 * @param {import('sdpa').Sdpa} sdpa
 * @param {Prepared} prepared
 * @param {View} region in tokens
 * @param {{ most: number, kind: 'mean' | 'max' }} pool `most` cells along a side
 * @param {Course} [course]
 * @returns {Promise<Cells>}
 */
export async function weightsOf(sdpa, prepared, region, { most, kind }, { signal, onProgress } = {}) {
  const { query, key, causal, offset, lse } = prepared;
  const [rows, columns] = [Math.min(most, region.rows), Math.min(most, region.columns)];
  const { pool } = await sdpa.attentionWeightsAsync(
    rowsFrom(query, region.row, region.rows),
    rowsFrom(key, region.column, region.columns),
    {
      ...(causal && { causal, queryOffset: offset + region.row - region.column }),
      lse: { data: lse.data.subarray(region.row, region.row + region.rows), shape: [region.rows] },
      pool: { rows, columns, kind },
      signal,
      onProgress: ({ done, total }) => onProgress?.(done / total),
    },
  );
  return {
    region,
    rows,
    columns,
    values: pool.data,
    masked: causal ? unseen(region, rows, columns, offset) : undefined,
  };
}

/**
 * @param {View} region
 * @param {number} rows
 * @param {number} columns
 * @param {number} offset
 */
function unseen(region, rows, columns, offset) {
  const masked = new Uint8Array(rows * columns);
  for (let i = 0; i < rows; i++) {
    const last = cellStart(region.row, region.rows, rows, i + 1) - 1;
    for (let j = 0; j < columns; j++)
      if (cellStart(region.column, region.columns, columns, j) > last + offset) masked[i * columns + j] = 1;
  }
  return masked;
}

/**
 * What keys receive, the mean of those of a cell.
 * @param {Prepared} prepared
 * @param {Cells} cells
 * @returns {{ keys: number[], sums: number[] }} first key of each column of cells
 */
export function sumsOf({ sums }, { region, columns }) {
  const starts = Array.from({ length: columns + 1 }, (_, j) => cellStart(region.column, region.columns, columns, j));
  const keys = starts.slice(0, columns);
  return {
    keys,
    sums: keys.map((from, j) => {
      let sum = 0;
      for (let k = from; k < starts[j + 1]; k++) sum += sums[k];
      return sum / (starts[j + 1] - from);
    }),
  };
}
