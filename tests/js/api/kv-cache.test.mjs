// The KV cache gives the numbers of one call of attention().

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant, resident } from '../helpers/sdpa.mjs';
import { assertSameBits } from '../helpers/workers.mjs';
import { blhd, pieces, tokens } from './kv-cache-tokens.mjs';

const random = randomSource(8);
const shape = { batch: 2, numKvHeads: 2, headDim: 48, headDimV: 40 };
const length = 331;
const query = random.tensor(2, 6, length, 48);
const key = random.tensor(2, 2, length, 48);
const value = random.tensor(2, 2, length, 40);

for (const [name, kind] of /** @type {[string, any][]} */ ([
  ['doubles', { capacity: 1 }],
  ['is fixed', { capacity: length, fixed: true }],
  ['has pages of 1', { pageSize: 1 }],
  ['has pages of 7', { pageSize: 7 }],
  ['has pages of 64', { pageSize: 64 }],
  ['has pages of 100', { pageSize: 100, capacity: 1 }],
  ['is a ring that nothing has left', { window: length }],
])) {
  test(`prefill in pieces through a cache that ${name} is one causal call, bit for bit`, async () => {
    const sdpa = await loadVariant();
    const want = sdpa.attention(query, key, value, { causal: true, returnLse: true });
    for (const sizes of [[1, 5, 64, 100], [63], [200, 1, 1]]) {
      const cache = sdpa.createKVCache({ ...shape, ...kind });
      for (const [from, to] of pieces(length, sizes)) {
        cache.append(tokens(key, from, to), tokens(value, from, to));
        assert.equal(cache.length, to);
        const got = cache.attend(tokens(query, from, to), { returnLse: true });
        const lse = { ...want.lse, shape: [2, 6, length, 1] };
        const wanted = { out: tokens(want.out, from, to), lse: tokens(lse, from, to) };
        wanted.lse.shape.pop();
        assertSameBits(got, wanted, `${from} to ${to}`);
      }
      cache.dispose();
    }
  });
}

test('decode through a ring is attention with a window and globalKeys, bit for bit', async () => {
  const sdpa = await loadVariant();
  for (const [window, globalKeys] of [
    [1, 0],
    [70, 0],
    [64, 3],
    [100, 65],
    [5, 1],
  ]) {
    const options = { causal: true, window: /** @type {const} */ ([window - 1, 0]), globalKeys };
    const want = sdpa.attention(query, key, value, options);
    const cache = sdpa.createKVCache({ ...shape, window, globalKeys });
    const { byteLength } = cache;
    assert.equal(cache.capacity, window + globalKeys);
    for (let i = 0; i < length; i++) {
      cache.append(tokens(key, i, i + 1), tokens(value, i, i + 1));
      assertSameBits(cache.attend(tokens(query, i, i + 1)), { out: tokens(want.out, i, i + 1) }, `token ${i}`);
    }
    assert.equal(cache.length, length, 'positions stay absolute');
    assert.equal(cache.byteLength, byteLength);
    cache.dispose();
  }
});

test('an append larger than the ring keeps what one token after the other would keep', async () => {
  const sdpa = await loadVariant();
  const all = sdpa.createKVCache({ ...shape, window: 10, globalKeys: 4 });
  const each = sdpa.createKVCache({ ...shape, window: 10, globalKeys: 4 });
  all.append(key, value);
  for (let i = 0; i < length; i++) each.append(tokens(key, i, i + 1), tokens(value, i, i + 1));
  const late = tokens(query, length - 5, length);
  assertSameBits(all.attend(late, { returnLse: true }), each.attend(late, { returnLse: true }));
});

