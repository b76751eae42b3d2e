// What a sharded cache does where memory or workers fail: all or nothing, and never an end that is not told.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jsonOf, runModule } from '../helpers/child.mjs';
import { assertRejects, assertThrows } from '../helpers/errors.mjs';
import { collectUntil } from '../helpers/garbage.mjs';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant, VARIANT } from '../helpers/sdpa.mjs';
import {
  assertSameBits,
  brokenPrograms,
  deafProgram,
  endsOfWorkers,
  mortal,
  untilWorkersRun,
  watchWorkers,
} from '../helpers/workers.mjs';
import { numHeads, sizes } from './sharded-model.mjs';

const random = randomSource(41);
const { batch, numKvHeads, headDim, headDimV } = sizes;
const keys = (n = 4) => random.tensor(batch, numKvHeads, n, headDim);
const values = (n = 4) => random.tensor(batch, numKvHeads, n, headDimV);
const query = random.tensor(batch, numHeads, 1, headDim);

/** Three heads on two workers: one has one of them, the other two, and needs twice as much. */
const uneven = { batch: 1, numKvHeads: 3, headDim: 64 };
const tokens = (/** @type {number} */ n) => random.tensor(1, 3, n, 64);
const longQuery = random.tensor(1, 3, 2, 64);

/** Bytes of one of its tokens in one head. */
const tokenBytes = 2 * 64 * 4;

/** @param {any} sdpa @param {any} cache @param {number} before tokens that it had */
async function assertUsable(cache, whole, before) {
  assert.equal(cache.length, before);
  assert.equal(whole.length, before);
  assertSameBits(await cache.attend(longQuery), whole.attend(longQuery));
}

test('an append that one worker has no memory for changes nothing on the others, however often', async () => {
  const sdpa = /** @type {any} */ (await loadVariant({ threads: 2, maxMemory: 3_000_000 }));
  const plain = /** @type {any} */ (await loadVariant({ threads: 0 }));
  const [cache, whole] = [sdpa.createShardedKVCache(uneven), plain.createKVCache(uneven)];
  const first = tokens(1000);
  await cache.append(first, first);
  whole.append(first, first);
  const { capacity, byteLength } = cache;
  assert.equal(capacity, 1024);
  assert.equal(byteLength, 3 * 1024 * tokenBytes);
  const more = tokens(100);
  for (let i = 0; i < 20; i++) {
    const error = await assertRejects(cache.append(more, more), 'out-of-memory', /KV cache of 1 x 2048 tokens/);
    // Always the worker with two heads: the other one has given back what it took.
    assert.equal(error.needed, 2 * 2048 * tokenBytes);
    assert.deepEqual([cache.capacity, cache.byteLength], [capacity, byteLength]);
  }
  await assertUsable(cache, whole, 1000);
  const few = tokens(24);
  await cache.append(few, few);
  whole.append(few, few);
  await assertUsable(cache, whole, 1024);
  sdpa.dispose();
});

test('so do appends and evictions in pages that are shared', async () => {
  const sdpa = /** @type {any} */ (await loadVariant({ threads: 2, maxMemory: 3_000_000 }));
  const plain = /** @type {any} */ (await loadVariant({ threads: 0 }));
  const options = { ...uneven, pageSize: 16, capacity: 1024 };
  const pairs = [[sdpa.createShardedKVCache(options), plain.createKVCache(options)]];
  const first = tokens(1000);
  for (const cache of pairs[0]) await cache.append(first, first);
  pairs.push([await pairs[0][0].fork(), pairs[0][1].fork()]);
  const { capacity, byteLength } = pairs[0][0];
  const more = tokens(100);
  for (let i = 0; i < 10; i++) {
    for (const [cache, whole] of pairs) {
      for (const failing of [() => cache.append(more, more), () => cache.evict([3])]) {
        const error = await assertRejects(failing(), 'out-of-memory', /KV cache of 128 x 16 tokens/);
        assert.equal(error.needed, 2 * 2048 * tokenBytes);
      }
      assert.deepEqual([cache.capacity, cache.byteLength], [capacity, byteLength]);
      await assertUsable(cache, whole, 1000);
    }
  }
  // A page of its own is left for each.
  const one = tokens(1);
  for (const [cache, whole] of pairs) {
    await cache.append(one, one);
    whole.append(one, one);
    await assertUsable(cache, whole, 1001);
  }
  // The last page is shared again, and the other caches go while it is being copied.
  const [cache, whole] = [await pairs[0][0].fork(), pairs[0][1].fork()];
  const failing = cache.append(more, more);
  for (let i = 0; i < 20; i++) await null; // its orders have been sent, and no answer can have come
  for (const [sharded] of pairs.reverse()) sharded.dispose();
  await assertRejects(failing, 'out-of-memory', /KV cache of 128 x 16 tokens/);
  await assertUsable(cache, whole, 1001);
  // All the pages that there are.
  const rest = tokens(1024 - 1001);
  for (const both of [cache, whole]) await both.append(rest, rest);
  await assertUsable(cache, whole, 1024);
  sdpa.dispose();
});

