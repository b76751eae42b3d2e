// Online softmax (Milakov and Gimelshein 2018), tile by tile as FlashAttention (Dao et al. 2022) does it, one thing at a time.

import { sizes } from './example.js';

/**
 * What is kept of a query: this, and nothing that grows with the number of keys.
 * @typedef {object} Row
 * @property {number} max of the scores so far; −∞ before the first
 * @property {number} factor e^(max before − max now), by which sum and out were multiplied last; 1 where nothing was
 * @property {number} sum of e^(score − max) so far
 * @property {number[]} out sum of e^(score − max) · value so far; in the end divided by sum
 */

/**
 * @typedef {object} Step
 * @property {'start' | 'scores' | 'max' | 'sum' | 'skip' | 'end'} kind
 * @property {number} tile being worked on, in their order; −1 at the start, the number of tiles in the end
 * @property {readonly Row[]} rows afterwards, one for each query
 * @property {Float64Array} cells (queries, keys): what the tile's cells hold, a score or e^(score − max); NaN elsewhere
 */

/**
 * Tiles in the order in which they are visited: all keys for some queries, then the next queries.
 * @typedef {{ firstRow: number, firstKey: number, isSkipped: boolean }} Tile
 */

/**
 * @param {import('./example.js').Example} example
 * @returns {Tile[]}
 */
export function tilesOf({ allowed }) {
  const { queries, keys, rowTile, keyTile } = sizes;
  const tiles = [];
  for (let firstRow = 0; firstRow < queries; firstRow += rowTile) {
    for (let firstKey = 0; firstKey < keys; firstKey += keyTile) {
      let isSkipped = true;
      for (let i = firstRow; i < firstRow + rowTile; i++)
        for (let j = firstKey; j < firstKey + keyTile; j++) if (allowed[i * keys + j]) isSkipped = false;
      tiles.push({ firstRow, firstKey, isSkipped });
    }
  }
  return tiles;
}

/**
 * @param {import('./example.js').Example} example
 * @returns {Step[]}
 */
export function makeSteps(example) {
  const { queries, keys, valueDim, rowTile, keyTile } = sizes;
  const { scores, allowed, value } = example;
  /** @type {Row[]} */
  let rows = Array.from({ length: queries }, () => ({
    max: -Infinity,
    factor: 1,
    sum: 0,
    out: Array(valueDim).fill(0),
  }));
  const nothing = new Float64Array(queries * keys).fill(NaN);
  /** @type {Step[]} */
  const steps = [{ kind: 'start', tile: -1, rows, cells: nothing }];
  const tiles = tilesOf(example);
  tiles.forEach(({ firstRow, firstKey, isSkipped }, tile) => {
    if (isSkipped) {
      steps.push({ kind: 'skip', tile, rows, cells: nothing });
      return;
    }
    /** @param {(i: number, j: number) => number} number */
    const fill = (number) => {
      const cells = nothing.slice();
      for (let i = firstRow; i < firstRow + rowTile; i++)
        for (let j = firstKey; j < firstKey + keyTile; j++)
          if (allowed[i * keys + j]) cells[i * keys + j] = number(i, j);
      return cells;
    };
    const inTile = (/** @type {number} */ i) => i >= firstRow && i < firstRow + rowTile;
    const tileScores = fill((i, j) => scores[i * keys + j]);
    steps.push({ kind: 'scores', tile, rows, cells: tileScores });

    rows = rows.map((row, i) => {
      if (!inTile(i)) return row;
      const seen = Array.from(tileScores.subarray(i * keys, (i + 1) * keys)).filter((score) => !Number.isNaN(score));
      const max = Math.max(row.max, ...seen);
      // Where nothing was seen yet there is nothing to rescale.
      const factor = row.max === -Infinity ? 1 : Math.exp(row.max - max);
      return { max, factor, sum: row.sum * factor, out: row.out.map((number) => number * factor) };
    });
    steps.push({ kind: 'max', tile, rows, cells: tileScores });

    const maxima = rows.map(({ max }) => max);
    const powers = fill((i, j) => Math.exp(scores[i * keys + j] - maxima[i]));
    rows = rows.map((row, i) => {
      if (!inTile(i)) return row;
      const next = { ...row, out: [...row.out] };
      for (let j = firstKey; j < firstKey + keyTile; j++) {
        const power = powers[i * keys + j];
        if (Number.isNaN(power)) continue;
        next.sum += power;
        for (let d = 0; d < valueDim; d++) next.out[d] += power * value[j * valueDim + d];
      }
      return next;
    });
    steps.push({ kind: 'sum', tile, rows, cells: powers });
  });
  rows = rows.map((row) => ({ ...row, out: row.out.map((number) => (row.sum === 0 ? 0 : number / row.sum)) }));
  steps.push({ kind: 'end', tile: tiles.length, rows, cells: nothing });
  return steps;
}

/** Most steps that an example has: the start, three for each tile, the end. */
export const mostSteps = 2 + 3 * (sizes.queries / sizes.rowTile) * (sizes.keys / sizes.keyTile);
