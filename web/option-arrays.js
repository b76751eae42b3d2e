// Readers of options that are arrays of numbers or objects of such: copies of what they hold, and their shape as it was given. What
// depends on the tensors' sizes is checked later.

import { isBlockMask } from './masks/block-mask.js';
import { rangeError, show, typeError } from './errors.js';
import { fieldsOf, int32, whole } from './option-values.js';
import { arrayKind, product, readShape } from './tensor.js';

/** @typedef {import('./masks/block-mask.js').BlockMask} BlockMask */

/** A copy of numbers. `shape` has one dimension where an array came without one. @template T @typedef {{ data: T, shape: number[] }} Numbers */

/**
 * Per-head numbers: a Float32Array or number[] of Hq, or a tensor of shape [Hq] or [B, Hq].
 * @param {string} name
 * @param {any} setting
 * @returns {Numbers<Float32Array>}
 */
export function perHead(name, setting) {
  const wanted = 'a Float32Array or number[] with one number per query head, or a tensor { data, shape } of them';
  const bare = Array.isArray(setting) || arrayKind(setting) !== undefined;
  if (!bare && (typeof setting !== 'object' || setting === null)) {
    throw typeError('type', `${name} must be ${wanted}, got ${show(setting)}`);
  }
  const given = bare ? setting : setting.data;
  const shape = bare ? null : readShape(name, setting.shape ?? setting.dims);
  if (arrayKind(given) !== 'Float32Array' && !Array.isArray(given)) {
    throw typeError('type', `${name} must be ${wanted}, got ${show(given)}`);
  }
  const data = Array.isArray(given) ? Float32Array.from(readNumbers(name, given)) : new Float32Array(given);
  return { data, shape: shape ? checked(name, data, shape) : [data.length] };
}

/**
 * Each element read once.
 * @param {string} name
 * @param {readonly unknown[]} given
 */
export function readNumbers(name, given) {
  return Array.from(given, (element, i) => {
    if (typeof element === 'number') return element;
    throw typeError('type', `${name}[${i}] must be a number, got ${show(element)}`);
  });
}

/**
 * @param {string} name
 * @param {ArrayLike<number>} data
 * @param {number[]} shape
 */
function checked(name, data, shape) {
  const count = product(name, shape);
  if (data.length === count) return shape;
  throw rangeError(
    'shape',
    `${name} data has ${data.length} elements but its shape [${shape.join(', ')}] needs ${count}`,
  );
}

/**
 * @param {any} setting
 * @returns {{ query: Numbers<Int32Array>, key: Numbers<Int32Array> }}
 */
export function segmentIds(setting) {
  const [query, key] = fieldsOf('segmentIds', setting, ['query', 'key']);
  return { query: segments('segmentIds.query', query), key: segments('segmentIds.key', key) };
}

/**
 * @param {string} name
 * @param {any} setting
 * @returns {Numbers<Int32Array>}
 */
function segments(name, setting) {
  const bare = arrayKind(setting) !== undefined;
  if (!bare && (typeof setting !== 'object' || setting === null || Array.isArray(setting))) {
    throw typeError('type', `${name} must be an Int32Array or a tensor { data, shape } of one, got ${show(setting)}`);
  }
  const given = bare ? setting : setting.data;
  const shape = bare ? null : readShape(name, setting.shape ?? setting.dims);
  const data = int32(name, given, 'one id per token');
  return { data, shape: shape ? checked(name, data, shape) : [data.length] };
}

/**
 * @param {any} setting
 * @returns {{ query: Int32Array, key: Int32Array }} as many starts of the one as of the other
 */
export function cuSeqlens(setting) {
  const fields = fieldsOf('cuSeqlens', setting, ['query', 'key']);
  const query = starts('cuSeqlens.query', fields[0]);
  const key = starts('cuSeqlens.key', fields[1]);
  if (query.length !== key.length) {
    throw rangeError(
      'shape',
      `cuSeqlens.query has ${query.length} numbers but cuSeqlens.key has ${key.length}: both have one more than there are sequences`,
    );
  }
  // No sequence is one without tokens.
  return query.length > 1 ? { query, key } : { query: Int32Array.of(0, 0), key: Int32Array.of(0, 0) };
}

/**
 * @param {string} name
 * @param {unknown} setting
 */
function starts(name, setting) {
  const numbers = int32(name, setting, 'the start of each sequence and the end of the last');
  if (numbers.length === 0) throw rangeError('shape', `${name} has no number; it begins with 0`);
  if (numbers[0] !== 0) throw rangeError('option', `${name}[0] must be 0, got ${numbers[0]}`);
  for (let s = 1; s < numbers.length; s++) {
    if (numbers[s] < numbers[s - 1]) {
      throw rangeError('option', `${name} must ascend, but [${s}] is ${numbers[s]} after ${numbers[s - 1]}`);
    }
  }
  return numbers;
}

/**
 * @param {unknown} setting
 * @returns {BlockMask}
 */
export function blockMask(setting) {
  if (isBlockMask(setting)) return setting;
  throw typeError('type', `blockMask must be made by sdpa.masks, got ${show(setting)}`);
}

/**
 * @param {any} setting
 * @returns {{ probability: number, seedLow: number, seedHigh: number }}
 */
export function dropout(setting) {
  const [p, seed] = fieldsOf('dropout', setting, ['p', 'seed']);
  if (typeof p !== 'number') throw typeError('type', `dropout.p must be a number, got ${show(p)}`);
  if (!(p >= 0 && p <= 1)) throw rangeError('option', `dropout.p must be between 0 and 1, got ${p}`);
  const bits = whole('dropout.seed', seed, 0);
  return { probability: p, seedLow: bits % 2 ** 32, seedHigh: Math.floor(bits / 2 ** 32) };
}
