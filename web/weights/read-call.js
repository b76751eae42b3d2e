// The arguments of attentionWeights(): those of attention() without values, and what is wanted.

import { rangeError, show, typeError } from '../errors.js';
import { unknownName } from '../named-options.js';
import { readOperand } from '../operand.js';
import { without } from '../option-values.js';
import { optionNames } from '../options.js';
import { readShape, SdpaTensor } from '../tensor.js';
import { lseShape, readCall } from '../validate.js';
import { requestNames } from './kinds.js';
import { readHeads, readRequests } from './request.js';

/**
 * @typedef {import('../options.js').AttentionCall} AttentionCall
 * @typedef {import('../operand.js').Operand} Operand
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('./kinds.js').Request} Request
 */

/**
 * A call for weights, checked. The key stands for the value, which nobody reads.
 * @typedef {{ call: AttentionCall, lse: Operand | null, heads: Int32Array, requests: Request[] }} WeightsCall
 */

const ownNames = ['lse', 'heads', 'rows', 'columns', 'columnSums', 'topK', 'stats', 'pool'];

/** Options of attention() for results that are none here. */
const otherResults = ['out', 'returnLse', 'scores'];

const names = () => [...optionNames.filter((name) => !otherResults.includes(name)), ...ownNames];

/**
 * @param {Runtime} runtime
 * @param {unknown} query
 * @param {any} key
 * @param {unknown} options
 * @returns {WeightsCall}
 */
export function readWeightsCall(runtime, query, key, options) {
  if (Object.prototype.toString.call(options) !== '[object Object]') {
    throw typeError(
      'type',
      `attentionWeights needs options, with one of ${requestNames.join(', ')}, got ${show(options)}`,
    );
  }
  const given = /** @type {any} */ (options);
  const known = names();
  for (const name in given) if (!known.includes(name)) throw unknown(name);
  const own = Object.fromEntries(ownNames.map((name) => [name, given[name]]));
  const forward = without(given, ownNames);
  const once = readOnce(key);
  const call = readCall(runtime, query, once, once, forward);
  if (call.out !== undefined) throw unknown('out');
  if (call.returnLse) throw unknown('returnLse');
  if (call.scores) throw unknown('scores');
  if (call.dropout > 0) {
    throw rangeError('option', `dropout.p is ${call.dropout}, but weights are those before dropout: leave it out`);
  }
  const lse = own.lse === undefined ? null : readLse(runtime, call, own.lse);
  return { call, lse, heads: readHeads(call, own.heads), requests: readRequests(call, own) };
}

/**
 * The key, which is read as the value again, as an object of our own.
 * @param {any} key
 */
function readOnce(key) {
  if (typeof key !== 'object' || key === null || key instanceof SdpaTensor || ArrayBuffer.isView(key)) return key;
  if (Array.isArray(key)) return key;
  const { data } = key;
  return { data, shape: readShape('key', key.shape ?? key.dims), dtype: key.dtype ?? key.type };
}

/**
 * @param {Runtime} runtime
 * @param {AttentionCall} call
 * @param {unknown} tensor
 * @returns {Operand}
 */
function readLse(runtime, call, tensor) {
  const lse = readOperand('lse', tensor, false, runtime);
  if (lse.dtype !== 'float32')
    throw typeError('type', `lse must be float32, as attention() gives it, got ${lse.dtype}`);
  const shape = lseShape(call);
  if (lse.shape.length !== shape.length || lse.shape.some((size, i) => size !== shape[i])) {
    throw rangeError('shape', `lse shape is ${show(lse.shape)} but the call's is ${show(shape)}`);
  }
  return lse;
}

/** @param {string} name */
const unknown = (name) => unknownName('attentionWeights', name, names());
