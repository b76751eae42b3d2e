// Masks that follow from positions: row i stands at p = i + offset, column j at j.

import { rangeError } from '../errors.js';
import { windowBounds } from '../option-values.js';
import { arrayKind } from '../tensor.js';
import { mostCells, readOffsets, readSize, wholeNumber, wholeNumbers } from './arguments.js';
import { near } from './span-lists.js';
import { fromSpans } from './spans.js';

/**
 * @typedef {import('./block-mask.js').BlockMask} BlockMask
 * @typedef {import('./arguments.js').MaskPosition} MaskPosition
 */

/**
 * @param {string} name
 * @param {unknown} givenRows
 * @param {unknown} givenColumns
 * @param {unknown} position
 * @param {(p: number, b: number, columns: number) => number[]} spansOf the columns of the row at p: from the first, to the one after the
 *   last, and so on, in ascending order
 * @param {number} [batch] batch rows of the mask; those of the offsets where it is 1
 */
function fromPositions(name, givenRows, givenColumns, position, spansOf, batch = 1) {
  const rows = readSize(`${name} rows`, givenRows);
  const columns = readSize(`${name} columns`, givenColumns);
  const offsets = readOffsets(name, rows, columns, position);
  if (batch !== 1 && offsets.length !== 1 && offsets.length !== batch) {
    throw rangeError('shape', `${name} queryOffset has ${offsets.length} numbers but the batch is ${batch}`);
  }
  const sizes = { rows, columns, batch: batch === 1 ? offsets.length : batch, heads: 1 };
  return fromSpans(sizes, (spans, i, b) => {
    const list = spansOf(i + offsets[offsets.length === 1 ? 0 : b], b, columns);
    for (let k = 0; k < list.length; k += 2) spans.add(list[k], list[k + 1]);
  });
}

/**
 * Keys up to the query's own position: j <= p.
 * @param {number} rows query length L
 * @param {number} [columns] key length S; rows where absent
 * @param {MaskPosition} [position] where row 0 stands; required where rows ≠ columns
 * @returns {BlockMask}
 * @throws TypeError or RangeError with a `code`, `align-required` where position is missing
 */
export function causal(rows, columns = rows, position = undefined) {
  return fromPositions('causal', rows, columns, position, (p) => [0, p + 1]);
}

/**
 * Keys near the query: p - left <= j <= p + right. The own position is not counted.
 * @param {number} rows query length L
 * @param {number} columns key length S
 * @param {readonly [number, number]} bounds [left, right], in tokens; Infinity = unlimited
 * @param {MaskPosition} [position] where row 0 stands; required where rows ≠ columns
 * @returns {BlockMask}
 * @throws TypeError or RangeError with a `code`, `align-required` where position is missing
 */
export function window(rows, columns, bounds, position) {
  const [left, right] = windowBounds(bounds);
  return fromPositions('window', rows, columns, position, (p) => [p - left, p + right + 1]);
}

/**
 * Every dilation-th key near the query: j = p + k·dilation with -left <= k <= right. Tiles of 64 x 64 that hold some of them are computed
 * as a whole, so that up to a dilation of 64 it takes as long as the window without gaps from the first to the last of them.
 * @param {number} rows query length L
 * @param {number} columns key length S
 * @param {readonly [number, number]} bounds [left, right], in keys, the own position not counted; Infinity = unlimited
 * @param {number} dilation from one key to the next, in tokens; 1 or more
 * @param {MaskPosition} [position] where row 0 stands; required where rows ≠ columns
 * @returns {BlockMask}
 * @throws TypeError or RangeError with a `code`, `align-required` where position is missing
 */
export function dilated(rows, columns, bounds, dilation, position) {
  const [left, right] = windowBounds(bounds);
  const step = wholeNumber('dilation', dilation, 1, mostCells);
  return fromPositions('dilated', rows, columns, position, (p, _, end) => near(p, left, right, step, end));
}

/**
 * Keys in the query's own block of positions: floor(j / size) = floor(p / size).
 * @param {number} rows query length L
 * @param {number} columns key length S
 * @param {number} size of a block, in tokens; 1 or more
 * @param {MaskPosition} [position] where row 0 stands; required where rows ≠ columns
 * @returns {BlockMask}
 * @throws TypeError or RangeError with a `code`, `align-required` where position is missing
 */
export function chunk(rows, columns, size, position) {
  const c = wholeNumber('chunk size', size, 1, Number.MAX_SAFE_INTEGER);
  return fromPositions('chunk', rows, columns, position, (p) => {
    const block = Math.floor(p / c);
    return [block * c, (block + 1) * c];
  });
}

/**
 * Prefix language model: keys up to the query's own position, and the whole prefix: j <= p or j < length.
 * @param {number} rows query length L
 * @param {number} columns key length S
 * @param {number | Int32Array} length of the prefix, in tokens, or one per batch row, which makes a mask of that batch
 * @param {MaskPosition} [position] where row 0 stands; required where rows ≠ columns
 * @returns {BlockMask}
 * @throws TypeError or RangeError with a `code`, `align-required` where position is missing
 */
export function prefix(rows, columns, length, position) {
  const most = Number.MAX_SAFE_INTEGER;
  const lengths =
    arrayKind(length) === 'Int32Array'
      ? wholeNumbers('prefix length', length, 0, most)
      : [wholeNumber('prefix length', length, 0, most)];
  const span = (/** @type {number} */ p, /** @type {number} */ b) => [
    0,
    Math.max(p + 1, lengths[lengths.length === 1 ? 0 : b]),
  ];
  return fromPositions('prefix', rows, columns, position, span, lengths.length);
}
