// Ten thousand random operations on each kind of cache, each checked against the model of plain arrays.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { largestError, randomSource, referenceAttention } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { ModelCache, toHalf } from './kv-cache-model.mjs';

const operations = 10_000;
const numKvHeads = 2;
const numHeads = 4;
const headDim = 5;
const headDimV = 3;
const batch = 2;
const sizes = { batch, numKvHeads, headDim, headDimV };

/** Rows beyond this many tokens are cut down, so that the reference stays quick. */
const longest = 40;

/** @type {Record<string, any>} */
const kinds = {
  float32: { capacity: 3 },
  float16: { dtype: 'float16', capacity: 3 },
  int8: { dtype: 'int8', capacity: 3 },
  fixed: { capacity: 19, fixed: true },
  ring: { window: 7 },
  'ring with globalKeys': { window: 6, globalKeys: 3, dtype: 'float16' },
  'ring of int8': { window: 1, globalKeys: 2, dtype: 'int8' },
  paged: { pageSize: 4, capacity: 3 },
  'paged float16': { pageSize: 1, dtype: 'float16' },
  'paged int8': { pageSize: 3, dtype: 'int8' },
  'paged and fixed': { pageSize: 3, capacity: 30, fixed: true },
};

/** Numbers in a random storage type of inputs, and what they stand for. */
class Tokens {
  /**
   * @param {ReturnType<typeof randomSource>} random
   * @param {any} sdpa
   * @param {number} count
   * @param {number} dim
   * @param {boolean} blhd
   */
  constructor(random, sdpa, count, dim, blhd) {
    this.blhd = blhd;
    this.count = count;
    this.dim = dim;
    const numbers = Float32Array.from({ length: batch * numKvHeads * count * dim }, random.normal);
    const shape = blhd ? [batch, count, numKvHeads, dim] : [batch, numKvHeads, count, dim];
    const kind = random.uniform();
    /** @type {SdpaTensor | undefined} */
    this.resident = undefined;
    if (kind < 0.2) {
      const bits = new Uint16Array(new Uint32Array(numbers.buffer).map((word) => word >>> 16));
      this.numbers = new Float32Array(Uint32Array.from(bits, (word) => word << 16).buffer);
      this.tensor = { data: bits, shape, dtype: 'bfloat16' };
    } else if (kind < 0.4) {
      this.numbers = numbers.map(toHalf);
      this.tensor = { data: Uint16Array.from(this.numbers, halfBits), shape, dtype: 'float16' };
    } else {
      this.numbers = numbers;
      this.tensor = { data: numbers, shape };
    }
    if (random.uniform() < 0.1) {
      const { data, dtype } = this.tensor;
      this.resident = sdpa.tensor(shape, dtype);
      this.resident.data.set(data);
      this.tensor = this.resident;
    }
  }

  /** @param {number} b @param {number} h @param {number} t */
  row = (b, h, t) => {
    const { count, dim, blhd } = this;
    const at = (blhd ? (b * count + t) * numKvHeads + h : (b * numKvHeads + h) * count + t) * dim;
    return Array.from(this.numbers.subarray(at, at + dim));
  };
}

/** @typedef {import('sdpa').SdpaTensor} SdpaTensor */

/** @param {number} x a binary16 number */
function halfBits(x) {
  const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0;
  const size = Math.abs(x);
  if (size === 0) return sign;
  const exponent = Math.max(Math.floor(Math.log2(size)), -14);
  const steps = size / 2 ** (exponent - 10);
  return sign | (steps < 1024 ? steps : ((exponent + 15) << 10) | (steps - 1024));
}

/** @param {number} n */
const upTo = (random, n) => Math.floor(random.uniform() * (n + 1));

/** One cache and its model. @typedef {{ cache: any, model: ModelCache }} Pair */

/** @param {Pair} pair */
function assertState({ cache, model }) {
  assert.deepEqual([...cache.lengths], model.lengths);
  assert.equal(cache.length, model.length);
  assert.ok(cache.capacity >= (model.options.window ? 1 : model.length));
}

