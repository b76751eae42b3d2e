// Results of attentionWeights(): from lines of numbers for each batch entry and head to tensors.

import { outOfMemory } from '../errors.js';
import { product } from '../tensor.js';
import { hasEntropy, hasIndices } from './kinds.js';

/**
 * @typedef {import('../options.js').AttentionCall} AttentionCall
 * @typedef {import('../tensor.js').Tensor} Tensor
 * @typedef {import('./kinds.js').Lines} Lines
 * @typedef {import('./kinds.js').Request} Request
 */

/** A tensor of whole numbers. @typedef {{ data: Int32Array, shape: number[], dtype: 'int32' }} IntTensor */

/**
 * Those that were asked for, in the query's rank: B is missing at rank 3, B and heads at rank 2.
 * @typedef {object} WeightsResult
 * @property {Tensor} [rows] (B, heads, rows, S)
 * @property {Tensor} [columns] (B, heads, L, columns)
 * @property {Tensor} [columnSums] (B, heads, S)
 * @property {{ values: Tensor, indices: IntTensor }} [topK] (B, heads, L, k)
 * @property {{ entropy: Tensor, maxWeight: Tensor, maxIndex: IntTensor }} [stats] (B, heads, L)
 * @property {Tensor} [pool] (B, heads, rows, columns)
 */

/**
 * Elements of a request's lines.
 * @param {AttentionCall} call
 * @param {ArrayLike<number>} heads
 * @param {Request} request
 */
export const countOf = ({ batch }, heads, { name, lines, width }) => product(name, [batch, heads.length, lines, width]);

/**
 * Lines of a call in which there is nothing to see: zeros and no key.
 * @param {number} count
 * @param {Request} request
 * @returns {Lines}
 */
export function emptyLines(count, request) {
  try {
    return {
      values: new Float32Array(count),
      indices: hasIndices(request) ? new Int32Array(count).fill(-1) : null,
      entropy: hasEntropy(request) ? new Float32Array(count) : null,
    };
  } catch (cause) {
    throw outOfMemory(count * 4, 0, `the result '${request.name}' outside wasm memory`, cause);
  }
}

/**
 * @param {AttentionCall} call
 * @param {ArrayLike<number>} heads
 * @param {readonly Request[]} requests
 * @param {readonly Lines[]} lines of each
 * @returns {WeightsResult}
 */
export function present(call, heads, requests, lines) {
  /** @type {WeightsResult} */
  const result = {};
  requests.forEach((request, i) => {
    result[request.name] = /** @type {any} */ (presenters[request.name](call, heads.length, request, lines[i]));
  });
  return result;
}

/** @type {Record<Request['name'], (call: AttentionCall, heads: number, request: Request, lines: Lines) => unknown>} */
const presenters = {
  rows: (call, heads, request, { values }) => {
    const { order, lines, width } = request;
    const given = order ? order.length : lines;
    const all = call.batch * heads;
    const data = order ? reordered(values, all, lines, width, order) : values;
    return floats(data, shapeOf(call, heads, given, width));
  },
  columns: (call, heads, { order, lines, width }, { values }) => {
    const data = order ? reordered(values, call.batch * heads * lines, width, 1, order) : values;
    return floats(data, shapeOf(call, heads, lines, order ? order.length : width));
  },
  columnSums: (call, heads, { width }, { values }) => floats(values, shapeOf(call, heads, width)),
  topK: (call, heads, { lines, width }, { values, indices }) => ({
    values: floats(values, shapeOf(call, heads, lines, width)),
    indices: ints(indices, shapeOf(call, heads, lines, width)),
  }),
  stats: (call, heads, { lines }, { values, indices, entropy }) => ({
    entropy: floats(/** @type {Float32Array} */ (entropy), shapeOf(call, heads, lines)),
    maxWeight: floats(values, shapeOf(call, heads, lines)),
    maxIndex: ints(indices, shapeOf(call, heads, lines)),
  }),
  pool: (call, heads, { lines, width }, { values }) => floats(values, shapeOf(call, heads, lines, width)),
};

/**
 * @param {AttentionCall} call
 * @param {number} heads
 * @param {number[]} rest
 */
const shapeOf = ({ rank, batch }, heads, ...rest) => [batch, heads, ...rest].slice(4 - rank);

/** @param {Float32Array} data @param {number[]} shape @returns {Tensor} */
const floats = (data, shape) => ({ data, shape, dtype: 'float32' });

/** @param {Int32Array | null} data @param {number[]} shape @returns {IntTensor} */
const ints = (data, shape) => ({ data: /** @type {Int32Array} */ (data), shape, dtype: 'int32' });

/**
 * Pieces of `width` numbers in the order that they were asked for.
 * @param {Float32Array} from (groups, pieces, width)
 * @param {number} groups
 * @param {number} pieces
 * @param {number} width
 * @param {Int32Array} order
 */
function reordered(from, groups, pieces, width, order) {
  const to = new Float32Array(product('result', [groups, order.length, width]));
  for (let g = 0; g < groups; g++) {
    for (let i = 0; i < order.length; i++) {
      const at = (g * pieces + order[i]) * width;
      if (width === 1) to[g * order.length + i] = from[at];
      else to.set(from.subarray(at, at + width), (g * order.length + i) * width);
    }
  }
  return to;
}
