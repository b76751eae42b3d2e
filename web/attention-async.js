// attentionAsync(): checks and copies everything when it is called, and leaves the rest to the pool.

import { show, typeError } from './errors.js';
import { settleAll } from './operand.js';
import { without } from './option-values.js';
import { emptyResult, readOut } from './output.js';
import { pooledJob } from './pool/attention-job.js';
import { rowsOf } from './pool/job.js';
import { runJobs } from './pool/run-jobs.js';
import { product } from './tensor.js';
import { outShape, readCall } from './validate.js';

/**
 * What is used of an AbortSignal.
 * @typedef {object} AbortSignalLike
 * @property {boolean} aborted
 * @property {any} [reason]
 * @property {(type: 'abort', listener: () => void) => void} addEventListener hears when it is aborted
 * @property {(type: 'abort', listener: () => void) => void} removeEventListener hears no more
 */

/**
 * Options of attentionAsync() besides those of attention().
 * @typedef {object} AsyncOptions
 * @property {AbortSignalLike} [signal] ends the call; it then rejects with `signal.reason`
 * @property {(progress: import('./pool/job.js').Progress) => void} [onProgress] hears of the query rows (B·Hq·L) that are done, of
 *   all: `done` grows to `total`. An error that it throws ends the call
 */

/** Options of attentionAsync(). @typedef {import('./options.js').AttentionOptions & AsyncOptions} AttentionAsyncOptions */

/**
 * @param {import('./runtime.js').Runtime} runtime
 * @param {import('./pool/pool.js').Pool} pool
 * @param {object} owner the instance
 * @param {unknown} query
 * @param {unknown} key
 * @param {unknown} value
 * @param {unknown} options
 * @returns {Promise<{ out: any, lse?: import('./tensor.js').Tensor, scores?: import('./tensor.js').Tensor }>}
 */
export async function attentionAsync(runtime, pool, owner, query, key, value, options) {
  void runtime.exports; // throws once the instance is disposed of
  const { signal, onProgress, rest } = readAsyncOptions(options);
  const call = readCall(runtime, query, key, value, rest);
  const shape = outShape(call);
  const count = product('out', shape);
  const out = readOut(runtime, call, shape, count);
  settleAll(runtime, call);
  if (signal?.aborted) throw signal.reason;
  if (count === 0 || call.seqlenKv === 0) {
    const empty = emptyResult(runtime, call, shape, count, out);
    onProgress?.({ done: rowsOf(call), total: rowsOf(call) });
    return empty;
  }
  const job = pooledJob(runtime, call, { shape, out, onProgress, owner, ...pool.cut });
  const [result] = await runJobs(pool, owner, signal, [job]);
  return result;
}

/**
 * @param {unknown} options
 * @returns {{ signal?: AbortSignalLike, onProgress?: AsyncOptions['onProgress'], rest: unknown }} `rest`: the options without the two
 */
export function readAsyncOptions(options) {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) return { rest: options };
  const { signal, onProgress } = /** @type {any} */ (options);
  const rest = without(options, ['signal', 'onProgress']);
  if (signal !== undefined && (typeof signal?.aborted !== 'boolean' || typeof signal.addEventListener !== 'function')) {
    throw typeError('type', `signal must be an AbortSignal, got ${show(signal)}`);
  }
  if (onProgress !== undefined && typeof onProgress !== 'function') {
    throw typeError('type', `onProgress must be a function, got ${show(onProgress)}`);
  }
  return { signal, onProgress, rest };
}