/** @param {any} random @param {any} sdpa @param {Pair} pair @param {any} options of the kind */
function append(random, sdpa, { cache, model }, { fixed, capacity, pageSize }) {
  const count = random.uniform() < 0.05 ? 20 : upTo(random, 4);
  const blhd = random.uniform() < 0.5;
  const key = new Tokens(random, sdpa, count, headDim, blhd);
  const value = new Tokens(random, sdpa, count, headDimV, blhd);
  const counts = Array.from({ length: batch }, () => upTo(random, count));
  const ragged = random.uniform() < 0.5;
  if (!ragged) counts.fill(count);
  /** @type {any} */
  const given = {};
  if (blhd) given.layout = 'blhd';
  if (ragged) given.lengths = random.uniform() < 0.5 ? counts : Int32Array.from(counts);
  const before = { lengths: [...cache.lengths], capacity: cache.capacity, bytes: cache.byteLength };
  try {
    cache.append(key.tensor, value.tensor, given);
  } catch (error) {
    const { code } = /** @type {any} */ (error);
    assert.equal(code, 'capacity', /** @type {any} */ (error).stack);
    assert.ok(fixed);
    if (!pageSize) assert.ok(model.lengths.some((n, b) => n + counts[b] > capacity));
    assert.deepEqual({ lengths: [...cache.lengths], capacity: cache.capacity, bytes: cache.byteLength }, before);
    return 'full';
  } finally {
    key.resident?.dispose();
    value.resident?.dispose();
  }
  if (fixed && !pageSize) assert.ok(model.lengths.every((n, b) => n + counts[b] <= capacity));
  model.append(key.row, value.row, counts);
  return 'append';
}

/** An append that cannot be: nothing changes. @param {any} random @param {Pair} pair */
function failingAppend(random, { cache, model }) {
  const before = { lengths: [...cache.lengths], capacity: cache.capacity, bytes: cache.byteLength };
  const key = random.tensor(batch, numKvHeads, 2, headDim);
  const value = random.tensor(batch, numKvHeads, 2, headDimV);
  const wrong = [
    () => cache.append(key, key),
    () => cache.append(key, random.tensor(batch, numKvHeads, 3, headDimV)),
    () => cache.append(random.tensor(batch, 3, 2, headDim), value),
    () => cache.append({ data: new Float64Array(key.data), shape: key.shape }, value),
    () => cache.append(key, value, { lengths: [1, 3] }),
    () => cache.append(key, value, { length: 1 }),
  ];
  if (model.options.dtype === 'int8') {
    value.data[value.data.length - 1] = NaN;
    wrong.push(() => cache.append(key, value));
  }
  assert.throws(wrong[upTo(random, wrong.length - 1)]);
  assert.deepEqual({ lengths: [...cache.lengths], capacity: cache.capacity, bytes: cache.byteLength }, before);
  return 'failing append';
}

/** @param {any} random @param {Pair} pair */
function attend(random, { cache, model }) {
  const L = 1 + upTo(random, 3);
  const query = random.tensor(batch, numHeads, L, headDim);
  /** @type {any} */
  const options = { returnLse: true };
  const chance = (/** @type {number} */ p) => random.uniform() < p;
  if (chance(0.3)) options.causal = false;
  if (chance(0.3)) options.window = [upTo(random, 6), chance(0.5) ? Infinity : upTo(random, 6)];
  if (chance(0.3)) options.softcap = 2;
  if (chance(0.3)) options.queryLengths = Int32Array.from({ length: batch }, () => upTo(random, L));
  if (chance(0.3)) options.mask = { data: bits(random, L * model.length), shape: [L, model.length] };
  if (chance(0.1)) options.scores = 'weights';
  const { key, value } = model.tensors();
  const want = referenceAttention(query, key, value, model.spelt(L, options));
  const got = cache.attend(query, options);
  assert.ok(largestError(got.out.data, want.out) <= 2e-6, `out is off by ${largestError(got.out.data, want.out)}`);
  assert.ok(largestError(got.lse.data, want.lse) <= 2e-6, `lse is off by ${largestError(got.lse.data, want.lse)}`);
  if (options.scores) assert.ok(largestError(got.scores.data, want.scores.weights) <= 2e-6);
  return 'attend';
}

