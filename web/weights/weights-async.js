// attentionWeightsAsync(): checks and copies everything when it is called, and leaves the rest to the pool, one job for each result.

import { readAsyncOptions } from '../attention-async.js';
import { outOfMemory } from '../errors.js';
import { settle, settleAll } from '../operand.js';
import { rowsOf } from '../pool/job.js';
import { runJobs } from '../pool/run-jobs.js';
import { readWeightsCall } from './read-call.js';
import { countOf, emptyLines, present } from './results.js';
import { ofHeads } from './some-heads.js';
import { SharedInputs, WeightsJob } from './weights-job.js';
import { seesNothing } from './weights.js';

/**
 * @typedef {import('../pool/job.js').Progress} Progress
 * @typedef {import('../pool/pool.js').Pool} Pool
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('./kinds.js').Lines} Lines
 * @typedef {import('./results.js').WeightsResult} WeightsResult
 */

/** Options of attentionWeightsAsync(). @typedef {import('./weights.js').WeightsOptions & import('../attention-async.js').AsyncOptions} WeightsAsyncOptions */

/**
 * @param {Runtime} runtime
 * @param {Pool} pool
 * @param {object} owner the instance
 * @param {unknown} query
 * @param {unknown} key
 * @param {unknown} options
 * @returns {Promise<WeightsResult>}
 */
export async function attentionWeightsAsync(runtime, pool, owner, query, key, options) {
  void runtime.exports; // throws once the instance is disposed of
  const { signal, onProgress, rest } = readAsyncOptions(options);
  const { call, lse, heads, requests } = readWeightsCall(runtime, query, key, rest);
  const counts = requests.map((request) => countOf(call, heads, request));
  settleAll(runtime, call);
  settle('lse', lse, runtime);
  if (signal?.aborted) throw signal.reason;
  const wanted = requests.filter((_, i) => counts[i] > 0);
  if (wanted.length === 0 || seesNothing(call)) {
    const empty = requests.map((request, i) => emptyLines(counts[i], request));
    onProgress?.({ done: rowsOf(call), total: rowsOf(call) });
    return present(call, heads, requests, empty);
  }

  const { cut } = pool;
  const shared = share();
  const progress = new Sum(onProgress);
  const jobs = wanted.map((request) => {
    const count = counts[requests.indexOf(request)];
    return new WeightsJob(shared, request, count, { ...cut, owner, onProgress: progress.next() });
  });
  progress.totals = jobs.map(({ total }) => total);
  const done = await runJobs(pool, owner, signal, jobs);
  const lines = requests.map((request, i) =>
    counts[i] > 0 ? /** @type {Lines} */ (done.shift()) : emptyLines(0, request),
  );
  return present(call, heads, requests, lines);

  function share() {
    try {
      const own = ofHeads(runtime, call, lse, heads);
      return new SharedInputs(runtime, own.call, own.lse, cut.buffers, wanted.length);
    } catch (cause) {
      if (!(cause instanceof RangeError) || 'code' in cause) throw cause;
      throw outOfMemory(call.query.bytes + call.key.bytes, 0, 'a copy of the inputs', cause);
    }
  }
}

/** Progress of several jobs as one. */
class Sum {
  #report;
  /** Rows of each job. @type {number[]} */
  totals = [];
  /** @type {number[]} */
  #done = [];

  /** @param {((progress: Progress) => void) | undefined} report */
  constructor(report) {
    this.#report = report;
  }

  /** @returns {((progress: Progress) => void) | undefined} what one more job reports to */
  next() {
    const report = this.#report;
    if (!report) return undefined;
    const n = this.#done.push(0) - 1;
    const sum = (/** @type {number[]} */ rows) => rows.reduce((a, b) => a + b, 0);
    return ({ done }) => {
      this.#done[n] = done;
      report({ done: sum(this.#done), total: sum(this.totals) });
    };
  }
}
