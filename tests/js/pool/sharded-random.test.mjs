// Random operations on sharded caches of each kind, on any number of workers, each compared with a whole cache.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant, resident } from '../helpers/sdpa.mjs';
import { assertSameState, both, kinds, numHeads, randomOptions, sizes, upTo } from './sharded-model.mjs';

const operations = 250;

/** Rows beyond this many tokens are cut down. */
const longest = 40;

/** @typedef {import('./sharded-model.mjs').Pair} Pair */

/** @param {any} random @param {any} sdpa @param {Pair} pair @param {any} kind */
async function append(random, sdpa, pair, kind) {
  const { batch, numKvHeads, headDim, headDimV } = { ...sizes, ...kind };
  const count = random.uniform() < 0.05 ? 20 : upTo(random, 4);
  const blhd = random.uniform() < 0.5;
  const tensor = (/** @type {number} */ dim) => {
    const shape = blhd ? [batch, count, numKvHeads, dim] : [batch, numKvHeads, count, dim];
    const plain = random.tensor(...shape);
    const x = random.uniform();
    if (x < 0.2) {
      const words = new Uint32Array(plain.data.buffer);
      return { data: Uint16Array.from(words, (word) => word >>> 16), shape, dtype: 'bfloat16' };
    }
    if (x > 0.4) return plain;
    return resident(sdpa, plain);
  };
  /** @type {any} */
  const options = blhd ? { layout: 'blhd' } : {};
  if (random.uniform() < 0.5) options.lengths = Array.from({ length: batch }, () => upTo(random, count));
  const [key, value] = [tensor(headDim), tensor(headDimV)];
  if (kind.dtype === 'int8' && count > 0 && random.uniform() < 0.1 && value.data instanceof Float32Array) {
    value.data[upTo(random, value.data.length - 1)] = NaN;
  }
  const { error } = await both(pair, 'append', key, value, options);
  key.dispose?.();
  value.dispose?.();
  return error ? error.code : 'append';
}

/** @param {any} random @param {any} sdpa @param {Pair} pair @param {any} kind */
async function attend(random, sdpa, pair, kind) {
  const { batch, headDim } = { ...sizes, ...kind };
  const L = upTo(random, 3);
  const query = random.tensor(batch, numHeads, L, headDim);
  await both(pair, 'attend', query, randomOptions(sdpa, random, L, pair.whole.length));
  return 'attend';
}

/** @param {any} random @param {Pair} pair */
async function truncate(random, pair) {
  const length =
    random.uniform() < 0.5
      ? upTo(random, pair.whole.length + 1)
      : Array.from(pair.whole.lengths, (n) => Math.max(0, /** @type {number} */ (n) - upTo(random, 3)));
  await both(pair, 'truncate', length);
  return 'truncate';
}

/** @param {any} random @param {Pair} pair */
async function evict(random, pair) {
  const share = random.uniform() * 0.4;
  const indices = Array.from({ length: pair.whole.length }, (_, j) => j).filter(() => random.uniform() < share);
  const { error } = await both(pair, 'evict', indices);
  return error ? error.code : 'evict';
}

for (const threads of [0, 1, 2, 3]) {
  test(`random operations do on ${threads} workers what they do on a whole cache`, async () => {
    const sdpa = /** @type {any} */ (await loadVariant({ threads }));
    const { held } = sdpa.memory();
    for (const [i, [name, kind]] of Object.entries(kinds).entries()) {
      const random = randomSource(100 * threads + i + 1);
      const options = { ...sizes, ...kind };
      const create = () => ({ sharded: sdpa.createShardedKVCache(options), whole: sdpa.createKVCache(options) });
      /** @type {Pair[]} */
      let pairs = [create()];
      assert.equal(pairs[0].sharded.capacity, pairs[0].whole.capacity);
      await pairs[0].sharded.ready;
      /** @type {Record<string, number>} */
      const done = {};
      for (let n = 0; n < operations; n++) {
        const pair = pairs[upTo(random, pairs.length - 1)];
        const x = random.uniform();
        let what;
        if (pair.whole.length > longest || x < 0.02) {
          await both(pair, 'reset');
          what = 'reset';
        } else if (x < 0.45) what = await append(random, sdpa, pair, kind);
        else if (x < 0.7) what = await attend(random, sdpa, pair, kind);
        else if (x < 0.8) what = await truncate(random, pair);
        else if (x < 0.9) what = await evict(random, pair);
        else if (kind.pageSize && x < 0.95 && pairs.length < 4) {
          pairs.push({ sharded: await pair.sharded.fork(), whole: pair.whole.fork() });
          what = 'fork';
        } else if (pairs.length > 1) {
          for (const cache of Object.values(pair)) cache.dispose();
          pairs = pairs.filter((other) => other !== pair);
          what = 'dispose';
        } else what = await attend(random, sdpa, pair, kind);
        done[what] = (done[what] ?? 0) + 1;
        for (const one of pairs) assertSameState(one);
      }
      const { sharded } = pairs[0];
      assert.equal(sharded.shards, Math.max(1, threads), name);
      assert.equal(sharded.threads, threads, name);
      for (const { whole } of pairs) whole.dispose();
      if (threads > 0) assert.equal(sdpa.memory().held, held, 'something of a shard is on this thread');
      for (const pair of pairs) pair.sharded.dispose();
      const expected = ['append', 'attend', 'truncate', 'reset'];
      expected.push(kind.window || kind.rope ? 'option' : 'evict');
      if (kind.fixed) expected.push('capacity');
      if (kind.pageSize) expected.push('fork', 'dispose');
      for (const what of expected) assert.ok(done[what] > 0, `${name}: ${what} ${done[what]} times`);
    }
    if (threads === 0) {
      // Each in a task of its own.
      while (sdpa.memory().held > held) await new Promise((done) => setImmediate(done));
    }
    sdpa.dispose();
  });
}
