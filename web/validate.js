// The rules on the arguments of attention(), checked before anything is allocated.

import { checkOptions } from './check-options.js';
import { rangeError, show } from './errors.js';
import { alignCodes, layoutCodes } from './frame.js';
import { readOperand } from './operand.js';
import { AttentionCall, readOptions } from './options.js';
import { rowsOf, shapeOf } from './row-shape.js';

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
 * @param {string} [who] as readOptions() has it
 * @param {readonly string[]} [refused]
 * @returns {AttentionCall}
 */
export function readCall(runtime, query, key, value, options, who, refused) {
  const call = new AttentionCall();
  readOptions(call, options, who, refused);
  call.query = readOperand('query', query, false, runtime);
  call.key = readOperand('key', key, false, runtime);
  call.value = readOperand('value', value, false, runtime);
  readSizes(call);
  readMasks(runtime, call);
  fitMasks(call);
  checkOptions(call);
  return call;
}

/**
 * Sizes of what a cache holds: `seqlenKv` is the length of the longest row.
 * @typedef {{ batch: number, numKvHeads: number, seqlenKv: number, headDim: number, headDimV: number }} CacheSizes
 */

/** Options that the cache sets itself. */
const cacheSets = ['align', 'queryOffset', 'kvLengths', 'cuSeqlens'];

/**
 * A call whose keys and values lie in a cache: the caller sets `storage`, `kvLengths`, `align` and `queryOffsets`. Masks, biases, segment
 * ids and block masks have `seqlenKv` columns.
 * @param {import('./runtime.js').Runtime} runtime
 * @param {unknown} query
 * @param {CacheSizes} sizes
 * @param {unknown} options
 * @returns {AttentionCall} with key = value = null
 */
export function readQueryCall(runtime, query, sizes, options) {
  const call = beginQueryCall(runtime, query, sizes, options);
  fitQueryCall(call, sizes.seqlenKv);
  return call;
}

/**
 * The first half of readQueryCall(): everything is read, and checked as far as it does not depend on how many keys there are.
 * @param {import('./runtime.js').Runtime} runtime
 * @param {unknown} query
 * @param {Omit<CacheSizes, 'seqlenKv'>} sizes
 * @param {unknown} options
 * @returns {AttentionCall}
 */
export function beginQueryCall(runtime, query, sizes, options) {
  const call = new AttentionCall();
  call.causal = true; // where the options do not say otherwise
  readOptions(call, options, 'attend', cacheSets);
  const set = [call.align !== alignCodes.none, call.offsetGiven, call.kvLengths !== null, call.queryStarts !== null];
  const at = set.indexOf(true);
  if (at >= 0) throw rangeError('option', `the cache sets ${cacheSets[at]} itself: where its tokens stand is known`);
  call.inCache = true;
  call.query = readOperand('query', query, false, runtime);
  readQuerySizes(call, sizes);
  readMasks(runtime, call);
  return call;
}

/**
 * The second half, once the number of keys is known.
 * @param {AttentionCall} call
 * @param {number} seqlenKv
 */
export function fitQueryCall(call, seqlenKv) {
  call.seqlenKv = seqlenKv;
  fitMasks(call);
  checkOptions(call);
}

/**
 * @param {AttentionCall} call
 * @param {Omit<CacheSizes, 'seqlenKv'>} sizes
 */
function readQuerySizes(call, sizes) {
  checkQueryRank(call);
  const { batch, heads, length, size } = rowsOf(call.query.shape, isBlhd(call));
  call.batch = sizes.batch;
  call.numKvHeads = sizes.numKvHeads;
  call.headDim = sizes.headDim;
  call.headDimV = sizes.headDimV;
  call.seqlenQ = length;
  call.numHeads = heads;
  if (batch !== sizes.batch) throw mismatch('query', 'batch', batch, 'cache', sizes.batch);
  checkMultiple('query', heads, sizes.numKvHeads, 'heads of the cache');
  if (size !== sizes.headDim) throw mismatch('query', 'head size', size, 'cache', sizes.headDim);
}

/**
 * @param {import('./runtime.js').Runtime} runtime
 * @param {AttentionCall} call
 */
