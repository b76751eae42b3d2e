// Where rope() finds rows in its tensor, and at which positions they stand.

import { rangeError, show, typeError } from './errors.js';
import { rowsOf } from './row-shape.js';
import { arrayKind, product, readShape } from './tensor.js';

/**
 * Element (b, h, i, d) lies at b*batchStride + h*headStride + i*rowStride + d.
 * @typedef {{ batch: number, heads: number, length: number, headDim: number, batchStride: number, headStride: number, rowStride: number }} Sizes
 */

/**
 * @param {readonly number[]} shape of rank 2 (L, D), 3 (H, L, D) or 4 (B, H, L, D)
 * @param {boolean} blhd whether L stands before H
 * @returns {Sizes}
 */
export function readSizes(shape, blhd) {
  const rank = shape.length;
  if (rank < 2 || rank > 4) {
    throw rangeError('shape', `x must have 2, 3 or 4 dimensions, got ${rank}: ${show(shape)}`);
  }
  const headDim = shape[rank - 1];
  if (headDim === 0) throw rangeError('shape', `the head size of x must be 1 or more, got shape ${show(shape)}`);
  const swapped = blhd && rank > 2;
  const { batch, heads, length } = rowsOf(shape, blhd);
  return {
    batch,
    heads,
    length,
    headDim,
    batchStride: heads * length * headDim,
    headStride: swapped ? headDim : length * headDim,
    rowStride: swapped ? heads * headDim : headDim,
  };
}

/**
 * Positions of the tokens. After fitPlaces(), at(b, i) is that of token i in batch row b, whichever b where they are not perBatch.
 * @typedef {object} Places
 * @property {(b: number, i: number) => number} at
 * @property {boolean} perBatch
 * @property {Int32Array | null} numbers
 * @property {number[] | null} shape of the numbers, where they came with one
 * @property {'positions' | 'offset'} name
 */

/**
 * @param {any} positions
 * @param {any} offset
 * @returns {Places} with copies of what the caller's arrays hold
 */
export function readPlaces(positions, offset) {
  /** @type {Places} */
  const places = { at: (_b, i) => i, perBatch: false, numbers: null, shape: null, name: 'positions' };
  if (positions !== undefined && offset !== undefined) {
    throw rangeError('option', 'positions and offset both say where the tokens stand: give one of them');
  }
  if (positions !== undefined) {
    const bare = arrayKind(positions) !== undefined;
    const wanted = 'an Int32Array, or a tensor { data, shape } of one,';
    if (!bare && (typeof positions !== 'object' || positions === null || Array.isArray(positions))) {
      throw typeError('type', `positions must be ${wanted} with one number per token, got ${show(positions)}`);
    }
    const data = bare ? positions : positions.data;
    places.shape = bare ? null : readShape('positions', positions.shape ?? positions.dims);
    if (arrayKind(data) !== 'Int32Array') {
      throw typeError('type', `positions must be ${wanted} with one number per token, got ${show(data)}`);
    }
    places.numbers = new Int32Array(data);
  } else if (arrayKind(offset) !== undefined) {
    if (arrayKind(offset) !== 'Int32Array') {
      throw typeError('type', `offset must be a number or an Int32Array, got ${show(offset)}`);
    }
    places.numbers = new Int32Array(offset);
    places.name = 'offset';
  } else if (offset !== undefined) {
    if (typeof offset !== 'number') {
      throw typeError('type', `offset must be a number or an Int32Array, got ${show(offset)}`);
    }
    if (!Number.isSafeInteger(offset)) throw rangeError('option', `offset must be a whole number, got ${offset}`);
    places.at = (_b, i) => offset + i;
  }
  return places;
}

/**
 * @param {Places} places
 * @param {Sizes} sizes that they must fit
 */
export function fitPlaces(places, { batch, length }) {
  const { numbers, shape, name } = places;
  if (!numbers) return;
  if (name === 'offset') {
    if (numbers.length !== batch) {
      throw rangeError('shape', `offset has ${numbers.length} numbers but the batch is ${batch}`);
    }
    places.perBatch = true;
    places.at = (b, i) => numbers[b] + i;
    return;
  }
  if (shape && product('positions', shape) !== numbers.length) {
    throw rangeError('shape', `positions has ${numbers.length} numbers but its shape is ${show(shape)}`);
  }
  const rows = shape ? (shape.length === 2 ? shape[0] : 1) : numbers.length === length ? 1 : batch;
  const fits = shape ? shape.length === 1 || shape.length === 2 : true;
  if (!fits || (rows !== 1 && rows !== batch) || numbers.length !== rows * length) {
    const got = shape ? `shape ${show(shape)}` : `${numbers.length} numbers`;
    throw rangeError('shape', `positions has ${got}, but must be (L) = [${length}] or (B, L) = [${batch}, ${length}]`);
  }
  places.perBatch = rows > 1;
  places.at = rows > 1 ? (b, i) => numbers[b * length + i] : (_b, i) => numbers[i];
}
