// multiHeadAttention() with a KV cache: token by token gives the bits of all at once, of every kind of cache.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertThrows } from '../helpers/errors.mjs';
import { largestError, randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { assertBits, layouts, plainWeights, sizesOf } from './multi-head-reference.mjs';

const sdpa = await loadVariant();
const sizes = sizesOf({ Hq: 4, Hkv: 2, D: 6, Dv: 5, E: 24 });
const weights = layouts[2].make(plainWeights(sizes, 4), sizes);
const B = 2;
const L = 23;
const x = randomSource(9).tensor(B, L, sizes.E);
const cacheSizes = { batch: B, numKvHeads: 2, headDim: 6, headDimV: 5 };

/**
 * Tokens [from, to) of (B, L, E).
 * @param {any} tensor
 * @param {number} from
 * @param {number} to
 */
function tokens({ data, shape: [batch, length, width] }, from, to) {
  const part = new Float32Array(batch * (to - from) * width);
  for (let b = 0; b < batch; b++) {
    part.set(data.subarray((b * length + from) * width, (b * length + to) * width), b * (to - from) * width);
  }
  return { data: part, shape: [batch, to - from, width] };
}

/**
 * out (B, L, Eo) of tokens that come in pieces.
 * @param {any} layer
 * @param {any} cache
 * @param {any} [options]
 * @param {readonly number[]} [pieces]
 */
function inPieces(layer, cache, options = {}, pieces = [1, 7, 1, 1, 2, 1, 9, 1]) {
  const out = new Float32Array(B * L * sizes.Eo);
  let from = 0;
  for (const count of pieces) {
    const part = layer.forward(tokens(x, from, from + count), null, { cache, ...options }).out;
    assert.deepEqual(part.shape, [B, count, sizes.Eo]);
    for (let b = 0; b < B; b++) {
      const rows = part.data.subarray(b * count * sizes.Eo, (b + 1) * count * sizes.Eo);
      out.set(rows, (b * L + from) * sizes.Eo);
    }
    from += count;
  }
  assert.equal(from, L);
  assert.deepEqual([...cache.lengths], [L, L]);
  return out;
}

test('tokens one by one and in pieces have the bits of one causal call', () => {
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights });
  const want = layer.forward(x, null, { causal: true }).out.data;
  for (const kind of [{}, { capacity: 30, fixed: true }, { pageSize: 4 }]) {
    const cache = sdpa.createKVCache({ ...cacheSizes, ...kind });
    assertBits(inPieces(layer, cache), want);
    cache.reset();
    assertBits(inPieces(layer, cache, {}, [L]), want);
    cache.dispose();
  }
  layer.dispose();
});

test('rope of the layer or of the cache: the bits of one call that counts the positions', () => {
  const rope = { base: 1000 };
  const turning = sdpa.multiHeadAttention({ numHeads: 4, weights, rope });
  const plain = sdpa.multiHeadAttention({ numHeads: 4, weights });
  const want = turning.forward(x, null, { causal: true }).out.data;
  const cache = sdpa.createKVCache(cacheSizes);
  assertBits(inPieces(turning, cache), want);
  const turningCache = sdpa.createKVCache({ ...cacheSizes, rope });
  assertBits(inPieces(plain, turningCache), want);
  assertThrows(
    () => turning.forward(x, null, { cache: turningCache }),
    'option',
    /both the layer and the cache have rope/,
  );
  // Positions of the caller's own go before those of the cache.
  const shifted = sdpa.createKVCache(cacheSizes);
  turning.forward(tokens(x, 0, 3), null, { cache: shifted, offset: 100 });
  const got = turning.forward(tokens(x, 3, 5), null, { cache: shifted, positions: Int32Array.of(103, 104) }).out;
  const all = turning.forward(tokens(x, 0, 5), null, { causal: true, offset: 100 }).out;
  assertBits(got.data, tokens(all, 3, 5).data);
  for (const made of [cache, turningCache, shifted, turning, plain]) made.dispose();
});

test('a ring gives what a window of the same width gives', () => {
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights, rope: {} });
  const cache = sdpa.createKVCache({ ...cacheSizes, window: 5 });
  const ones = Array.from({ length: L }, () => 1);
  const want = layer.forward(x, null, { causal: true, window: [4, Infinity] }).out.data;
  assertBits(inPieces(layer, cache, {}, ones), want);
  cache.dispose();
  layer.dispose();
});

test('16-bit and 8-bit caches are near', () => {
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights });
  const want = layer.forward(x, null, { causal: true }).out.data;
  for (const [dtype, most] of /** @type {const} */ ([
    ['float16', 2e-3],
    ['int8', 5e-2],
  ])) {
    const cache = sdpa.createKVCache({ ...cacheSizes, dtype });
    const worst = largestError(inPieces(layer, cache), want);
    assert.ok(worst > 0 && worst < most, `${dtype} differs by ${worst}`);
    cache.dispose();
  }
  layer.dispose();
});

