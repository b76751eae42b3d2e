// windowAttention2dAsync(): the windows of each size are a job of the pool.

import { readAsyncOptions } from '../attention-async.js';
import { Operand, viewOf } from '../operand.js';
import { emptyResult, Out, placeOf, result } from '../output.js';
import { pooledJob } from '../pool/attention-job.js';
import { rowsOf } from '../pool/job.js';
import { runJobs } from '../pool/run-jobs.js';
import { product } from '../tensor.js';
import { lseShape } from '../validate.js';
import { expandBias } from './window-bias.js';
import { Scratch } from './scratch.js';
import { callOfWindows, readWindowCall, tokenLayouts, windowsShape } from './window-call.js';
import { normalizedInput } from './window-cosine.js';
import { copyWindows } from './window-rows.js';

/**
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('../tensor.js').Tensor} Tensor
 * @typedef {import('./window-call.js').WindowCall} WindowCall
 * @typedef {import('./window-grid.js').WindowClass} WindowClass
 */

/** Options of windowAttention2dAsync(). @typedef {import('./window-call.js').WindowAttention2dOptions & import('../attention-async.js').AsyncOptions} WindowAttention2dAsyncOptions */

/**
 * @param {Runtime} runtime
 * @param {import('../pool/pool.js').Pool} pool
 * @param {object} owner the instance
 * @param {unknown} query
 * @param {unknown} key
 * @param {unknown} value
 * @param {unknown} options
 * @returns {Promise<{ out: any, lse?: Tensor }>}
 */
export async function windowAttention2dAsync(runtime, pool, owner, query, key, value, options) {
  void runtime.exports; // throws once the instance is disposed of
  const { signal, onProgress, rest } = readAsyncOptions(options);
  const read = readWindowCall(runtime, query, key, value, rest);
  const { call, shape, out, classes } = read;
  if (signal?.aborted) throw signal.reason;
  const count = product('out', shape);
  const total = rowsOf(call);
  if (count === 0) {
    const empty = emptyResult(runtime, call, shape, count, out);
    onProgress?.({ done: total, total });
    return empty;
  }
  const done = new Float64Array(classes.length);
  const calls = gatherCalls(runtime, read);
  const jobs = calls.map((windows, n) => {
    const to = windowsShape(call, windows.batch, call.numHeads, windows.seqlenQ, call.headDimV);
    const hear = (/** @type {import('../pool/job.js').Progress} */ progress) => {
      done[n] = progress.done;
      onProgress?.({ done: done.reduce((sum, rows) => sum + rows), total });
    };
    return pooledJob(runtime, windows, {
      shape: to,
      out: new Out(null, null, 0),
      onProgress: onProgress && hear,
      owner,
      ...pool.cut,
    });
  });
  const parts = await runJobs(pool, owner, signal, jobs);
  return putTogether(runtime, read, parts);
}

/**
 * Copies the windows of each size.
 * @param {Runtime} runtime
 * @param {WindowCall} read
 */
function gatherCalls(runtime, read) {
  const scratch = new Scratch(runtime);
  try {
    const { query, key, value } = read.call;
    const inputs = { query, key, value };
    if (read.factors) {
      inputs.query = normalizedInput(runtime, read, 'query', scratch);
      inputs.key = normalizedInput(runtime, read, 'key', scratch);
    }
    return read.classes.map((size) => gatherCall(runtime, read, inputs, size));
  } finally {
    scratch.release();
  }
}

/**
 * @param {Runtime} runtime
 * @param {WindowCall} read
 * @param {Record<'query' | 'key' | 'value', Operand>} inputs
 * @param {WindowClass} size
 */
function gatherCall(runtime, read, inputs, size) {
  const { call, image, table } = read;
  const { numHeads, numKvHeads, headDim, headDimV } = call;
  const layouts = tokenLayouts(read);
  const tokens = size.height * size.width;
  const windows = call.batch * size.origins.length;
  const operand = (/** @type {'query' | 'key' | 'value'} */ name) => {
    const heads = name === 'query' ? numHeads : numKvHeads;
    const shape = windowsShape(call, windows, heads, tokens, name === 'value' ? headDimV : headDim);
    const from = viewOf(runtime, inputs[name]);
    const count = product(name, shape);
    const array = from instanceof Float32Array ? new Float32Array(count) : new Uint16Array(count);
    copyWindows('gather', { data: from, at: 0 }, array, layouts[name], size);
    return new Operand(array, inputs[name].dtype, shape, count, 0);
  };
  /** @type {Operand | null} */
  let bias = null;
  if (table) {
    const shape = [1, numHeads, tokens, tokens];
    const data = new Float32Array(product('relativeBias', shape));
    expandBias(table, numHeads, image.windowSize, size, data);
    bias = new Operand(data, 'float32', shape, data.length, 0);
  }
  return callOfWindows(read, size, { query: operand('query'), key: operand('key'), value: operand('value'), bias });
}

/**
 * @param {Runtime} runtime
 * @param {WindowCall} read
 * @param {{ out: Tensor, lse?: Tensor }[]} parts one for each size of windows
 */
function putTogether(runtime, read, parts) {
  const { call, shape, out, classes } = read;
  const layouts = tokenLayouts(read);
  const lse = call.returnLse ? new Float32Array(product('lse', lseShape(call))) : undefined;
  const target = placeOf(runtime, out) ?? { data: new Float32Array(product('out', shape)), at: 0 };
  for (const [n, size] of classes.entries()) {
    copyWindows('scatter', target, parts[n].out.data, layouts.out, size);
    if (lse) copyWindows('scatter', { data: lse, at: 0 }, /** @type {Tensor} */ (parts[n].lse).data, layouts.lse, size);
  }
  const first = out.tensor ?? { data: target.data, shape, dtype: /** @type {const} */ ('float32') };
  return result(first, lse && { data: lse, shape: lseShape(call), dtype: 'float32' }, undefined);
}
