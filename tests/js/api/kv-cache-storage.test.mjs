// What a KV cache keeps: rounding of its storage types, what a ring loses, what evict moves.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { largestError, randomSource, referenceAttention } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { assertSameBits } from '../helpers/workers.mjs';
import { toHalf, toInt8 } from './kv-cache-model.mjs';
import { pieces, tokens } from './kv-cache-tokens.mjs';

const random = randomSource(9);
const shape = { batch: 2, numKvHeads: 2, headDim: 48, headDimV: 40 };
const length = 331;
const query = random.tensor(2, 6, length, 48);
const key = random.tensor(2, 2, length, 48);
const value = random.tensor(2, 2, length, 40);

test('a float16 cache is attention over float16 tensors, bit for bit, whatever is appended', async () => {
  const sdpa = await loadVariant();
  const half = (/** @type {any} */ tensor) => {
    const copy = sdpa.tensor(tensor.shape, 'float16');
    copy.data.set(Uint16Array.from(tensor.data, halfBits));
    return copy;
  };
  const want = sdpa.attention(query, half(key), half(value), { causal: true });
  for (const give of [
    (/** @type {any} */ x) => x,
    (/** @type {any} */ x) => ({ data: Uint16Array.from(x.data, halfBits), shape: x.shape, dtype: 'float16' }),
    half,
  ]) {
    for (const kind of [{}, { pageSize: 16 }]) {
      const cache = sdpa.createKVCache({ ...shape, dtype: 'float16', ...kind });
      cache.append(give(key), give(value));
      assertSameBits(cache.attend(query), want);
    }
  }
});

/** @param {number} x @returns {number} bits of the nearest binary16 number */
function halfBits(x) {
  const near = toHalf(x);
  const size = Math.abs(near);
  const sign = near < 0 || Object.is(near, -0) ? 0x8000 : 0;
  if (size === Infinity) return sign | 0x7c00;
  if (size < 2 ** -14) return sign | (size * 2 ** 24);
  const exponent = Math.floor(Math.log2(size));
  return sign | ((exponent + 15) << 10) | (size / 2 ** (exponent - 10) - 1024);
}

test('float16 rounds to nearest, ties to even, and to infinity from 65520 on', async () => {
  const sdpa = await loadVariant();
  const step = 2 ** -10;
  const given = [1 + step / 2, 1 + 1.5 * step, 1 + 0.51 * step, 65519, 65520, -7e4, 2 ** -25, 1.5 * 2 ** -24, -0.1];
  const want = [1, 1 + 2 * step, 1 + step, 65504, Infinity, -Infinity, 0, 2 ** -23, -0.0999755859375];
  const headDim = given.length;
  const cache = sdpa.createKVCache({ batch: 1, numKvHeads: 1, headDim, dtype: 'float16' });
  const row = { data: Float32Array.from(given), shape: [1, headDim] };
  cache.append({ data: new Float32Array(headDim), shape: [1, headDim] }, row);
  const { out } = cache.attend({ data: new Float32Array(headDim), shape: [1, headDim] });
  assert.deepEqual([...out.data], want);
});

