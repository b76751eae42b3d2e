// A slice as a call of attention(), on the thread that computes it.

import { Operand } from '../operand.js';
import { AttentionCall } from '../options.js';
import { Out } from '../output.js';
import { product } from '../tensor.js';

/**
 * A slice as a call, but for its keys, values and block mask.
 * @param {import('./slice-runner.js').SliceWork} work
 * @param {Omit<import('./slice-runner.js').Keys, 'key' | 'keyDtype' | 'value' | 'valueDtype'>} keys
 * @returns {AttentionCall}
 */
export function callOf(work, keys) {
  const { batch, heads, seqlen, headDim, headDimV } = keys;
  const call = new AttentionCall();
  call.batch = batch;
  call.numHeads = work.heads;
  call.numKvHeads = heads;
  call.seqlenQ = work.rows;
  call.seqlenKv = seqlen;
  call.headDim = headDim;
  call.headDimV = headDimV;
  call.query = operand(work.query, work.queryDtype, [batch, work.heads, work.rows, headDim], 0);
  call.mask = work.mask && operand(work.mask.data, work.mask.dtype, work.mask.shape, 0);
  call.bias = work.bias && operand(work.bias.data, work.bias.dtype, work.bias.shape, 0);
  const { offsets, queryLengths, kvLengths } = work;
  call.align = work.align;
  // One number where it can be: it may lie outside of 32 bits.
  if (offsets.every((offset) => offset === offsets[0])) call.queryOffset = offsets[0];
  else call.queryOffsets = Int32Array.from(offsets);
  call.queryLengths = queryLengths && Int32Array.from(queryLengths);
  call.kvLengths = kvLengths && Int32Array.from(kvLengths);
  const { scale, softcap, causal, windowLeft, windowRight, chunk, globalKeys, returnLse, scores } = work;
  Object.assign(call, { scale, softcap, causal, windowLeft, windowRight, chunk, globalKeys, returnLse, scores });
  const { alibiSlopes, sinks, dropout, seedLow, seedHigh, cellBatch, cellHead, cellRow } = work;
  Object.assign(call, { alibiSlopes, sinks, dropout, seedLow, seedHigh, cellBatch, cellHead, cellRow });
  call.querySegments = work.segments && { data: work.segments, shape: [batch, work.rows] };
  call.keySegments = keys.segments && { data: keys.segments, shape: [batch, seqlen] };
  call.queryStarts = keys.queryStarts;
  call.keyStarts = keys.keyStarts;
  return call;
}

export const newOut = () => new Out(null, null, 0);

/**
 * A place for the result: the query's buffer where it fits, which is then written over.
 * @param {Float32Array | Uint16Array} query
 * @param {number[]} shape
 */
export function outOver(query, shape) {
  const count = product('out', shape);
  const fits = query instanceof Float32Array && query.buffer.byteLength >= count * 4;
  return fits ? new Out(new Float32Array(query.buffer, 0, count), null, 0) : newOut();
}

/**
 * @param {any} data
 * @param {import('../tensor.js').DType} dtype
 * @param {number[]} shape
 * @param {number} pointer
 */
export const operand = (data, dtype, shape, pointer) => new Operand(data, dtype, shape, data.length, pointer);
