// A sharded cache and a whole one side by side: the same operations, the same bits, the same errors.

import assert from 'node:assert/strict';
import { assertSameBits } from '../helpers/workers.mjs';

export const sizes = { batch: 2, numKvHeads: 3, headDim: 5, headDimV: 3 };
export const numHeads = 6;

/** @type {Record<string, any>} */
export const kinds = {
  float32: { capacity: 3 },
  float16: { dtype: 'float16', capacity: 3 },
  int8: { dtype: 'int8', capacity: 3 },
  'float32 with rope': {
    headDim: 6,
    rope: { base: 100, pairing: 'interleaved', scaling: { type: 'linear', factor: 2 } },
  },
  'int8 with rope': { headDim: 6, dtype: 'int8', rope: { rotaryDim: 4 } },
  fixed: { capacity: 19, fixed: true },
  ring: { window: 7 },
  'ring of float16 with globalKeys': { window: 6, globalKeys: 3, dtype: 'float16' },
  paged: { pageSize: 4, capacity: 3 },
  'paged int8': { pageSize: 3, dtype: 'int8' },
  'paged and fixed': { pageSize: 3, capacity: 30, fixed: true },
};

/** @typedef {{ sharded: any, whole: any }} Pair */

/**
 * Does something on both, and has them agree.
 * @param {Pair} pair
 * @param {string} method
 * @param {any[]} args
 * @returns {Promise<{ value?: any, error?: any }>}
 */
export async function both({ sharded, whole }, method, ...args) {
  /** @type {any} */
  let [want, wantError, got, gotError] = [];
  try {
    want = whole[method](...args);
  } catch (error) {
    wantError = error;
  }
  try {
    got = await sharded[method](...args);
  } catch (error) {
    gotError = error;
  }
  assert.equal(gotError?.message, wantError?.message, `${method}: ${gotError?.stack} instead of ${wantError?.stack}`);
  assert.equal(gotError?.code, wantError?.code);
  assert.equal(gotError?.constructor, wantError?.constructor);
  if (method === 'attend' && want) assertSameBits(got, want);
  return { value: got, error: gotError };
}

/** @param {Pair} pair */
export function assertSameState({ sharded, whole }) {
  assert.deepEqual([...sharded.lengths], [...whole.lengths]);
  assert.equal(sharded.length, whole.length);
  assert.equal(sharded.capacity, whole.capacity);
  // Blocks are rounded up to 64 bytes.
  assert.ok(sharded.byteLength >= whole.byteLength - 256 && sharded.byteLength <= whole.byteLength + 64 * 4 * 3);
}

/** @param {any} random @param {number} n */
export const upTo = (random, n) => Math.floor(random.uniform() * (n + 1));

/**
 * Options of attend() that differ from head to head, and what else there is.
 * @param {any} sdpa
 * @param {any} random
 * @param {number} L
 * @param {number} S
 * @param {number} [chance] of each option
 */
export function randomOptions(sdpa, random, L, S, chance = 0.2) {
  const { batch } = sizes;
  const maybe = (/** @type {number} */ p = chance) => random.uniform() < p;
  const bits = (/** @type {number} */ count) => Uint8Array.from({ length: count }, () => Number(maybe(0.7)));
  const perHead = () => Float32Array.from({ length: numHeads }, random.normal);
  /** @type {any} */
  const options = {};
  if (maybe(0.5)) options.returnLse = true;
  if (maybe()) options.scores = ['scaled', 'capped', 'biased', 'weights'][upTo(random, 3)];
  if (maybe()) options.causal = false;
  if (maybe()) options.window = [upTo(random, 6), maybe(0.5) ? Infinity : upTo(random, 6)];
  if (maybe()) options.chunk = 1 + upTo(random, 6);
  if (maybe()) options.globalKeys = upTo(random, 3);
  if (maybe()) options.softcap = 2;
  if (maybe()) options.scale = random.normal();
  if (maybe()) options.queryLengths = Int32Array.from({ length: batch }, () => upTo(random, L));
  if (maybe()) options.mask = { data: bits(L * S), shape: [L, S] };
  if (maybe()) options.mask = { data: bits(numHeads * S), shape: [numHeads, 1, S] };
  if (maybe()) options.bias = random.tensor(numHeads, 1, S);
  if (maybe()) options.bias = random.tensor(batch, numHeads, L, S);
  if (maybe()) options.alibiSlopes = perHead();
  if (maybe()) options.sinks = random.tensor(batch, numHeads);
  if (maybe()) options.sinks = perHead();
  if (maybe()) options.smoothSoftmax = true;
  if (maybe()) options.dropout = { p: 0.3, seed: upTo(random, 1000) };
  if (maybe()) {
    const ids = (/** @type {number} */ count) => Int32Array.from({ length: count }, () => upTo(random, 1));
    options.segmentIds = { query: ids(batch * L), key: ids(batch * S) };
  }
  if (maybe() && S > 0 && L > 0) {
    options.blockMask = sdpa.masks.fromDense({ data: bits(numHeads * L * S), shape: [numHeads, L, S] });
  }
  return options;
}