test('a number in an int8 cache is off by at most half a scale, max|x|/254', async () => {
  const sdpa = await loadVariant();
  const [heads, n, dim] = [3, 50, 33];
  const cache = sdpa.createKVCache({ batch: 2, numKvHeads: heads, headDim: dim, dtype: 'int8' });
  const x = random.tensor(2, heads, n, dim);
  // Rows of very different size, one of zeros, one with ties, one of the smallest and one of the largest numbers.
  for (let i = 0; i < x.data.length; i++) x.data[i] *= 10 ** ((Math.floor(i / dim) % 9) - 4);
  x.data.fill(0, dim, 2 * dim);
  x.data.set([127, 0.5, 1.5, 2.5, -0.5, -1.5, 126.5], 2 * dim);
  x.data.fill(0, 2 * dim + 7, 3 * dim);
  for (let d = 0; d < dim; d++) {
    x.data[3 * dim + d] = (d % 2 ? -d : d) * 2 ** -149;
    x.data[4 * dim + d] = (d - 16) * 2e37;
  }
  cache.append(x, x);
  const stored = readBack(cache, 2, heads, n, dim);
  for (const [name, got] of Object.entries(stored)) {
    for (let r = 0; r < x.data.length / dim; r++) {
      const row = x.data.subarray(r * dim, (r + 1) * dim);
      const top = Math.max(...row.map(Math.abs));
      // scale/2, and the float32 product q·scale is rounded once; subnormal scales are rounded up to a step of 2^-149.
      const bound = Math.max(top / 254, 2 ** -150) + top * 2 ** -24;
      for (let d = 0; d < dim; d++) {
        const error = Math.abs(got[r * dim + d] - row[d]);
        assert.ok(error <= bound, `${name} row ${r}[${d}]: ${row[d]} became ${got[r * dim + d]}, off by ${error}`);
      }
    }
  }
  // The largest number of a row is kept but for the rounding of its scale; ties go to the even neighbour.
  assert.deepEqual([...stored.value.subarray(2 * dim, 2 * dim + 8)], [127, 0, 2, 2, 0, -2, 126, 0]);
  assert.deepEqual([...stored.key.subarray(2 * dim, 2 * dim + 8)], [127, 0, 2, 2, 0, -2, 126, 0]);
});

/**
 * What a cache holds, as float32: keys by queries of one 1, values by weights of one 1.
 * @param {any} cache
 * @param {number} batch
 * @param {number} heads
 * @param {number} n
 * @param {number} dim
 */
function readBack(cache, batch, heads, n, dim) {
  const unit = new Float32Array(batch * heads * dim * dim);
  for (let r = 0; r < batch * heads * dim; r++) unit[r * dim + (r % dim)] = 1;
  const options = { causal: false, scale: 1, scores: 'scaled' };
  const { scores } = cache.attend({ data: unit, shape: [batch, heads, dim, dim] }, options);
  const found = { key: new Float32Array(batch * heads * n * dim), value: new Float32Array(batch * heads * n * dim) };
  for (let r = 0; r < batch * heads; r++)
    for (let d = 0; d < dim; d++)
      for (let j = 0; j < n; j++) found.key[(r * n + j) * dim + d] = scores.data[(r * dim + d) * n + j];
  const none = { data: new Float32Array(batch * heads * n * dim), shape: [batch, heads, n, dim] };
  found.value = cache.attend(none, { window: [0, 0] }).out.data;
  return found;
}

test('an int8 cache attends over the rounded numbers, in every kind of cache', async () => {
  const sdpa = await loadVariant();
  /** @param {any} tensor */
  const rounded = ({ data, shape: sizes }) => {
    const dim = sizes[3];
    const copy = Float64Array.from(data);
    for (let at = 0; at < copy.length; at += dim) copy.set(toInt8([...data.subarray(at, at + dim)]), at);
    return { data: copy, shape: sizes };
  };
  const [k, v] = [tokens(key, 0, 150), tokens(value, 0, 150)];
  const q = tokens(query, 0, 20);
  const want = referenceAttention(q, rounded(k), rounded(v), { causal: true, align: 'lower-right' });
  for (const kind of [{}, { pageSize: 16 }, { pageSize: 5 }, { window: 150 }, { window: 100, globalKeys: 50 }]) {
    const cache = sdpa.createKVCache({ ...shape, dtype: 'int8', ...kind });
    for (const [from, to] of pieces(150, [3, 40])) cache.append(tokens(k, from, to), tokens(v, from, to));
    assert.ok(largestError(cache.attend(q).out.data, want.out) <= 2e-6);
  }
});