function readMasks(runtime, call) {
  const { givenMask, givenBias } = call;
  if (givenMask !== undefined) call.mask = readOperand('mask', givenMask, true, runtime);
  if (givenBias !== undefined) call.bias = readOperand('bias', givenBias, false, runtime);
}

/** @param {AttentionCall} call with all sizes, and its mask and bias as they were given */
function fitMasks(call) {
  if (call.mask) broadcast(call, 'mask', call.mask);
  if (call.bias) broadcast(call, 'bias', call.bias);
}

/**
 * The query's rank is that of the results.
 * @param {AttentionCall} call
 */
function checkQueryRank(call) {
  const { shape } = call.query;
  const rank = shape.length;
  if (rank < 2 || rank > 4) {
    throw rangeError('shape', `query must have 2, 3 or 4 dimensions, got ${rank}: ${show(shape)}`);
  }
  call.rank = rank;
}

/** @param {AttentionCall} call */
const isBlhd = ({ layout }) => layout === layoutCodes.blhd;

/**
 * Sizes out of the shapes of query, key and value.
 * @param {AttentionCall} call
 */
function readSizes(call) {
  const { query, key, value } = call;
  checkQueryRank(call);
  const { rank } = call;
  if (key.shape.length !== rank) throw mismatch('key', 'dimensions', key.shape.length, 'query', rank);
  if (value.shape.length !== rank) throw mismatch('value', 'dimensions', value.shape.length, 'query', rank);
  const blhd = isBlhd(call);
  const q = rowsOf(query.shape, blhd);
  const k = rowsOf(key.shape, blhd);
  const v = rowsOf(value.shape, blhd);
  call.batch = q.batch;
  call.numHeads = q.heads;
  call.numKvHeads = k.heads;
  call.seqlenQ = q.length;
  call.seqlenKv = k.length;
  call.headDim = q.size;
  call.headDimV = v.size;
  if (k.batch !== q.batch) throw mismatch('key', 'batch', k.batch, 'query', q.batch);
  if (v.batch !== q.batch) throw mismatch('value', 'batch', v.batch, 'query', q.batch);
  if (v.heads !== k.heads) throw mismatch('value', 'number of heads', v.heads, 'key', k.heads);
  checkMultiple('query', q.heads, k.heads, 'heads of key and value');
  if (v.length !== k.length) throw mismatch('value', 'length', v.length, 'key', k.length);
  if (q.size === 0) throw rangeError('shape', `query head size must be 1 or more, got shape ${show(query.shape)}`);
  if (k.size !== q.size) throw mismatch('key', 'head size', k.size, 'query', q.size);
  if (v.size === 0) throw rangeError('shape', `value head size must be 1 or more, got shape ${show(value.shape)}`);
}

/**
 * Several heads share what another tensor has.
 * @param {string} name
 * @param {number} heads
 * @param {number} count of what they share
 * @param {string} what that is, for the error
 */
export function checkMultiple(name, heads, count, what) {
  if (heads === 0 || count === 0 || heads % count !== 0) {
    throw rangeError('shape', `${name} has ${heads} heads, which is not a multiple of the ${count} ${what}`);
  }
}

/**
 * @param {string} name
 * @param {string} what
 * @param {number} got
 * @param {string} other
 * @param {number} want
 */
export function mismatch(name, what, got, other, want) {
  const verb = what === 'dimensions' ? 'are' : 'is';
  return rangeError('shape', `${name} ${what} ${verb} ${got} but ${other} ${what} ${verb} ${want}`);
}

/**
 * Pads the shape on the left to rank 4.
 * @param {AttentionCall} call
 * @param {'mask' | 'bias'} name
 * @param {Operand} operand
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
}

/**
 * Shapes of the results, in the query's rank.
 * @param {AttentionCall} call
 */
export function outShape(call) {
  const { rank, batch, numHeads, seqlenQ, headDimV } = call;
  return shapeOf({ batch, heads: numHeads, length: seqlenQ, size: headDimV }, rank, isBlhd(call));
}

/** @param {AttentionCall} call */
export function lseShape({ rank, batch, numHeads, seqlenQ }) {
  return rank === 4 ? [batch, numHeads, seqlenQ] : rank === 3 ? [numHeads, seqlenQ] : [seqlenQ];
}

/** @param {AttentionCall} call */
export function scoresShape(call) {
  return [...lseShape(call), call.seqlenKv];
}
