// Sharded caches as an API: order, inputs, errors, aborts, progress, the end.

import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { assertRejects, assertThrows } from '../helpers/errors.mjs';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant, resident } from '../helpers/sdpa.mjs';
import { assertSameBits } from '../helpers/workers.mjs';
import { both, numHeads, randomOptions, sizes } from './sharded-model.mjs';

const { batch, numKvHeads, headDim, headDimV } = sizes;
const random = randomSource(31);
const keys = (n = 4) => random.tensor(batch, numKvHeads, n, headDim);
const values = (n = 4) => random.tensor(batch, numKvHeads, n, headDimV);
const queries = (n = 1) => random.tensor(batch, numHeads, n, headDim);

/** A cache with so many tokens that an attend of many rows has many slices. @param {any} sdpa */
async function longCache(sdpa) {
  const cache = sdpa.createShardedKVCache({ batch: 1, numKvHeads: 2, headDim: 64, capacity: 2048 });
  const tokens = random.tensor(1, 2, 2048, 64);
  await cache.append(tokens, tokens);
  return { cache, query: random.tensor(1, 4, 512, 64), tokens };
}

for (const threads of [0, 2]) {
  const how = threads ? 'on workers' : 'on this thread';

  test(`${how}: what is called first is done first, without waiting`, async () => {
    const sdpa = /** @type {any} */ (await loadVariant({ threads }));
    const options = { ...sizes, pageSize: 2, capacity: 2 };
    const [sharded, whole] = [sdpa.createShardedKVCache(options), sdpa.createKVCache(options)];
    /** @type {[Promise<any>, any][]} */
    const results = [];
    const run = (/** @type {string} */ method, /** @type {any[]} */ ...args) => {
      results.push([sharded[method](...args), whole[method](...args)]);
    };
    for (let i = 0; i < 10; i++) {
      run('append', keys(), values());
      run('attend', queries(), { returnLse: true });
      run('truncate', 3 + i);
      run('attend', queries(2), { mask: { data: new Uint8Array(whole.length).fill(1, 0, 2), shape: [whole.length] } });
      run('evict', [1, 2]);
      run('append', keys(3), values(3), { lengths: [1, 3] });
      run('attend', queries(3));
    }
    const [fork, wholeFork] = [sharded.fork(), whole.fork()];
    run('append', keys(), values());
    run('reset');
    run('append', keys(1), values(1));
    run('attend', queries());
    assert.equal(sharded.length, 0, 'nothing has ended yet');
    for (const [got, want] of results) {
      if (want) assertSameBits(await got, want);
      else assert.equal(await got, undefined);
    }
    assert.equal(sharded.length, 1);
    await both({ sharded: await fork, whole: wholeFork }, 'attend', queries(), { returnLse: true });
    assert.deepEqual((await fork).lengths, wholeFork.lengths);
    sdpa.dispose();
  });

  test(`${how}: what happens to the inputs after the call does not matter`, async () => {
    const sdpa = /** @type {any} */ (await loadVariant({ threads }));
    const [sharded, whole] = [sdpa.createShardedKVCache(sizes), sdpa.createKVCache(sizes)];
    const [key, value, query] = [keys(), values(), queries()];
    const residentValue = resident(sdpa, value);
    const lengths = Int32Array.of(4, 3);
    const mask = { data: Uint8Array.of(1, 0, 1, 1), shape: [4] };
    const bias = random.tensor(numHeads, 1, 4);
    const queryLengths = Int32Array.of(1, 0);
    whole.append(key, value, { lengths });
    const want = whole.attend(query, { mask, bias, queryLengths });
    const kept = Int32Array.of(2, 1);
    const calls = [
      sharded.append(key, residentValue, { lengths }),
      sharded.attend(query, { mask, bias, queryLengths }),
      sharded.truncate(kept),
    ];
    for (const { data } of [key, query, bias, residentValue, mask]) data.fill(NaN);
    for (const array of [lengths, queryLengths, kept]) array.fill(0);
    residentValue.dispose();
    structuredClone(query.data.buffer, { transfer: [query.data.buffer] });
    sdpa.tensor([20_000_000]);
    await Promise.all(calls);
    assertSameBits(await calls[1], want);
    assert.deepEqual([...sharded.lengths], [2, 1]);
    sdpa.dispose();
  });

  test(`${how}: options of each head, of every kind and both layouts`, async () => {
    const sdpa = /** @type {any} */ (await loadVariant({ threads }));
    const pair = { sharded: sdpa.createShardedKVCache(sizes), whole: sdpa.createKVCache(sizes) };
    await both(pair, 'append', keys(70), values(70), { lengths: [70, 66] });
    for (let i = 0; i < 40; i++) {
      const L = 1 + (i % 5);
      const options = randomOptions(sdpa, random, L, 70, 0.5);
      const blhd = i % 2 === 1;
      const query = blhd ? random.tensor(batch, L, numHeads, headDim) : queries(L);
      await both(pair, 'attend', query, blhd ? { ...options, layout: 'blhd' } : options);
    }
    sdpa.dispose();
  });

  test(`${how}: out receives the result, as an array or in wasm memory`, async () => {
    const sdpa = /** @type {any} */ (await loadVariant({ threads }));
    const [sharded, whole] = [sdpa.createShardedKVCache(sizes), sdpa.createKVCache(sizes)];
    const [key, value, query] = [keys(), values(), queries(2)];
    const shape = [batch, numHeads, 2, headDimV];
    const [array, tensor, lost] = [new Float32Array(72), sdpa.tensor(shape), sdpa.tensor(shape)];
    tensor.data.fill(7);
    const early = sharded.attend(query, { out: tensor });
    assert.equal((await early).out, tensor);
    assert.ok(
      tensor.data.every((/** @type {number} */ x) => x === 0),
      'an empty cache',
    );
    whole.append(key, value);
    await sharded.append(key, value);
    const want = whole.attend(query).out.data;
    const failing = assertRejects(sharded.attend(query, { out: lost }), 'disposed', /tensor of shape/);
    lost.dispose();
    await failing;
    assert.equal((await sharded.attend(query, { out: array })).out.data, array);
    assert.deepEqual(array, want);
    assert.equal((await sharded.attend(query, { out: tensor })).out, tensor);
    assert.deepEqual(tensor.data, want);
    sdpa.dispose();
  });

  test(`${how}: wrong arguments reject with the errors of a whole cache, and nothing changes`, async () => {
    const sdpa = /** @type {any} */ (await loadVariant({ threads }));
    const options = { ...sizes, capacity: 6, fixed: true };
    const pair = { sharded: sdpa.createShardedKVCache(options), whole: sdpa.createKVCache(options) };
    const [key, value, query] = [keys(), values(), queries()];
    await both(pair, 'append', key, value);
    const wrong = /** @type {[string, ...any[]][]} */ ([
      ['append', key, key],
      ['append', key],
      ['append', keys(5), value],
      ['append', random.tensor(batch, 2, 4, headDim), value],
      ['append', key, value, { length: 1 }],
      ['append', key, value, { lengths: [1] }],
      ['append', key, value, { lengths: [1, 5] }],
      ['append', key, value, { layout: 'lhbd' }],
      ['append', keys(3), values(3)],
      ['append', keys(3), values(3), { lengths: [0, 3] }],
      ['attend', value],
      ['attend', random.tensor(batch, 4, 1, headDim)],
      ['attend', query, { align: 'lower-right' }],
      ['attend', query, { noSuchOption: 1 }],
      ['attend', query, { mask: { data: new Uint8Array(5), shape: [5] } }],
      ['attend', query, { bias: { data: new Float32Array(4), shape: [2, 2] } }],
      ['attend', query, { sinks: new Float32Array(2) }],
      ['attend', query, { out: new Float32Array(3) }],
      ['attend', query, 3],
      ['truncate', 5],
      ['truncate', -1],
      ['truncate', [4, 5]],
      ['truncate', 'all'],
      ['evict', [4]],
      ['evict', 4],
      ['fork'],
    ]);
    for (const [method, ...args] of wrong) {
      const { error } = await both(pair, method, ...args);
      assert.ok(error, `${method} was right`);
      assert.deepEqual([...pair.sharded.lengths], [4, 4]);
    }
    await both(pair, 'append', keys(2), values(2));
    await both(pair, 'attend', query, { returnLse: true });
    await assertRejects(pair.sharded.attend(query, { signal: 3 }), 'type', /^signal must be/);
    await assertRejects(pair.sharded.attend(query, { onProgress: 3 }), 'type', /^onProgress must be/);
    sdpa.dispose();
  });

  test(`${how}: an abort ends an attend at any moment, and the cache stays as it was`, async () => {
    const sdpa = /** @type {any} */ (await loadVariant({ threads }));
    const { cache, query, tokens } = await longCache(sdpa);
    const want = await cache.attend(query);
    const early = { name: 'AbortError' };
    await assert.rejects(cache.attend(query, { signal: AbortSignal.abort() }), early);
    for (const when of ['at once', 'in its first slice', 'while it waits']) {
      const controller = new AbortController();
      const { signal } = controller;
      const before = when === 'while it waits' ? cache.attend(query) : null;
      let seen = 0;
      const call = cache.attend(query, {
        signal,
        onProgress: () => {
          seen++;
          controller.abort(when);
        },
      });
      assert.equal(getEventListeners(signal, 'abort').length, 1);
      const longer = cache.append(tokens, tokens);
      if (when !== 'in its first slice') controller.abort(when);
      await assert.rejects(call, (reason) => reason === when);
      assert.equal(getEventListeners(signal, 'abort').length, 0);
      assert.equal(seen, when === 'in its first slice' ? 1 : 0);
      if (before) assertSameBits(await before, want);
      await longer;
      assert.equal(cache.length, 4096);
      await cache.truncate(2048);
      assertSameBits(await cache.attend(query), want);
    }
    const controller = new AbortController();
    assertSameBits(await cache.attend(query, { signal: controller.signal }), want);
    controller.abort();
    sdpa.dispose();
  });

  test(`${how}: a long attend comes in slices, and its progress grows to the total`, async () => {
    const sdpa = /** @type {any} */ (await loadVariant({ threads }));
    const { cache, query } = await longCache(sdpa);
    /** @type {any[]} */
    const seen = [];
    await cache.attend(query, { onProgress: (/** @type {any} */ progress) => seen.push(progress) });
    assert.ok(seen.length > 2, `${seen.length} slices`);
    assert.ok(seen.every(({ done, total }, i) => total === 2048 && done > (i ? seen[i - 1].done : 0)));
    assert.equal(seen.at(-1).done, 2048);
    const mine = new Error('mine');
    const failing = cache.attend(query, {
      onProgress: () => {
        throw mine;
      },
    });
    await assert.rejects(failing, (error) => error === mine);
    await cache.reset();
    seen.length = 0;
    await cache.attend(query, { onProgress: (/** @type {any} */ progress) => seen.push(progress) });
    assert.deepEqual(seen, [{ done: 2048, total: 2048 }]);
    sdpa.dispose();
  });

  test(`${how}: dispose() ends what runs and what waits, and forks live on`, async () => {
    const sdpa = /** @type {any} */ (await loadVariant({ threads }));
    const cache = sdpa.createShardedKVCache({ ...sizes, pageSize: 4 });
    const [key, value, query] = [keys(), values(), queries()];
    await cache.append(key, value);
    const want = await cache.attend(query);
    const fork = await cache.fork();
    const ended = /this KV cache has been disposed of/;
    const calls = [
      cache.append(key, value),
      cache.attend(query),
      cache.fork(),
      cache.evict([0]),
      cache.truncate(1),
      cache.ready,
    ];
    cache.dispose();
    cache.dispose();
    for (const call of calls.slice(0, 5)) await assertRejects(call, 'disposed', ended);
    await calls[5].catch(() => {});
    assert.ok(cache.disposed);
    for (const method of ['append', 'attend', 'reset', 'fork']) {
      await assertRejects(cache[method](key, value), 'disposed', ended);
    }
    for (const name of ['length', 'lengths', 'capacity', 'byteLength', 'shards', 'threads']) {
      assertThrows(() => cache[name], 'disposed', ended);
    }
    assertSameBits(await fork.attend(query), want);
    const never = sdpa.createShardedKVCache(sizes);
    never.dispose();
    const last = [fork.attend(query), fork.append(key, value), fork.attend(query)];
    sdpa.dispose();
    for (const call of last) await assertRejects(call, 'disposed', /instance has been disposed of/);
    await assertRejects(fork.attend(query), 'disposed', /the sdpa instance of this KV cache/);
    assertThrows(() => fork.length, 'disposed', /the sdpa instance of this KV cache/);
    assertThrows(() => sdpa.createShardedKVCache(sizes), 'disposed', /instance has been disposed of/);
  });
}