test('a ring loses what it drops: truncating does not bring it back', async () => {
  const sdpa = await loadVariant();
  const cache = sdpa.createKVCache({ batch: 1, numKvHeads: 1, headDim: 1, window: 4, globalKeys: 1 });
  const row = (/** @type {number[]} */ ...numbers) => ({
    data: Float32Array.from(numbers),
    shape: [numbers.length, 1],
  });
  const zero = row(0);
  /** What one query sees: 2^token of each token, so that the sum says which. */
  const seen = () => {
    const n = cache.length;
    const { scores } = cache.attend(zero, { scores: 'weights' });
    return Array.from({ length: n }, (_, j) => j).filter((j) => scores.data[j] > 0);
  };
  cache.append(row(0, 0, 0, 0, 0, 0, 0), row(0, 1, 2, 3, 4, 5, 6));
  assert.deepEqual(seen(), [0, 3, 4, 5, 6]);
  cache.truncate(5);
  assert.deepEqual(seen(), [0, 3, 4]);
  cache.append(row(0), row(50));
  assert.deepEqual(seen(), [0, 3, 4, 5]);
  assert.equal(cache.attend(zero, { window: [0, 0] }).out.data[0], 50);
  cache.truncate(2);
  assert.deepEqual(seen(), [0]);
  cache.append(row(0, 0), row(20, 30));
  assert.deepEqual(seen(), [0, 2, 3]);
  cache.reset();
  cache.append(row(0, 0), row(7, 8));
  assert.deepEqual(seen(), [0, 1]);
});

test('scores of tokens that a row does not have, or no more, are -Infinity at every stage', async () => {
  const sdpa = await loadVariant();
  const q = { data: new Float32Array(2 * 2 * 4).fill(1), shape: [2, 2, 1, 4] };
  const k = random.tensor(2, 1, 9, 4);
  for (const [kind, held] of /** @type {[any, number[][]][]} */ ([
    [
      {},
      [
        [0, 1, 2, 3],
        [0, 1, 2, 3, 4, 5, 6, 7, 8],
      ],
    ],
    [
      { pageSize: 3 },
      [
        [0, 1, 2, 3],
        [0, 1, 2, 3, 4, 5, 6, 7, 8],
      ],
    ],
    [
      { window: 3, globalKeys: 1 },
      [
        [0, 1, 2, 3],
        [0, 6, 7, 8],
      ],
    ],
  ])) {
    const cache = sdpa.createKVCache({ batch: 2, numKvHeads: 1, headDim: 4, ...kind });
    cache.append(k, k, { lengths: [4, 9] });
    for (const scores of /** @type {const} */ (['scaled', 'capped', 'biased', 'weights'])) {
      const got = cache.attend(q, { scores, softcap: 3 }).scores;
      assert.deepEqual(got.shape, [2, 2, 1, 9]);
      for (let row = 0; row < 4; row++) {
        for (let j = 0; j < 9; j++) {
          const x = got.data[row * 9 + j];
          const there = held[row >> 1].includes(j);
          assert.ok(
            there ? Number.isFinite(x) : x === (scores === 'weights' ? 0 : -Infinity),
            `${scores} [${row}, ${j}]: ${x}`,
          );
        }
      }
    }
  }
});

test('evict moves later tokens down', async () => {
  const sdpa = await loadVariant();
  const gone = [2, 3, 17, 40, 99];
  const kept = Array.from({ length: 100 }, (_, j) => j).filter((j) => !gone.includes(j));
  for (const dtype of /** @type {const} */ (['float32', 'float16', 'int8'])) {
    for (const kind of [{}, { pageSize: 8 }, { capacity: 100, fixed: true }]) {
      const [cache, want] = [0, 1].map(() => sdpa.createKVCache({ ...shape, dtype, ...kind }));
      cache.append(tokens(key, 0, 100), tokens(value, 0, 100));
      cache.evict([99, 3, 2, 17, 40, 3]);
      for (const j of kept) want.append(tokens(key, j, j + 1), tokens(value, j, j + 1));
      assert.equal(cache.length, 95);
      assertSameBits(cache.attend(tokens(query, 0, 9)), want.attend(tokens(query, 0, 9)));
    }
  }
  // Of rows of different lengths, each loses the positions that it has.
  const cache = sdpa.createKVCache(shape);
  cache.append(tokens(key, 0, 6), tokens(value, 0, 6), { lengths: [3, 6] });
  cache.evict(Int32Array.of(1, 4));
  assert.deepEqual([...cache.lengths], [2, 4]);
  cache.evict([]);
  assert.deepEqual([...cache.lengths], [2, 4]);
});