test('tokens may come with heads inside, without batch, and without heads', async () => {
  const sdpa = await loadVariant();
  const want = sdpa.attention(query, key, value, { causal: true });
  for (const dtype of /** @type {const} */ (['float32', 'float16', 'int8'])) {
    const plain = sdpa.createKVCache({ ...shape, dtype });
    const turned = sdpa.createKVCache({ ...shape, dtype, pageSize: 9 });
    plain.append(key, value);
    turned.append(blhd(key), blhd(value), { layout: 'blhd' });
    const got = turned.attend(query);
    assertSameBits(got, plain.attend(query));
    if (dtype === 'float32') assertSameBits(got, want);
    const { out } = turned.attend(blhd(query), { layout: 'blhd' });
    assertSameBits({ out }, { out: blhd(got.out) });
  }
  const k = random.tensor(1, 1, 9, 8);
  const q = random.tensor(1, 1, 4, 8);
  const one = { ...shape, batch: 1, numKvHeads: 1, headDim: 8, headDimV: 8 };
  const { out } = sdpa.attention(q, k, k, { causal: true, align: 'lower-right' });
  for (const sizes of [
    [1, 1, 9, 8],
    [1, 9, 8],
    [9, 8],
  ]) {
    const cache = sdpa.createKVCache(one);
    cache.append({ ...k, shape: sizes }, { ...k, shape: sizes });
    const rank = sizes.length;
    const got = cache.attend({ ...q, shape: [1, 1, 4, 8].slice(4 - rank) });
    assert.deepEqual(got.out.shape, [1, 1, 4, 8].slice(4 - rank));
    assert.deepEqual([...got.out.data], [...out.data]);
  }
  const three = sdpa.createKVCache(one);
  three.append({ ...k, shape: [9, 1, 8] }, { ...k, shape: [9, 1, 8] }, { layout: 'blhd' });
  assert.deepEqual([...three.attend(q).out.data], [...out.data]);
});

test('rows have lengths of their own, and tokens that do not count are not read', async () => {
  const sdpa = await loadVariant();
  for (const [dtype, kind] of /** @type {[any, any][]} */ ([
    ['float32', {}],
    ['int8', {}],
    ['float16', { pageSize: 4 }],
  ])) {
    const k = tokens(key, 0, 12);
    const v = tokens(value, 0, 12);
    const lengths = Int32Array.of(5, 12);
    const poisoned = { ...k, data: k.data.slice() };
    for (let h = 0; h < 2; h++) poisoned.data.fill(NaN, (h * 12 + 5) * 48, (h + 1) * 12 * 48);
    const cache = sdpa.createKVCache({ ...shape, dtype, ...kind });
    cache.append(poisoned, v, { lengths });
    assert.deepEqual(cache.lengths, lengths);
    assert.equal(cache.length, 12);
    const q = tokens(query, 0, 3);
    const got = cache.attend(q, { returnLse: true });
    const full = sdpa.createKVCache({ ...shape, dtype });
    full.append(k, v);
    full.truncate(lengths);
    assertSameBits(got, full.attend(q, { returnLse: true }));
    if (dtype === 'float32') {
      const options = {
        causal: true,
        align: /** @type {const} */ ('lower-right'),
        kvLengths: lengths,
        returnLse: true,
      };
      assertSameBits(got, sdpa.attention(q, k, v, options));
    }
    cache.lengths[0] = 100;
    assert.deepEqual(cache.lengths, lengths, 'the lengths are a copy');
  }
});

test('what was truncated, or reset, cannot be seen', async () => {
  const sdpa = await loadVariant();
  for (const kind of [{}, { pageSize: 8 }, { capacity: 40, fixed: true }, { dtype: 'float16' }]) {
    const cache = sdpa.createKVCache(/** @type {any} */ ({ ...shape, ...kind }));
    const bad = { ...tokens(key, 0, 30), data: new Float32Array(2 * 2 * 30 * 48).fill(NaN) };
    const badValue = { ...tokens(value, 0, 30), data: new Float32Array(2 * 2 * 30 * 40).fill(Infinity) };
    cache.append(tokens(key, 0, 5), tokens(value, 0, 5));
    const before = cache.attend(tokens(query, 0, 3), { returnLse: true });
    cache.append(bad, badValue);
    cache.truncate(5);
    assertSameBits(cache.attend(tokens(query, 0, 3), { returnLse: true }), before);
    cache.reset();
    assert.equal(cache.length, 0);
    cache.append(tokens(key, 0, 5), tokens(value, 0, 5));
    assertSameBits(cache.attend(tokens(query, 0, 3), { returnLse: true }), before);
  }
});

