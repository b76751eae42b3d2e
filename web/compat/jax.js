// Entry `sdpa/jax`: dot_product_attention of jax.nn, by JAX's names and rules, on a loaded instance.
import { rangeError, show, typeError } from '../errors.js';
import { readNamed } from '../named-options.js';
import { finite, flag, whole } from '../option-values.js';
import { arrayKind, readShape } from '../tensor.js';
import { readOperands, resultOf } from './operands.js';

/**
 * @typedef {import('./onnx-inputs.js').FloatInput} FloatInput
 * @typedef {import('./operands.js').TensorArgument} TensorArgument
 * @typedef {import('./operands.js').ResultTensor} ResultTensor
 * @typedef {import('../options.js').AttentionOptions} AttentionOptions
 * @typedef {Int32Array | readonly number[] | { readonly data: Int32Array, readonly shape: ArrayLike<number> }} Lengths one per batch row
 * @typedef {object} JaxOptions B batch, N query heads, T query length, S key length
 * @property {TensorArgument | null} [bias] float, added to the scaled scores, broadcast to (B, N, T, S)
 * @property {import('../tensor.js').MaskLike | import('../tensor.js').SdpaTensor | null} [mask] boolean, true takes part, broadcast to
 *   (B, N, T, S)
 * @property {number | null} [scale] 1/√H where absent
 * @property {boolean} [isCausal] query t sees the keys up to t, also where T ≠ S
 * @property {Lengths | null} [querySeqLengths] (B) queries from there on give zeros
 * @property {Lengths | null} [keyValueSeqLengths] (B) keys from there on do not take part
 * @property {number | readonly [number, number] | null} [localWindowSize] (left, right): query t sees the keys t - left to t + right; one
 *   number stands for both
 * @typedef {object} JaxNN functions of jax.nn
 * @property {(query: TensorArgument, key: TensorArgument, value: TensorArgument, options?: JaxOptions) => ResultTensor} dotProductAttention
 *   query (B, T, N, H), key and value (B, S, K, H) with N a multiple of K, or each without B; of one type. The result has the query's shape
 *   and type, 16-bit ones rounded once. A row that may attend to nothing is zeros; JAX, which masks with a large negative number,
 *   gives the mean of the values there (on its XLA path). Throws TypeErrors and RangeErrors with a `code`
 */

const NAMES = ['bias', 'mask', 'scale', 'isCausal', 'querySeqLengths', 'keyValueSeqLengths', 'localWindowSize'];

/**
 * The functions of jax.nn that compute with the given instance.
 * @param {import('../sdpa.js').Sdpa} sdpa what `load` resolved to
 * @returns {JaxNN}
 */
export function jaxNN(sdpa) {
  return {
    dotProductAttention: (query, key, value, options) => dotProductAttention(sdpa, { query, key, value }, options),
  };
}

/**
 * @param {import('../sdpa.js').Sdpa} sdpa
 * @param {Record<'query' | 'key' | 'value', unknown>} given
 * @param {unknown} options
 * @returns {ResultTensor}
 */
function dotProductAttention(sdpa, given, options) {
  const settings = readNamed('dotProductAttention', options, NAMES);
  for (const name of NAMES) if (settings[name] === null) delete settings[name];
  const { bias, mask, scale, isCausal = false, querySeqLengths, keyValueSeqLengths, localWindowSize } = settings;

  /** @type {AttentionOptions} */
  const attention = { layout: 'blhd', align: 'upper-left', causal: flag('isCausal', isCausal) };
  if (bias !== undefined) attention.bias = bias;
  if (mask !== undefined) attention.mask = mask;
  if (scale !== undefined) attention.scale = finite('scale', scale);
  if (localWindowSize !== undefined) attention.window = readWindow(localWindowSize);
  const queryLengths = readLengths('querySeqLengths', querySeqLengths);
  const kvLengths = readLengths('keyValueSeqLengths', keyValueSeqLengths);

  const operands = readOperands(given);
  const [query, key, value] = operands.map(withBatch);
  checkSizes(query, key, value);
  const [batch, rows] = query.shape;
  if (queryLengths) attention.queryLengths = fitLengths('querySeqLengths', queryLengths, batch, rows);
  if (kvLengths) attention.kvLengths = fitLengths('keyValueSeqLengths', kvLengths, batch, key.shape[1]);
  const { out } = sdpa.attention(query, key, value, attention);
  return resultOf(out.data, operands[0].shape, operands[0]);
}

