// The rules on the arguments of attention(), checked before anything is allocated.

import { rangeError, show } from './errors.js';
import { alignCodes, layoutCodes } from './frame.js';
import { readOperand } from './operand.js';
import { AttentionCall, readOptions } from './options.js';

/**
 * @typedef {import('./operand.js').Operand} Operand
 * @typedef {import('./options.js').AttentionOptions} AttentionOptions
 */

/**
 * @param {import('./runtime.js').Runtime} runtime
 * @param {unknown} query
 * @param {unknown} key
 * @param {unknown} value
 * @param {unknown} options
 * @returns {AttentionCall}
 */
export function readCall(runtime, query, key, value, options) {
  const call = new AttentionCall();
  readOptions(call, options);
  call.query = readOperand('query', query, false, runtime);
  call.key = readOperand('key', key, false, runtime);
  call.value = readOperand('value', value, false, runtime);
  readSizes(call);
  if (Number.isNaN(call.scale)) call.scale = 1 / Math.sqrt(call.headDim);
  const { givenMask, givenBias } = call;
  if (givenMask !== undefined) call.mask = broadcast(call, 'mask', readOperand('mask', givenMask, true, runtime));
  if (givenBias !== undefined) call.bias = broadcast(call, 'bias', readOperand('bias', givenBias, false, runtime));
  checkPosition(call);
  checkLengths('queryLengths', call.queryLengths, call.batch, 'query length', call.seqlenQ);
  checkLengths('kvLengths', call.kvLengths, call.batch, 'key length', call.seqlenKv);
  return call;
}

/**
 * Sizes out of the shapes of query, key and value.
 * @param {AttentionCall} call
 */
function readSizes(call) {
  const { query, key, value } = call;
  const rank = query.shape.length;
  if (rank < 2 || rank > 4) {
    throw rangeError('shape', `query must have 2, 3 or 4 dimensions, got ${rank}: ${show(query.shape)}`);
  }
  if (key.shape.length !== rank) throw mismatch('key', 'dimensions', key.shape.length, 'query', rank);
  if (value.shape.length !== rank) throw mismatch('value', 'dimensions', value.shape.length, 'query', rank);
  call.rank = rank;
  const blhd = call.layout === layoutCodes.blhd;
  // (B, H, L, D) or (B, L, H, D), without B at rank 3, without B and H at rank 2.
  const row = blhd && rank > 2 ? rank - 3 : rank - 2;
  const head = blhd ? rank - 2 : rank - 3;
  const q = query.shape;
  const k = key.shape;
  const v = value.shape;
  call.seqlenQ = q[row];
  call.seqlenKv = k[row];
  call.headDim = q[rank - 1];
  call.headDimV = v[rank - 1];
  if (rank === 4) {
    call.batch = q[0];
    if (k[0] !== q[0]) throw mismatch('key', 'batch', k[0], 'query', q[0]);
    if (v[0] !== q[0]) throw mismatch('value', 'batch', v[0], 'query', q[0]);
  }
  if (rank > 2) {
    call.numHeads = q[head];
    call.numKvHeads = k[head];
    if (v[head] !== k[head]) throw mismatch('value', 'number of heads', v[head], 'key', k[head]);
    if (q[head] === 0 || k[head] === 0 || q[head] % k[head] !== 0) {
      throw rangeError(
        'shape',
        `query has ${q[head]} heads, which is not a multiple of the ${k[head]} heads of key and value`,
      );
    }
  }
  if (v[row] !== k[row]) throw mismatch('value', 'length', v[row], 'key', k[row]);
  if (call.headDim === 0) throw rangeError('shape', `query head size must be 1 or more, got shape ${show(q)}`);
  if (k[rank - 1] !== call.headDim) throw mismatch('key', 'head size', k[rank - 1], 'query', call.headDim);
  if (call.headDimV === 0) throw rangeError('shape', `value head size must be 1 or more, got shape ${show(v)}`);
}