test('an empty cache gives zeros, and lse -Infinity or that of the sink', async () => {
  const sdpa = await loadVariant();
  for (const kind of [{}, { window: 3 }, { pageSize: 4 }, { dtype: 'int8' }]) {
    const cache = sdpa.createKVCache(/** @type {any} */ ({ ...shape, ...kind }));
    const q = tokens(query, 0, 2);
    const got = cache.attend(q, { returnLse: true });
    assert.ok(got.out.data.every((x) => x === 0));
    assert.ok(got.lse.data.every((x) => x === -Infinity));
    const sinks = Float32Array.of(1, 2, 3, 4, 5, 6);
    const { lse } = cache.attend(q, { returnLse: true, sinks });
    assert.deepEqual([...lse.data], [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]);
    // One row without tokens beside one with some.
    cache.append(tokens(key, 0, 2), tokens(value, 0, 2), { lengths: [0, 2] });
    const half = cache.attend(q, { returnLse: true });
    const rows = 6 * 2;
    assert.ok(half.out.data.subarray(0, rows * 40).every((x) => x === 0));
    assert.ok(half.lse.data.subarray(0, rows).every((x) => x === -Infinity));
    assert.ok(half.lse.data.subarray(rows).every(Number.isFinite));
  }
});

test('more queries than tokens: the first ones stand before the first token and see nothing', async () => {
  const sdpa = await loadVariant();
  const cache = sdpa.createKVCache(shape);
  cache.append(tokens(key, 0, 3), tokens(value, 0, 3));
  const q = tokens(query, 0, 5);
  const want = sdpa.attention(q, tokens(key, 0, 3), tokens(value, 0, 3), { causal: true, align: 'lower-right' });
  assertSameBits(cache.attend(q), want);
});

test('attend takes the options of attention, with positions in the cache', async () => {
  const sdpa = await loadVariant();
  const n = 150;
  const [k, v] = [tokens(key, 0, n), tokens(value, 0, n)];
  const q = tokens(query, 0, 20);
  const ids = (/** @type {number} */ count) => Int32Array.from({ length: count }, (_, i) => i % 3);
  const mask = { data: Uint8Array.from({ length: 20 * n }, () => Number(random.uniform() < 0.6)), shape: [20, n] };
  /** @type {Record<string, any>} */
  const options = {
    scale: 0.3,
    softcap: 1.5,
    mask,
    bias: random.tensor(20, n),
    causal: false,
    window: [9, 3],
    chunk: 13,
    globalKeys: 0,
    alibiSlopes: Float32Array.of(0.5, 0.25, 0.1, 1, 0, 2),
    queryLengths: Int32Array.of(20, 3),
    segmentIds: { query: ids(20), key: ids(n) },
    sinks: Float32Array.of(0, 1, -1, 2, 0.5, -2),
    smoothSoftmax: true,
    dropout: { p: 0.4, seed: 77 },
    returnLse: true,
    scores: 'biased',
    out: undefined,
  };
  for (const kind of [{}, { pageSize: 16 }]) {
    const cache = sdpa.createKVCache({ ...shape, ...kind });
    cache.append(k, v);
    const plain = cache.attend(q);
    for (const [name, setting] of Object.entries(options)) {
      if (setting === undefined) continue;
      const rest = name === 'globalKeys' ? { window: [5, 0], globalKeys: 4 } : { [name]: setting };
      const got = cache.attend(q, rest);
      const offsets = Int32Array.from({ length: 2 }, (_, b) => n - (name === 'queryLengths' ? setting[b] : 20));
      assertSameBits(
        got,
        sdpa.attention(q, k, v, /** @type {any} */ ({ causal: true, queryOffset: offsets, ...rest })),
        name,
      );
      if (name !== 'returnLse' && name !== 'scores') assert.notDeepEqual(got.out.data, plain.out.data, name);
    }
    const out = new Float32Array(plain.out.data.length);
    assert.equal(cache.attend(q, { out }).out.data, out);
    assert.deepEqual(out, plain.out.data);
    const tensor = sdpa.tensor(plain.out.shape);
    assert.equal(cache.attend(q, { out: tensor }).out, tensor);
    assert.deepEqual([...tensor.data], [...out]);
    assertSameBits(cache.attend(resident(sdpa, q)), plain);
  }
});
