// attentionWeights(): checks, and computes each result that is asked for on the caller's thread.

import { settle, settleAll } from '../operand.js';
import { Inputs } from './inputs.js';
import { readWeightsCall } from './read-call.js';
import { countOf, emptyLines, present } from './results.js';

/**
 * @typedef {import('../options.js').AttentionCall} AttentionCall
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('./read-call.js').WeightsCall} WeightsCall
 * @typedef {import('./kinds.js').Request} Request
 * @typedef {import('./kinds.js').Lines} Lines
 * @typedef {import('./results.js').WeightsResult} WeightsResult
 */

/**
 * Options of attentionWeights(): those of attention() that say what the scores are, and what is wanted of the weights.
 * @typedef {object} OwnOptions
 * @property {import('../tensor.js').TensorLike | import('../tensor.js').SdpaTensor} [lse] what attention() with the same options and
 *   `returnLse: true` gave, float32 (B, Hq, L). Where absent it is computed, which takes about as long again and gives the same bits
 * @property {readonly number[] | Int32Array} [heads] query heads, in the order of the results; all of them where absent
 * @property {readonly number[] | Int32Array} [rows] query rows: their weights, (B, heads, rows, S)
 * @property {readonly number[] | Int32Array} [columns] keys: the weights of all rows for them, (B, heads, L, columns)
 * @property {boolean} [columnSums] sum over all rows of the weights of each key, (B, heads, S)
 * @property {number} [topK] k: the largest weights of each row, (B, heads, L, k), the largest first, of equal ones the lower key first:
 *   `values`, and their keys, `indices`; 0 and -1 behind the last key that the row sees
 * @property {boolean} [stats] of each row, (B, heads, L): `entropy` in nats, -Σ P ln P over the keys; `maxWeight`, and its key
 *   `maxIndex`, -1 where the row sees nothing
 * @property {{ readonly rows: number, readonly columns: number, readonly kind?: 'mean' | 'max' }} [pool] a map of rows × columns cells of
 *   nearly equal size, (B, heads, rows, columns): cell r covers the query rows floor(r·L / rows) … floor((r + 1)·L / rows) - 1, and keys
 *   likewise; 'mean' (where absent) over all pairs of the cell, those that take no part being 0, or the largest
 */

/** Options of attentionWeights(). @typedef {import('../options.js').Without<import('../options.js').AttentionOptions, 'out' | 'returnLse' | 'scores' | 'dropout'> & OwnOptions} WeightsOptions */

/**
 * What is there is what was asked for.
 * @template {WeightsOptions} [O={}]
 * @typedef {{ [K in import('./kinds.js').Request['name']]: O extends { [P in K]: {} } ? NonNullable<WeightsResult[K]> : WeightsResult[K] }} WeightsResultOf
 */

/**
 * @param {Runtime} runtime
 * @param {unknown} query
 * @param {unknown} key
 * @param {unknown} options
 * @returns {WeightsResult}
 */
export function attentionWeights(runtime, query, key, options) {
  void runtime.exports; // throws once the instance is disposed of
  const weightsCall = readWeightsCall(runtime, query, key, options);
  const { call, lse, heads, requests } = weightsCall;
  settleAll(runtime, call);
  settle('lse', lse, runtime);
  return present(call, heads, requests, computeLines(runtime, weightsCall));
}

/** Whether there is no pair of a query and a key. @param {AttentionCall} call */
export const seesNothing = ({ batch, seqlenQ, seqlenKv }) => batch * seqlenQ * seqlenKv === 0;

/**
 * Lines of each request of a call that has been checked.
 * @param {Runtime} runtime
 * @param {WeightsCall} weightsCall
 * @returns {Lines[]}
 */
function computeLines(runtime, { call, lse, heads, requests }) {
  const counts = requests.map((request) => countOf(call, heads, request));
  if (seesNothing(call)) return requests.map((request, i) => emptyLines(counts[i], request));
  const inputs = new Inputs(runtime, call, lse);
  try {
    return requests.map((request, i) =>
      counts[i] === 0 ? emptyLines(0, request) : inputs.compute(heads, request, counts[i], false),
    );
  } finally {
    inputs.free();
  }
}
