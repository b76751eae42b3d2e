// attentionAsync() gives the bits of attention(), however many workers share the call.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { random16, randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { assertSameBits, untilWorkersRun, watchWorkers } from '../helpers/workers.mjs';

const random = randomSource(20);
const x = random.tensor;

/** @param {'float16' | 'bfloat16'} dtype @param {number[]} shape */
const half = (dtype, ...shape) => ({
  data: random16(
    shape.reduce((a, b) => a * b),
    dtype,
    random.uniform,
  ),
  shape,
  dtype,
});

/** @param {number[]} shape */
const mask = (...shape) => ({
  data: Uint8Array.from({ length: shape.reduce((a, b) => a * b) }, () => (random.uniform() < 0.7 ? 1 : 0)),
  shape,
});

const L = 500;
const S = 700;

/** @type {[string, any[], any][]} query, key and value; options */
const grid = [
  ['dense', [x(2, 2, L, 32), x(2, 2, L, 32), x(2, 2, L, 32)], { returnLse: true }],
  ['causal', [x(1, 3, L, 24), x(1, 3, L, 24), x(1, 3, L, 40)], { causal: true, returnLse: true }],
  ['lower-right', [x(2, L, 32), x(2, S, 32), x(2, S, 32)], { causal: true, align: 'lower-right', returnLse: true }],
  ['more queries than keys', [x(2, S, 32), x(2, L, 32), x(2, L, 32)], { causal: true, align: 'lower-right' }],
  ['upper-left', [x(2, L, 32), x(2, S, 32), x(2, S, 32)], { causal: true, align: 'upper-left' }],
  ['one offset', [x(2, L, 32), x(2, S, 32), x(2, S, 32)], { causal: true, queryOffset: 33 }],
  ['the farthest offset', [x(2, L, 32), x(2, S, 32), x(2, S, 32)], { causal: true, queryOffset: 2 ** 31 }],
  [
    'a window from the farthest offset',
    [x(2, L, 32), x(2, S, 32), x(2, S, 32)],
    { window: [2 ** 31 - 100, 3], queryOffset: 2 ** 31, returnLse: true },
  ],
  [
    'the farthest offset before',
    [x(2, L, 32), x(2, S, 32), x(2, S, 32)],
    { window: [9, 2 ** 31 + 9], queryOffset: -(2 ** 31) },
  ],
  [
    'offsets per batch row',
    [x(3, 1, L, 32), x(3, 1, S, 32), x(3, 1, S, 32)],
    { window: [90, 5], queryOffset: Int32Array.of(-40, 0, 190), returnLse: true },
  ],
  ['window', [x(2, L, 32), x(2, L, 32), x(2, L, 32)], { window: [100, Infinity] }],
  ['causal window', [x(2, L, 32), x(2, L, 32), x(2, L, 32)], { window: [64, 3], causal: true }],
  [
    'lengths',
    [x(3, 2, L, 32), x(3, 2, S, 32), x(3, 2, S, 32)],
    {
      causal: true,
      align: 'lower-right',
      queryLengths: Int32Array.of(L, 0, 77),
      kvLengths: Int32Array.of(0, 300, S),
      returnLse: true,
    },
  ],
  ['mask of keys', [x(2, 2, L, 16), x(2, 2, S, 16), x(2, 2, S, 16)], { mask: mask(2, 1, 1, S) }],
  ['mask of rows and keys', [x(2, 2, L, 16), x(2, 2, S, 16), x(2, 2, S, 16)], { mask: mask(L, S), returnLse: true }],
  ['mask of rows', [x(2, L, 16), x(2, S, 16), x(2, S, 16)], { mask: mask(2, L, 1), returnLse: true }],
  ['bias of heads', [x(2, 3, L, 16), x(2, 3, S, 16), x(2, 3, S, 16)], { bias: x(3, L, S), mask: mask(2, 1, L, 1) }],
  ['bias of 16 bits', [x(2, L, 16), x(2, S, 16), x(2, S, 16)], { bias: half('float16', 1, S), softcap: 2.5 }],
  ['scale and softcap', [x(2, L, 32), x(2, S, 32), x(2, S, 32)], { scale: -0.3, softcap: 1.5 }],
  ['grouped heads', [x(1, 6, L, 32), x(1, 2, S, 32), x(1, 2, S, 48)], { returnLse: true, mask: mask(6, 1, S) }],
  ['one key head', [x(2, 5, L, 32), x(2, 1, S, 32), x(2, 1, S, 32)], { causal: true, align: 'upper-left' }],
  [
    'blhd',
    [x(2, L, 4, 32), x(2, S, 2, 32), x(2, S, 2, 40)],
    { layout: 'blhd', returnLse: true, window: [200, 200], align: 'lower-right' },
  ],
  ['blhd of wide rows', [x(L, 2, 100), x(S, 2, 100), x(S, 2, 130)], { layout: 'blhd', scores: 'capped', softcap: 3 }],
  ['one head', [x(L, 64), x(S, 64), x(S, 64)], { returnLse: true, scores: 'biased', bias: x(L, 1) }],
  ['float16', [half('float16', 2, L, 32), half('float16', 2, S, 32), half('float16', 2, S, 32)], { returnLse: true }],
  ['bfloat16 keys in blhd', [x(L, 4, 32), half('bfloat16', S, 2, 32), x(S, 2, 32)], { layout: 'blhd' }],
  ['scores', [x(2, 2, L, 16), x(2, 2, L, 16), x(2, 2, L, 16)], { scores: 'scaled', causal: true }],
  ['weights', [x(1, 4, L, 16), x(1, 2, S, 16), x(1, 2, S, 16)], { scores: 'weights', returnLse: true }],
  [
    'many small entries',
    [x(150, 3, 49, 16), x(150, 3, 49, 16), x(150, 3, 49, 16)],
    { bias: x(3, 49, 49), mask: mask(150, 1, 49, 49), returnLse: true },
  ],
  [
    'many ragged entries',
    [x(90, 2, 20, 16), x(90, 1, 200, 16), x(90, 1, 200, 16)],
    {
      causal: true,
      align: 'lower-right',
      kvLengths: Int32Array.from({ length: 90 }, (_, b) => (b * 37) % 201),
      queryLengths: Int32Array.from({ length: 90 }, (_, b) => b % 21),
      returnLse: true,
    },
  ],
  ['one query row', [x(2, 8, 1, 64), x(2, 2, 3000, 64), x(2, 2, 3000, 64)], { returnLse: true }],
  ['one of everything', [x(1, 1), x(1, 1), x(1, 1)], { returnLse: true, scores: 'weights' }],
];

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

test('rows that see more keys come in smaller slices', async (t) => {
  const { slices } = watchWorkers(t);
  const sdpa = await loadVariant({ threads: 1 });
  await untilWorkersRun(sdpa, 1);
  const { length } = slices();
  const one = x(1, 3000, 32);
  await sdpa.attentionAsync(one, one, one, { causal: true });
  // The first two are sent at once, and have the same cost at most.
  const [first, second] = slices()
    .slice(length)
    .map(({ work }) => work.rows);
  assert.ok(first > second, `${first} rows, then ${second}`);
  sdpa.dispose();
});
