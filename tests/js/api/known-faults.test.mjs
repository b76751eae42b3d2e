// What users of such software have met and no other test here shows by itself: see web/docs/faults.md.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { loadVariant } from '../helpers/sdpa.mjs';

/** @type {Awaited<ReturnType<typeof loadVariant>>} */
let sdpa;
before(async () => {
  sdpa = await loadVariant();
});
after(() => sdpa.dispose());

/** @param {number[]} shape @param {(i: number) => number} at */
const tensor = (shape, at) => ({
  data: Float32Array.from({ length: shape.reduce((a, b) => a * b) }, (_, i) => at(i)),
  shape,
});

test('the mean of values of one is exactly one for every number of keys to 1100', () => {
  const query = tensor([3, 8], () => 0);
  for (let keys = 1; keys <= 1100; keys++) {
    const key = tensor([keys, 8], (i) => Math.sin(i));
    const value = tensor([keys, 5], () => 1);
    const { out } = sdpa.attention(query, key, value);
    // A lane of padding that takes part would make it keys/(keys + 1) or less; a rounded reciprocal of the sum, the number before 1.
    assert.ok(
      out.data.every((x) => x === 1),
      `${keys} keys: ${out.data[0]}`,
    );
  }
});

test('every head size to 40 is that of the formula, with few keys and many', () => {
  for (let size = 1; size <= 40; size++) {
    for (const keys of [1, 6, 67]) {
      const query = tensor([2, size], (i) => Math.sin(3 * i + size));
      const key = tensor([keys, size], (i) => Math.cos(5 * i + size));
      const value = tensor([keys, size], (i) => Math.sin(7 * i + keys));
      const { out } = sdpa.attention(query, key, value);
      const at = (/** @type {typeof key} */ x, /** @type {number} */ row, /** @type {number} */ d) =>
        x.data[row * size + d];
      const columns = Array.from({ length: size }, (_, d) => d);
      for (let i = 0; i < 2; i++) {
        const weights = Array.from({ length: keys }, (_, j) =>
          Math.exp(columns.reduce((sum, d) => sum + at(query, i, d) * at(key, j, d), 0) / Math.sqrt(size)),
        );
        const total = weights.reduce((a, b) => a + b);
        for (const d of columns) {
          const exact = weights.reduce((sum, w, j) => sum + w * at(value, j, d), 0) / total;
          assert.ok(Math.abs(out.data[i * size + d] - exact) < 2e-6, `head size ${size}, ${keys} keys`);
        }
      }
    }
  }
});

test('50 000 × 50 000 pairs, more than 32 bits count, are no hindrance where no matrix is asked for', () => {
  const L = 50_000;
  const x = tensor([L, 1], () => 0);
  const value = tensor([L, 1], (i) => i % 1000);
  const { out } = sdpa.attention(x, x, value, { window: [1, 0] });
  assert.equal(out.data[0], 0);
  for (const i of [1, 46_340, 46_341, 46_342, 49_999]) {
    assert.equal(out.data[i], (value.data[i - 1] + value.data[i]) / 2, `row ${i}`);
  }
});

test('weights of less than 2^-100 of the largest are 0, so that no subnormal number slows a product', () => {
  const key = tensor([101, 4], (i) => (i % 4 || i === 0 ? 0 : -69.4 - 0.4 * (i / 4)));
  const query = tensor([3, 4], (i) => (i % 4 ? 0 : 2));
  const { out, scores } = sdpa.attention(query, key, key, { scores: 'weights' });
  for (let i = 0; i < 3; i++) assert.deepEqual([...new Set(scores.data.subarray(i * 101 + 1, (i + 1) * 101))], [0]);
  assert.ok(out.data.every((x) => x === 0));
  const near = tensor([2, 4], (i) => (i === 4 ? -60 : 0));
  const weight = sdpa.attention(query, near, near, { scores: 'weights' }).scores.data[1];
  assert.ok(Math.abs(weight - Math.exp(-60)) < 2 ** -99, `${weight}`);
});

/** A cache of one head with room for so many tokens. @param {number} capacity */
const fixedCache = (capacity) => sdpa.createKVCache({ batch: 1, numKvHeads: 1, headDim: 32, capacity, fixed: true });

test('a step of decoding takes no more memory over 20 000 tokens than over 500: the tokens are not copied', () => {
  const cache = fixedCache(20_000);
  const piece = tensor([500, 32], (i) => Math.sin(i));
  const query = tensor([1, 32], () => 1);
  cache.append(piece, piece);
  cache.attend(query);
  const then = sdpa.memory();
  for (let n = 1; n < 40; n++) cache.append(piece, piece);
  const { out } = cache.attend(query);
  assert.equal(cache.length, 20_000);
  const now = sdpa.memory();
  assert.equal(now.held, then.held);
  // A copy of the keys alone would be 2.5 MB.
  assert.ok(now.peak - then.peak < 65_536, `${now.peak - then.peak} bytes more`);
  const few = sdpa.attention(query, piece, piece).out;
  assert.ok(
    out.data.every((y, d) => Math.abs(y - few.data[d]) < 1e-5),
    'the same 500 tokens forty times',
  );
  cache.dispose();
});

test('3000 steps of decoding allocate nothing once the first is done', () => {
  const cache = fixedCache(3001);
  const token = tensor([1, 32], (i) => Math.sin(i));
  const step = () => {
    cache.append(token, token);
    cache.attend(token);
    return sdpa.memory();
  };
  const first = step();
  const held = new Set();
  const sizes = new Set();
  for (let n = 0; n < 3000; n++) {
    const now = step();
    held.add(now.held);
    sizes.add(now.wasm);
  }
  assert.deepEqual([...held], [first.held]);
  assert.deepEqual([...sizes], [first.wasm]);
  cache.dispose();
});