/**
 * @param {FloatInput} input
 * @returns {{ name: string, data: any, shape: number[], dtype: string }} of four dimensions
 */
function withBatch({ name, data, shape, dtype }) {
  if (shape.length !== 3 && shape.length !== 4) {
    throw rangeError('shape', `${name} must have 3 or 4 dimensions, (T, N, H) or (B, T, N, H), got shape [${shape}]`);
  }
  return { name, data, shape: shape.length === 3 ? [1, ...shape] : shape, dtype };
}

/** @param {...{ name: string, shape: number[] }} tensors query, key and value, of four dimensions */
function checkSizes(...tensors) {
  const [{ shape: q }, { shape: k }, { shape: v }] = tensors;
  const all = tensors.map(({ name, shape }) => `${name} [${shape}]`).join(', ');
  if (v.some((size, i) => size !== k[i])) throw rangeError('shape', `key and value must have the same shape: ${all}`);
  if (q[0] !== k[0]) throw rangeError('shape', `batch is ${q[0]} in query but ${k[0]} in key: ${all}`);
  if (q[3] !== k[3]) throw rangeError('shape', `head size is ${q[3]} in query but ${k[3]} in key: ${all}`);
  if (k[2] === 0 || q[2] % k[2] !== 0) {
    throw rangeError('shape', `query has ${q[2]} heads, which is not a multiple of the ${k[2]} heads of key and value`);
  }
}

/**
 * @param {any} setting
 * @returns {[number, number]}
 */
function readWindow(setting) {
  const both = typeof setting === 'number' ? [setting, setting] : setting;
  if (!Array.isArray(both) || both.length !== 2) {
    throw typeError('type', `localWindowSize must be a number or [left, right], got ${show(setting)}`);
  }
  const [left, right] = both;
  return [whole('localWindowSize', left, 0), whole('localWindowSize', right, 0)];
}

/**
 * @param {string} name
 * @param {any} setting
 * @returns {{ numbers: unknown[], shape: number[] } | undefined} a copy
 */
function readLengths(name, setting) {
  if (setting === undefined) return undefined;
  const bare = arrayKind(setting) !== undefined || Array.isArray(setting);
  if (!bare && typeof setting !== 'object') {
    throw typeError('type', `${name} must be an Int32Array with one number per batch row, got ${show(setting)}`);
  }
  const data = bare ? setting : setting.data;
  const shape = bare ? undefined : readShape(name, setting.shape ?? setting.dims);
  if (arrayKind(data) !== 'Int32Array' && !(bare && Array.isArray(data))) {
    throw typeError('type', `${name} must be an Int32Array with one number per batch row, got ${show(data)}`);
  }
  const numbers = Array.from(data);
  return { numbers, shape: shape ?? [numbers.length] };
}

/**
 * @param {string} name
 * @param {{ numbers: unknown[], shape: number[] }} lengths
 * @param {number} batch
 * @param {number} most
 */
function fitLengths(name, { numbers, shape }, batch, most) {
  if (shape.length !== 1 || shape[0] !== batch || numbers.length !== batch) {
    throw rangeError('shape', `${name} has shape [${shape}] but the batch is ${batch}: it must be [${batch}]`);
  }
  return Int32Array.from(numbers, (number, b) => {
    const length = whole(`${name}[${b}]`, number, 0);
    if (length > most) throw rangeError('option', `${name}[${b}] is ${length} but must be at most ${most}`);
    return length;
  });
}