/**
 * @param {string} name
 * @param {string} what
 * @param {number} got
 * @param {string} other
 * @param {number} want
 */
function mismatch(name, what, got, other, want) {
  const verb = what === 'dimensions' ? 'are' : 'is';
  return rangeError('shape', `${name} ${what} ${verb} ${got} but ${other} ${what} ${verb} ${want}`);
}

/**
 * @param {AttentionCall} call
 * @param {'mask' | 'bias'} name
 * @param {Operand} operand
 * @returns {Operand} with its shape padded on the left to rank 4
 */
function broadcast(call, name, operand) {
  const full = [call.batch, call.numHeads, call.seqlenQ, call.seqlenKv];
  const { shape } = operand;
  const missing = 4 - shape.length;
  let fits = missing >= 0;
  for (let i = 0; fits && i < shape.length; i++) fits = shape[i] === 1 || shape[i] === full[missing + i];
  if (!fits) {
    throw rangeError(
      'shape',
      `${name} shape [${shape.join(', ')}] does not broadcast to [${full.join(', ')}] (batch, query heads, query length, key length)`,
    );
  }
  if (missing > 0) operand.shape = [1, 1, 1, 1].slice(0, missing).concat(shape);
  return operand;
}

/** @param {AttentionCall} call */
function checkPosition(call) {
  if (call.offsetGiven) {
    if (call.align !== alignCodes.none) {
      throw rangeError('option', 'align and queryOffset both say where query 0 stands: give one of them');
    }
    call.align = alignCodes.offset;
    if (call.queryOffsets && call.queryOffsets.length !== call.batch) {
      throw rangeError('shape', `queryOffset has ${call.queryOffsets.length} numbers but the batch is ${call.batch}`);
    }
    return;
  }
  if (call.align !== alignCodes.none || call.seqlenQ === call.seqlenKv) return;
  if (call.batch * call.numHeads * call.seqlenQ === 0) return; // no query, no question
  const windowed = call.windowLeft !== Infinity || call.windowRight !== Infinity;
  if (!call.causal && !windowed) return;
  throw rangeError(
    'align-required',
    `${call.causal ? 'causal' : 'window'} needs to know where query 0 stands, because query length is ${call.seqlenQ} but key length is ${call.seqlenKv}: ` +
      "give align: 'lower-right' (the last query stands at the last key), align: 'upper-left' (query 0 at key 0) or queryOffset",
  );
}

/**
 * @param {string} name
 * @param {Int32Array | null} lengths
 * @param {number} batch
 * @param {string} what
 * @param {number} most
 */
function checkLengths(name, lengths, batch, what, most) {
  if (!lengths) return;
  if (lengths.length !== batch) {
    throw rangeError('shape', `${name} has ${lengths.length} numbers but the batch is ${batch}`);
  }
  for (let b = 0; b < batch; b++) {
    if (lengths[b] < 0 || lengths[b] > most) {
      throw rangeError('option', `${name}[${b}] is ${lengths[b]} but must be between 0 and the ${what} ${most}`);
    }
  }
}

/**
 * Shapes of the results, in the query's rank.
 * @param {AttentionCall} call
 */
export function outShape(call) {
  const { rank, batch, numHeads, seqlenQ, headDimV } = call;
  if (rank === 2) return [seqlenQ, headDimV];
  const inner = call.layout === layoutCodes.blhd ? [seqlenQ, numHeads, headDimV] : [numHeads, seqlenQ, headDimV];
  return rank === 4 ? [batch, ...inner] : inner;
}

/** @param {AttentionCall} call */
export function lseShape({ rank, batch, numHeads, seqlenQ }) {
  return rank === 4 ? [batch, numHeads, seqlenQ] : rank === 3 ? [numHeads, seqlenQ] : [seqlenQ];
}

/** @param {AttentionCall} call */
export function scoresShape(call) {
  return [...lseShape(call), call.seqlenKv];
}