/** @param {any} random @param {number} count */
const bits = (random, count) => Uint8Array.from({ length: count }, () => Number(random.uniform() < 0.7));

/** @param {any} random @param {Pair} pair */
function truncate(random, { cache, model }) {
  if (random.uniform() < 0.5) {
    const length = upTo(random, model.length);
    cache.truncate(length);
    model.truncate(length);
  } else {
    const lengths = model.lengths.map((n) => Math.max(0, n - upTo(random, 3)));
    cache.truncate(Int32Array.from(lengths));
    model.truncate(lengths);
  }
  return 'truncate';
}

/** @param {any} random @param {Pair} pair */
function evict(random, { cache, model }) {
  const share = random.uniform() * 0.4;
  const indices = Array.from({ length: model.length }, (_, j) => j).filter(() => random.uniform() < share);
  if (random.uniform() < 0.5) indices.reverse();
  try {
    cache.evict(random.uniform() < 0.5 ? indices : Int32Array.from(indices));
  } catch (error) {
    // Pages that are shared have to be copied, and a fixed pool may have none left.
    assert.equal(/** @type {any} */ (error).code, 'capacity', /** @type {any} */ (error).stack);
    return 'full';
  }
  model.evict(indices);
  return 'evict';
}

for (const [name, kind] of Object.entries(kinds)) {
  test(`${operations} random operations on a cache that is ${name} do what plain arrays do`, async () => {
    const sdpa = /** @type {any} */ (await loadVariant());
    const random = randomSource(Object.keys(kinds).indexOf(name) + 1);
    const { held } = sdpa.memory();
    const options = { ...sizes, ...kind };
    /** @type {Pair[]} */
    let pairs = [{ cache: sdpa.createKVCache(options), model: new ModelCache(options) }];
    /** @type {Record<string, number>} */
    const done = {};
    for (let n = 0; n < operations; n++) {
      const pair = pairs[upTo(random, pairs.length - 1)];
      const x = random.uniform();
      let what;
      if (pair.model.length > longest || x < 0.02) {
        pair.cache.reset();
        pair.model.truncate(0);
        what = 'reset';
      } else if (x < 0.4) what = append(random, sdpa, pair, kind);
      else if (x < 0.45) what = failingAppend(random, pair);
      else if (x < 0.75) what = attend(random, pair);
      else if (x < 0.85) what = truncate(random, pair);
      else if (x < 0.92 && !kind.window) what = evict(random, pair);
      else if (kind.pageSize && x < 0.96 && pairs.length < 5) {
        pairs.push({ cache: pair.cache.fork(), model: pair.model.fork() });
        what = 'fork';
      } else if (pairs.length > 1) {
        pair.cache.dispose();
        pairs = pairs.filter((other) => other !== pair);
        what = 'dispose';
      } else what = attend(random, pair);
      done[what] = (done[what] ?? 0) + 1;
      for (const one of pairs) assertState(one);
      if (!kind.pageSize) assert.equal(sdpa.memory().held, held + pair.cache.byteLength);
    }
    const { byteLength, capacity } = pairs[0].cache;
    // Pages go back: the pool is not larger than doubling for five caches of the longest rows makes it.
    assert.ok(capacity <= 2 * 5 * batch * (longest + 20 + (kind.pageSize ?? 0)), `${capacity} tokens`);
    assert.equal(sdpa.memory().held, held + byteLength);
    for (const { cache } of pairs) cache.dispose();
    assert.equal(sdpa.memory().held, held);
    // That the operations were not all of one sort.
    const expected = ['append', 'failing append', 'attend', 'truncate', 'reset'];
    if (!kind.window) expected.push('evict');
    if (kind.fixed) expected.push('full');
    if (kind.pageSize) expected.push('fork', 'dispose');
    for (const what of expected) assert.ok(done[what] > 50, `${what}: ${done[what]} times`);
  });
}
