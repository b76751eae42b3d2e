// attentionBackwardAsync(): checks and copies everything when it is called, and leaves the rest to the pool.

import { readAsyncOptions } from '../attention-async.js';
import { rowsOf } from '../pool/job.js';
import { runJobs } from '../pool/run-jobs.js';
import { computeGradients } from './compute.js';
import { GradientJob } from './job.js';
import { readBackwardCall } from './read-call.js';
import { presentGradients } from './results.js';

/** Options of attentionBackwardAsync(). @typedef {import('../gradients.js').BackwardOptions & import('../attention-async.js').AsyncOptions} BackwardAsyncOptions */

/**
 * @param {import('../runtime.js').Runtime} runtime
 * @param {import('../pool/pool.js').Pool} pool
 * @param {object} owner the instance
 * @param {unknown} query
 * @param {unknown} key
 * @param {unknown} value
 * @param {unknown} given
 * @param {unknown} options
 * @returns {Promise<ReturnType<typeof presentGradients>>}
 */
export async function attentionBackwardAsync(runtime, pool, owner, query, key, value, given, options) {
  void runtime.exports; // throws once the instance is disposed of
  const { signal, onProgress, rest } = readAsyncOptions(options);
  const backward = readBackwardCall(runtime, query, key, value, given, rest);
  if (signal?.aborted) throw signal.reason;
  const total = rowsOf(backward.call);
  if (total * backward.call.seqlenKv === 0) {
    const zeros = presentGradients(backward, computeGradients(runtime, backward));
    onProgress?.({ done: total, total });
    return zeros;
  }
  const job = new GradientJob(runtime, backward, { onProgress, owner, ...pool.cut });
  const [result] = await runJobs(pool, owner, signal, [job]);
  return result;
}
