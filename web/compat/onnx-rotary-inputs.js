// What the rotary operators are given: tables, positions, attributes and sizes, checked, with errors that say the formal names.
import { rangeError } from '../errors.js';
import { readInteger, required } from './onnx-inputs.js';
import { toFloat32 } from './onnx-layout.js';

/** @typedef {import('./onnx-inputs.js').FloatInput} FloatInput */

/**
 * Rows of a float32 array: element (b, h, i, d) lies at start + b*batchStride + h*headStride + i*rowStride + d.
 * @typedef {object} Rows
 * @property {number} batch
 * @property {number} heads
 * @property {number} length
 * @property {number} [start] 0 where absent
 * @property {number} batchStride
 * @property {number} headStride
 * @property {number} rowStride
 */

/**
 * Cosines and sines, (rows, pairs).
 * @typedef {object} Tables
 * @property {Float32Array} cos
 * @property {Float32Array} sin
 * @property {number} rows
 * @property {number} pairs
 */

/**
 * A new array of an input's values.
 * @param {FloatInput} input
 * @returns {Float32Array}
 */
export function widen({ data, dtype }) {
  return dtype === 'float32' ? new Float32Array(data) : toFloat32({ data, dtype });
}

/**
 * cos_cache and sin_cache, which must have the same shape, of the given rank and with `pairs` columns.
 * @param {Record<string, any>} inputs
 * @param {number} rank
 * @returns {Tables & { shape: number[] }}
 */
export function readTables(inputs, rank) {
  const cos = required(inputs, 'cos_cache');
  const sin = required(inputs, 'sin_cache');
  if (cos.shape.length !== rank) {
    throw rangeError('shape', `cos_cache has shape [${cos.shape}]; it must have ${rank} dimensions`);
  }
  if (sin.shape.length !== rank || sin.shape.some((size, axis) => size !== cos.shape[axis])) {
    throw rangeError('shape', `sin_cache has shape [${sin.shape}] but cos_cache has shape [${cos.shape}]`);
  }
  const { shape } = cos;
  const pairs = shape[rank - 1];
  const rows = shape.slice(0, -1).reduce((a, n) => a * n, 1);
  return { cos: widen(cos), sin: widen(sin), rows, pairs, shape };
}

/** @param {Record<string, any>} attributes @param {string} name */
export function readFlag(attributes, name) {
  return readInteger(attributes, name, 0, (flag) => flag === 0 || flag === 1, '0 or 1') === 1;
}

/** @param {Record<string, any>} attributes */
export function readAttributes(attributes) {
  const heads = readInteger(attributes, 'num_heads', 0, (count) => count >= 0, 'at least 0');
  const rotaryDim = readInteger(
    attributes,
    'rotary_embedding_dim',
    0,
    (size) => size >= 0 && size % 2 === 0,
    'an even number, at least 0',
  );
  return { interleaved: readFlag(attributes, 'interleaved'), heads: heads ?? 0, rotaryDim: rotaryDim ?? 0 };
}

/**
 * @typedef {Rows & { size: number }} Sizes with D
 * @param {FloatInput} input
 * @param {number} heads attribute; 0 = not given
 * @param {number | undefined} tableSize head size that the tables speak for, where a 3-D input may do without the number of heads
 * @returns {Sizes}
 */
export function readSizes({ name, shape }, heads, tableSize) {
  if (shape.length !== 3 && shape.length !== 4) {
    throw rangeError('shape', `${name} has shape [${shape}]; it must be 3-D or 4-D`);
  }
  if (shape.length === 4) {
    const [batch, count, length, size] = shape;
    if (heads !== 0 && heads !== count) {
      throw rangeError('shape', `num_heads is ${heads} but ${name} has shape [${shape}], with ${count} heads`);
    }
    const headStride = length * size;
    return { batch, heads: count, length, size, batchStride: count * headStride, headStride, rowStride: size };
  }
  const [batch, length, width] = shape;
  if (heads === 0 && !tableSize) {
    throw rangeError('option', `num_heads is required: ${name} is 3-D, with shape [${shape}]`);
  }
  const count = heads || width / /** @type {number} */ (tableSize);
  if (!Number.isInteger(count) || width % count !== 0) {
    const whole = heads ? `num_heads, ${heads}` : `the head size ${tableSize}, twice the width of cos_cache`;
    throw rangeError(
      'shape',
      `${name} has shape [${shape}]: its last dimension ${width} is not a multiple of ${whole}`,
    );
  }
  const size = width / count;
  return { batch, heads: count, length, size, batchStride: length * width, headStride: size, rowStride: width };
}

/**
 * @param {Tables & { shape: number[] }} tables
 * @param {number} rotaryDim
 * @param {number} size of a head
 */
export function checkWidth({ pairs, shape }, rotaryDim, size) {
  if (rotaryDim > size) {
    throw rangeError('option', `rotary_embedding_dim is ${rotaryDim} but the head size is ${size}`);
  }
  if (2 * pairs !== rotaryDim) {
    const of = rotaryDim === size ? 'head size' : 'rotary_embedding_dim';
    throw rangeError(
      'shape',
      `cos_cache has shape [${shape}]: its last dimension must be half of the ${of}, which is ${rotaryDim}`,
    );
  }
}

/**
 * @typedef {{ shape: number[], values: number[] }} Ids
 * @param {Ids} ids
 * @param {Sizes} sizes
 * @param {number} rows of the tables
 * @returns {number[]} each token's row
 */
export function readPositions(ids, { batch, length }, rows) {
  const { shape } = ids;
  if (shape.length !== 2 || shape[0] !== batch || shape[1] !== length) {
    throw rangeError('shape', `position_ids has shape [${shape}]; it must be (B, L) = [${batch},${length}]`);
  }
  return withinTables(ids, rows);
}

/**
 * @param {Ids} ids one number: the row of each sequence's first token
 * @param {Sizes} sizes
 * @param {number} rows of the tables
 * @returns {number[]} each token's row
 */
export function offsetPositions(ids, { batch, length }, rows) {
  const [offset] = withinTables(ids, rows);
  if (offset + length > rows) {
    throw rangeError(
      'option',
      `position_ids is ${offset}: the last of ${length} tokens would take row ${offset + length - 1} of cos_cache, which has ${rows}`,
    );
  }
  return Array.from({ length: batch * length }, (_, token) => offset + (token % length));
}

/** @param {Ids} ids @param {number} rows */
function withinTables({ values }, rows) {
  const wrong = values.findIndex((position) => position < 0 || position >= rows);
  if (wrong < 0) return values;
  const most = rows === 0 ? ', and cos_cache has no row' : ` to ${rows - 1}, the last row of cos_cache`;
  throw rangeError('option', `position_ids[${wrong}] is ${values[wrong]}; it must be from 0${most}`);
}
