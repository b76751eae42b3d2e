// append(): tokens at the end of each batch row. Read, checked and converted first, then room is made, then written: what fails before the
// writing leaves the cache as it was.

import { rangeError, show, typeError } from '../errors.js';
import { layoutCodes } from '../frame.js';
import { readNamed } from '../named-options.js';
import { oneOf } from '../option-values.js';
import { readOperand, settleAll } from '../operand.js';
import { arrayKind, arrayLength } from '../tensor.js';
import { stage } from './stage.js';

/**
 * @typedef {import('../operand.js').Operand} Operand
 * @typedef {import('./rows.js').Rows} Rows
 * @typedef {import('./cache-options.js').CacheSpec} CacheSpec
 */

/**
 * Options of append().
 * @typedef {object} AppendOptions
 * @property {Int32Array | readonly number[]} [lengths] (batch) how many of the n tokens each batch row takes; the others are not read
 * @property {'bhld' | 'blhd'} [layout] order of the dimensions of key and value; (batch, heads, tokens, size) where absent
 */

/**
 * What append() has been given, checked against the sizes of the cache.
 * @typedef {object} Tokens
 * @property {Operand} keys (batch, heads, tokens, headDim), or with heads inside tokens
 * @property {Operand} values
 * @property {number} tokens
 * @property {boolean} blhd
 * @property {Int32Array} added how many of them each batch row takes
 */

/**
 * @param {Rows} rows
 * @param {unknown} key
 * @param {unknown} value
 * @param {unknown} options
 * @param {() => void} checkLive throws where the caller's getters have disposed of the cache meanwhile
 */
export function append(rows, key, value, options, checkLive) {
  const given = readTokens(rows.runtime, rows.spec, key, value, options, checkLive);
  if (given.added.some((count) => count > 0)) beginAppend(rows, given).settle();
}

/**
 * @param {import('../runtime.js').Runtime} runtime
 * @param {CacheSpec} spec
 * @param {unknown} key
 * @param {unknown} value
 * @param {unknown} options
 * @param {() => void} checkLive as for append()
 * @returns {Tokens}
 */
export function readTokens(runtime, spec, key, value, options, checkLive) {
  const { lengths, layout = 'bhld' } = readNamed('append', options, ['lengths', 'layout']);
  const blhd = oneOf('layout', layout, layoutCodes) === layoutCodes.blhd;
  const keys = readOperand('key', key, false, runtime);
  const values = readOperand('value', value, false, runtime);
  const counts = lengths === undefined ? null : readWhole('lengths', lengths);
  settleAll(runtime, /** @type {any} */ ({ query: null, key: keys, value: values, mask: null, bias: null }));
  checkLive();

  const tokens = tokensOf('key', keys, spec, spec.headDim, blhd);
  const valueTokens = tokensOf('value', values, spec, spec.headDimV, blhd);
  if (values.shape.length !== keys.shape.length) {
    throw rangeError('shape', `value has ${values.shape.length} dimensions but key has ${keys.shape.length}`);
  }
  if (valueTokens !== tokens) throw rangeError('shape', `value has ${valueTokens} tokens but key has ${tokens}`);
  const added = counts ? checkCounts(counts, spec.batch, tokens) : new Int32Array(spec.batch).fill(tokens);
  return { keys, values, tokens, blhd, added };
}

/**
 * Takes memory for the tokens, in which settle() then writes them.
 * @param {Rows} rows
 * @param {Tokens} given
 * @returns {import('./rows.js').Step}
 * @throws RangeError `capacity`, `out-of-memory` or `option`, with nothing changed
 */
export function beginAppend(rows, { keys, values, tokens, blhd, added }) {
  const { runtime, spec, lengths: starts } = rows;
  const stagedKeys = stage(runtime, 'key', keys, spec, tokens, blhd, added, starts);
  const stagedValues = stage(runtime, 'value', values, spec, tokens, blhd, added, starts);
  const room = rows.prepare(added);
  const settle = () => {
    const { storage } = rows;
    for (let b = 0; b < spec.batch; b++) {
      for (const run of rows.runs(b, starts[b], added[b])) {
        storage.write(storage.key, stagedKeys, b, run);
        storage.write(storage.value, stagedValues, b, run);
      }
    }
    rows.commit(added);
    room.settle();
  };
  return { settle, undo: room.undo };
}

/**
 * @param {'key' | 'value'} name
 * @param {Operand} operand
 * @param {CacheSpec} spec
 * @param {number} dim
 * @param {boolean} blhd
 * @returns {number} how many tokens it has
 */
function tokensOf(name, { shape }, { batch, numKvHeads }, dim, blhd) {
  const rank = shape.length;
  if (rank < 2 || rank > 4) {
    throw rangeError('shape', `${name} must have 2, 3 or 4 dimensions, got ${rank}: ${show(shape)}`);
  }
  const inBatch = rank === 4 ? shape[0] : 1;
  const heads = rank === 2 ? 1 : shape[blhd ? rank - 2 : rank - 3];
  const size = shape[rank - 1];
  const order = blhd ? 'batch, tokens, heads, size' : 'batch, heads, tokens, size';
  if (inBatch !== batch) throw differs(name, 'batch', inBatch, batch, shape, order);
  if (heads !== numKvHeads) throw differs(name, 'number of heads', heads, numKvHeads, shape, order);
  if (size !== dim) throw differs(name, 'head size', size, dim, shape, order);
  return shape[blhd && rank > 2 ? rank - 3 : rank - 2];
}

/**
 * @param {string} name
 * @param {string} what
 * @param {number} got
 * @param {number} want
 * @param {number[]} shape
 * @param {string} order of the dimensions
 */
function differs(name, what, got, want, shape, order) {
  return rangeError(
    'shape',
    `${name} ${what} is ${got} but the cache's is ${want} (${name} is ${show(shape)}: ${order})`,
  );
}

/**
 * @param {Int32Array} counts
 * @param {number} batch
 * @param {number} tokens
 */
function checkCounts(counts, batch, tokens) {
  if (counts.length !== batch) {
    throw rangeError('shape', `lengths has ${counts.length} numbers but the batch is ${batch}`);
  }
  for (const [b, count] of counts.entries()) {
    if (count < 0 || count > tokens) {
      throw rangeError('option', `lengths[${b}] is ${count} but must be between 0 and the ${tokens} tokens of key`);
    }
  }
  return counts;
}

/**
 * Whole numbers of the caller's, read once.
 * @param {string} name
 * @param {unknown} setting
 * @returns {Int32Array}
 */
export function readWhole(name, setting) {
  if (arrayKind(setting) === 'Int32Array') {
    return Int32Array.from({ length: arrayLength(setting) }, (_, i) => /** @type {Int32Array} */ (setting)[i]);
  }
  if (!Array.isArray(setting))
    throw typeError('type', `${name} must be an Int32Array or an array of numbers, got ${show(setting)}`);
  return Int32Array.from(setting, (number, i) => {
    if (typeof number !== 'number') throw typeError('type', `${name}[${i}] must be a number, got ${show(number)}`);
    if (!Number.isInteger(number) || (number | 0) !== number) {
      throw rangeError('option', `${name}[${i}] must be a whole number, got ${number}`);
    }
    return number;
  });
}