test('rows of different lengths: queryLengths says how many tokens each row appends', () => {
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights, rope: {} });
  const cache = sdpa.createKVCache(cacheSizes);
  const prompt = layer.forward(tokens(x, 0, 6), null, { cache, queryLengths: Int32Array.of(6, 4) }).out;
  assert.deepEqual([...cache.lengths], [6, 4]);
  const next = layer.forward(tokens(x, 6, 8), null, { cache }).out;
  assert.deepEqual([...cache.lengths], [8, 6]);

  const row = (/** @type {any} */ tensor, /** @type {number} */ b) => {
    const [, length, width] = tensor.shape;
    return { data: tensor.data.slice(b * length * width, (b + 1) * length * width), shape: [1, length, width] };
  };
  const first = layer.forward(row(tokens(x, 0, 8), 0), null, { causal: true }).out;
  assertBits(row(prompt, 0).data, tokens(first, 0, 6).data);
  assertBits(row(next, 0).data, tokens(first, 6, 8).data);
  const alone = row(x, 1).data;
  const width = sizes.E;
  const kept = Float32Array.of(...alone.subarray(0, 4 * width), ...alone.subarray(6 * width, 8 * width));
  const second = layer.forward({ data: kept, shape: [1, 6, width] }, null, { causal: true }).out;
  assertBits(row(prompt, 1).data.subarray(0, 4 * sizes.Eo), tokens(second, 0, 4).data);
  assertBits(row(next, 1).data, tokens(second, 4, 6).data);
  cache.dispose();
  layer.dispose();
});

test('masks, keyPadding, lse and causal: false with a cache', () => {
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights });
  const keyPadding = { data: Uint8Array.from({ length: B * L }, (_, n) => (n % 5 === 1 ? 0 : 1)), shape: [B, L] };
  const bias = randomSource(3).tensor(3, L);
  const cache = sdpa.createKVCache(cacheSizes);
  layer.forward(tokens(x, 0, L - 3), null, { cache });
  const options = { keyPadding, bias, causal: false, returnLse: true };
  const got = layer.forward(tokens(x, L - 3, L), null, { cache, ...options });
  const want = layer.forward(tokens(x, L - 3, L), x, options);
  assertBits(got.out.data, want.out.data);
  assertBits(got.lse.data, want.lse.data);
  cache.dispose();
  layer.dispose();
});

test('without a batch: one row of the cache', () => {
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights });
  const cache = sdpa.createKVCache({ ...cacheSizes, batch: 1 });
  const row = { data: x.data.subarray(0, L * sizes.E), shape: [L, sizes.E] };
  const { out } = layer.forward(row, null, { cache });
  assert.deepEqual(out.shape, [L, sizes.Eo]);
  assertBits(out.data, layer.forward(row, null, { causal: true }).out.data);
  cache.dispose();
  layer.dispose();
});

test('a call that fails leaves the cache and the memory as they were', () => {
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights });
  const cache = sdpa.createKVCache({ ...cacheSizes, capacity: 8, fixed: true });
  layer.forward(tokens(x, 0, 6), null, { cache });
  const { held } = sdpa.memory();
  const two = tokens(x, 6, 8);
  const mask = { data: new Uint8Array(7).fill(1), shape: [7] };
  assertThrows(() => layer.forward(two, null, { cache, mask }), 'shape', /mask shape \[7\]/);
  assertThrows(() => layer.forward(two, null, { cache, scale: NaN }), 'option', /scale/);
  assertThrows(() => layer.forward(two, null, { cache, out: new Float32Array(3) }), 'shape', /out has 3 elements/);
  assertThrows(() => layer.forward(tokens(x, 6, 9), null, { cache }), 'capacity', /fixed at 8/);
  assertThrows(() => layer.forward(two, null, { cache, queryLengths: Int32Array.of(1) }), 'shape', /queryLengths/);
  assertThrows(
    () => layer.forward(two, null, { cache, queryLengths: Int32Array.of(1, 3) }),
    'option',
    /queryLengths\[1\]/,
  );
  assertThrows(() => layer.forward(two, null, { cache, align: 'lower-right' }), 'option', /cache sets align/);
  assert.deepEqual([...cache.lengths], [6, 6]);
  assert.equal(sdpa.memory().held, held);
  const changing = {
    cache,
    mask: {
      get data() {
        cache.truncate(3);
        return new Uint8Array(8).fill(1);
      },
      shape: [8],
    },
  };
  assertThrows(() => layer.forward(two, null, changing), 'option', /cache was changed/);
  assert.deepEqual([...cache.lengths], [3, 3]);
  cache.dispose();
  layer.dispose();
});

test('a cache that does not fit the layer or the call', async () => {
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights });
  const one = tokens(x, 0, 1);
  for (const [given, message] of /** @type {[any, RegExp][]} */ ([
    [{ batch: 3 }, /batch is 3 but the call's is 2/],
    [{ numKvHeads: 4 }, /numKvHeads is 4 but the call's is 2/],
    [{ headDim: 5 }, /headDim is 5 but the call's is 6/],
    [{ headDimV: 6 }, /headDimV is 6 but the call's is 5/],
  ])) {
    const cache = sdpa.createKVCache({ ...cacheSizes, ...given });
    assertThrows(() => layer.forward(one, null, { cache }), 'shape', message);
    assert.equal(cache.length, 0);
    cache.dispose();
  }
  const cache = sdpa.createKVCache(cacheSizes);
  assertThrows(() => layer.forward(one, x, { cache }), 'option', /takes no context/);
  assertThrows(() => layer.backward(one, null, { dOut: one }, /** @type {any} */ ({ cache })), 'option', /cache/);
  cache.dispose();
  assertThrows(() => layer.forward(one, null, { cache }), 'disposed', /KV cache/);
  assertThrows(() => layer.forward(one, null, { cache: /** @type {any} */ ({}) }), 'type', /createKVCache/);
  const other = await loadVariant();
  const foreign = other.createKVCache(cacheSizes);
  assertThrows(() => layer.forward(one, null, { cache: foreign }), 'option', /another sdpa instance/);
  other.dispose();
  layer.dispose();
});
