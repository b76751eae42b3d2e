// attentionAsync() gives the bits of attention(), however many workers share the call.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { masks } from 'sdpa';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { assertSameBits, untilWorkersRun, watchWorkers } from '../helpers/workers.mjs';
import { grid, L } from './grid.mjs';

const { tensor: x } = randomSource(20);

test('slices on this thread give the bits of one call', async () => {
  let cutByRows = false;
  for (const [name, [query, key, value], options] of grid) {
    // A new instance knows nothing of its speed, and starts with short slices.
    const sdpa = await loadVariant({ threads: 0 });
    const want = sdpa.attention(query, key, value, options);
    const onProgress = (/** @type {any} */ { done }) => void (cutByRows ||= query.shape.includes(L) && done % L > 0);
    assertSameBits(await sdpa.attentionAsync(query, key, value, { ...options, onProgress }), want, name);
    assert.equal(sdpa.threads, 0);
    sdpa.dispose();
  }
  assert.ok(cutByRows, 'no head was cut by rows');
});

for (const threads of [1, 2, 3, 7]) {
  test(`${threads} workers give the bits of one call`, async (t) => {
    const { workers, slices } = watchWorkers(t);
    const sdpa = await loadVariant({ threads });
    await untilWorkersRun(sdpa, threads);
    for (const [name, [query, key, value], options] of grid) {
      const want = sdpa.attention(query, key, value, options);
      const before = slices().length;
      assertSameBits(await sdpa.attentionAsync(query, key, value, options), want, name);
      assert.ok(slices().length > before, `${name} was not computed by workers`);
    }
    assert.equal(workers.length, threads);
    assert.equal(sdpa.threads, threads);
    assert.ok(
      slices().some(({ work }) => work.rows < L && work.rows % 48 === 0),
      'no head was dealt out by rows',
    );
    assert.ok(
      slices().some(({ keys }) => !keys),
      'the keys were sent again with each slice',
    );
    sdpa.dispose();
  });
}

test('keys are sent once to each worker and head', async (t) => {
  const { workers } = watchWorkers(t);
  const sdpa = await loadVariant({ threads: 2 });
  await untilWorkersRun(sdpa, 2);
  const one = x(1, 3000, 32);
  const before = workers.map(({ sent }) => sent.length);
  await sdpa.attentionAsync(one, one, one, { causal: true });
  for (const [i, { sent }] of workers.entries()) {
    const slices = sent.slice(before[i]).filter((/** @type {any} */ { type }) => type === 'slice');
    assert.ok(slices.length > 1, `worker ${i} got ${slices.length} slices`);
    assert.equal(slices.filter((/** @type {any} */ { keys }) => keys).length, 1);
  }
  sdpa.dispose();
});

test('a block mask is sent once to each worker and call', async (t) => {
  const { workers } = watchWorkers(t);
  const sdpa = await loadVariant({ threads: 2 });
  await untilWorkersRun(sdpa, 2);
  const call = x(4, 1500, 32);
  for (const blockMask of [masks.causal(1500), masks.window(1500, 1500, [300, 300])]) {
    const before = workers.map(({ sent }) => sent.length);
    const want = sdpa.attention(call, call, call, { blockMask });
    assertSameBits(await sdpa.attentionAsync(call, call, call, { blockMask }), want);
    for (const [i, { sent }] of workers.entries()) {
      const slices = sent.slice(before[i]).filter((/** @type {any} */ { type }) => type === 'slice');
      assert.ok(slices.length > 1, `worker ${i} got ${slices.length} slices`);
      assert.equal(slices.filter((/** @type {any} */ { blocks }) => blocks).length, 1);
    }
  }
  assertSameBits(
    await sdpa.attentionAsync(call, call, call),
    sdpa.attention(call, call, call),
    'without one afterwards',
  );
  sdpa.dispose();
});

test('rows that see more keys come in smaller slices', async (t) => {
  const { slices } = watchWorkers(t);
  const sdpa = await loadVariant({ threads: 1 });
  await untilWorkersRun(sdpa, 1);
  const rows = 3000;
  const one = x(1, rows, 32);
  // The first 1024 rows see 64 keys, the others all of them.
  const tiles = {
    data: Uint8Array.from({ length: rows * rows }, (_, at) => Number(at >= 1024 * rows || at % rows < 64)),
    shape: [rows, rows],
  };
  const packed = Int32Array.from({ length: 66 }, (_, s) => (s < 65 ? 16 * s : rows));
  for (const [name, options] of /** @type {[string, any][]} */ ([
    ['causal', { causal: true }],
    ['blockMask', { blockMask: masks.fromDense(tiles) }],
    ['cuSeqlens', { cuSeqlens: { query: packed, key: packed } }],
    ['globalKeys', { window: [8, 8], globalKeys: rows, causal: true }],
  ])) {
    const { length } = slices();
    await sdpa.attentionAsync(one, one, one, options);
    // The first two are sent at once, and have the same cost at most.
    const [first, second] = slices()
      .slice(length)
      .map(({ work }) => work.rows);
    assert.ok(first > second, `${name}: ${first} rows, then ${second}`);
  }
  sdpa.dispose();
});