test('a number that int8 cannot hold, in one head alone, keeps the token out of all of them', async () => {
  for (const threads of [0, 3]) {
    const sdpa = /** @type {any} */ (await loadVariant({ threads }));
    const options = { ...sizes, dtype: 'int8', capacity: 2 };
    const [cache, whole] = [sdpa.createShardedKVCache(options), sdpa.createKVCache(options)];
    for (let head = 0; head < numKvHeads; head++) {
      const [key, value] = [keys(), values()];
      value.data[(numKvHeads + head) * 4 * headDimV + 7] = Infinity;
      const { byteLength } = cache;
      await assertRejects(
        cache.append(key, value),
        'option',
        new RegExp(`batch row 1, head ${head}, token 2, element 1`),
      );
      assert.equal(cache.byteLength, byteLength || cache.byteLength);
      value.data[(numKvHeads + head) * 4 * headDimV + 7] = 1;
      await cache.append(key, value);
      whole.append(key, value);
      assertSameBits(await cache.attend(query), whole.attend(query));
    }
    sdpa.dispose();
  }
});

test('where there is no memory at first, ready and every call say so, and the others get theirs back', async () => {
  const sdpa = /** @type {any} */ (await loadVariant({ threads: 2, maxMemory: 3_000_000 }));
  for (let i = 0; i < 5; i++) {
    const cache = sdpa.createShardedKVCache({ ...uneven, capacity: 2700 });
    const key = tokens(1);
    void [cache.ready, cache.ready]; // a look that is not awaited is no unhandled rejection
    const appended = assertRejects(cache.append(key, key), 'out-of-memory', /1 x 2700 tokens/);
    await assertRejects(cache.ready, 'out-of-memory', /1 x 2700 tokens/);
    await appended;
    await assertRejects(cache.attend(longQuery), 'out-of-memory', /1 x 2700 tokens/);
    cache.dispose();
    assert.ok(cache.disposed);
  }
  const cache = sdpa.createShardedKVCache({ ...uneven, capacity: 2500 });
  await cache.ready;
  assert.equal(cache.threads, 2);
  sdpa.dispose();
});

for (const [how, kill] of endsOfWorkers) {
  test(`a worker that is ${how} takes its tokens with it: calls that run and later ones say so`, async (t) => {
    const { workers } = watchWorkers(t, { program: mortal });
    const sdpa = /** @type {any} */ (await loadVariant({ threads: 2 }));
    const [key, value] = [keys(), values()];
    const small = sdpa.createShardedKVCache({ batch: 1, numKvHeads: 1, headDim });
    await small.ready;
    const cache = sdpa.createShardedKVCache({ ...sizes, pageSize: 4 });
    const idle = await cache.fork();
    await cache.append(key, value);
    assert.equal(workers.length, 2);
    // The small one is on the first worker, the others on both.
    kill(workers[1]);
    const told =
      /^the tokens of (head 0|heads 1 to 2|heads 0 to 1|head 2) of this KV cache are lost: a worker has been lost$/;
    const calls = [cache.attend(query), cache.append(key, value), cache.truncate(0), cache.attend(query)];
    await Promise.all(calls.map((call) => call.catch(() => {})));
    await assertRejects(cache.attend(query), 'disposed', told);
    await assertRejects(calls[3], 'disposed', told);
    await assertRejects(cache.append(key, value), 'disposed', told);
    await assertRejects(idle.append(key, value), 'disposed', told);
    assertThrows(() => cache.length, 'disposed', told);
    assert.equal(cache.disposed, false);
    cache.dispose();
    assert.equal(cache.disposed, true);

    const one = random.tensor(1, 1, 1, headDim);
    await small.append(one, one);
    assert.equal((await small.attend(one)).out.data.length, headDim);
    const next = sdpa.createShardedKVCache(sizes);
    await next.append(key, value);
    assert.equal(next.threads, 2);
    assert.equal(workers.length, 3, 'another worker has been started');
    await untilWorkersRun(sdpa, 1);
    sdpa.dispose();
  });
}