test('options are those of createKVCache, checked when it is called', async () => {
  const sdpa = /** @type {any} */ (await loadVariant({ threads: 2 }));
  const wrong = [
    undefined,
    {},
    { ...sizes, heads: 1 },
    { ...sizes, dtype: 'int4' },
    { ...sizes, window: 3, fixed: true },
  ];
  for (const options of wrong) {
    /** @type {any} */
    let error;
    try {
      sdpa.createKVCache(options);
    } catch (thrown) {
      error = thrown;
    }
    const own = error.message.replace('createKVCache', 'createShardedKVCache');
    const same = new RegExp(`^${own.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`);
    assertThrows(() => sdpa.createShardedKVCache(options), error.code, same);
  }
  sdpa.dispose();
});

test('a call whose arguments dispose of the cache ends with that', async () => {
  const sdpa = /** @type {any} */ (await loadVariant({ threads: 0 }));
  for (const run of /** @type {((cache: any, end: () => any) => Promise<any>)[]} */ ([
    (cache, end) =>
      cache.append(
        {
          ...keys(),
          get data() {
            return end() ?? keys().data;
          },
        },
        values(),
      ),
    (cache, end) =>
      cache.attend(queries(), {
        get causal() {
          return end() ?? true;
        },
      }),
    (cache, end) => cache.truncate(new Proxy([0, 0], { get: (of, name) => end() ?? Reflect.get(of, name) })),
  ])) {
    const cache = sdpa.createShardedKVCache(sizes);
    await assertRejects(
      run(cache, () => cache.dispose()),
      'disposed',
      /this KV cache/,
    );
  }
  sdpa.dispose();
});