for (const [how, program] of [...brokenPrograms, deafProgram]) {
  test(`where workers ${how} the shards are kept on this thread`, async (t) => {
    watchWorkers(t, { program });
    const sdpa = /** @type {any} */ (await loadVariant({ threads: 2 }));
    for (let i = 0; i < 2; i++) {
      const [cache, whole] = [sdpa.createShardedKVCache(sizes), sdpa.createKVCache(sizes)];
      const [key, value] = [keys(), values()];
      whole.append(key, value);
      await cache.append(key, value);
      assertSameBits(await cache.attend(query), whole.attend(query));
      assert.deepEqual([cache.shards, cache.threads], [2, 0]);
    }
    sdpa.dispose();
  });
}

test('a host that forbids threads keeps the shards on its one thread', () => {
  const got = jsonOf(`
    process.getBuiltinModule('node:worker_threads').Worker = class { constructor() { throw new Error('not allowed'); } };
    const { load } = await import('sdpa');
    const sdpa = await load({ variant: '${VARIANT}', threads: 2 });
    const cache = sdpa.createShardedKVCache({ batch: 1, numKvHeads: 2, headDim: 1 });
    const x = { data: Float32Array.of(1, 2), shape: [1, 2, 1, 1] };
    await cache.append(x, x);
    const { out } = await cache.attend(x);
    console.log(JSON.stringify([...out.data, cache.threads]));`);
  assert.deepEqual(got, [1, 2, 0]);
});

/** A cache with a token on two workers, in a process of its own. */
const kept = `
  const { load } = await import('sdpa');
  globalThis.sdpa = await load({ variant: '${VARIANT}', threads: 2 });
  globalThis.cache = sdpa.createShardedKVCache({ batch: 1, numKvHeads: 2, headDim: 1 });
  const x = { data: Float32Array.of(1, 2), shape: [1, 2, 1, 1] };`;

test('an idle cache does not keep the process alive, and a running call does until it has its result', () => {
  for (const source of [
    `${kept} await cache.append(x, x); await cache.attend(x); console.log(cache.threads);`,
    `${kept} void cache.append(x, x); void cache.attend(x).then(() => console.log(cache.threads));`,
    `${kept} const ended = cache.attend(x).catch(() => console.log(2)); cache.dispose(); await ended;`,
  ]) {
    const { status, stdout, stderr } = runModule(source);
    assert.equal(status, 0, stderr);
    assert.equal(stdout, '2\n');
  }
});

test('a cache that is forgotten gives its memory back, but not while a call runs', async (t) => {
  const { workers } = watchWorkers(t);
  for (const threads of [0, 1]) {
    const sdpa = /** @type {any} */ (await loadVariant({ threads }));
    const { held } = sdpa.memory();
    const dropped = () =>
      workers.flatMap(({ sent }) => sent).filter((/** @type {any} */ { order }) => order === 'drop').length;
    await (async () => {
      const cache = sdpa.createShardedKVCache(sizes);
      await cache.append(keys(), values());
      await cache.attend(query);
    })();
    await collectUntil(() => (threads ? dropped() === 1 : sdpa.memory().held === held));
    // Nobody has this one but its call.
    let over = false;
    const tokensOfMany = random.tensor(1, 2, 3000, 64);
    const call = (() => {
      const cache = sdpa.createShardedKVCache({ batch: 1, numKvHeads: 2, headDim: 64 });
      void cache.append(tokensOfMany, tokensOfMany);
      return cache.attend(tokensOfMany);
    })();
    void call.then(() => (over = true));
    await collectUntil(() => over);
    assert.equal((await call).out.data.length, 2 * 3000 * 64);
    sdpa.dispose();
  }
});

test('an instance that is forgotten ends the workers that keep its caches', async (t) => {
  const { workers } = watchWorkers(t);
  await (async () => {
    const sdpa = /** @type {any} */ (await loadVariant({ threads: 1 }));
    const cache = sdpa.createShardedKVCache(sizes);
    await cache.append(keys(), values());
  })();
  let over = false;
  workers[0].once('exit', () => (over = true));
  await collectUntil(() => over);
});

test('a cache keeps the instance that it belongs to', async () => {
  const cache = await (async () => {
    const sdpa = /** @type {any} */ (await loadVariant({ threads: 1 }));
    return sdpa.createShardedKVCache(sizes);
  })();
  let rounds = 0;
  await collectUntil(() => ++rounds > 20);
  await cache.append(keys(), values());
  assert.equal(cache.threads, 1);
  cache.dispose();
});
