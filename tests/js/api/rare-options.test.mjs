// Options that say which keys a query sees and what else counts in the softmax, each against the float64 reference on data where leaving
// it out gives another answer.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { masks } from 'sdpa';
import { blockMaskOf, randomBlocks } from '../helpers/block-masks.mjs';
import { makeCheck } from '../helpers/check.mjs';
import { philox } from '../helpers/philox.mjs';
import { isDropped, largestError, randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';

const sdpa = await loadVariant();
const check = makeCheck(sdpa);

const random = randomSource(30);
const q = random.tensor(2, 4, 9, 20);
const k = random.tensor(2, 2, 70, 20);
const v = random.tensor(2, 2, 70, 12);
const one = {
  query: random.tensor(1, 4, 90, 20),
  key: random.tensor(1, 2, 140, 20),
  value: random.tensor(1, 2, 140, 12),
};

/** @param {number} count @param {(i: number) => number} of */
const ints = (count, of) => Int32Array.from({ length: count }, (_, i) => of(i));

test('chunk: a query sees its own block of c positions', () => {
  const place = { align: 'lower-right' };
  for (const chunk of [1, 5, 64, 65]) check(q, k, v, { chunk, ...place }, { ...place });
  check(q, k, v, { chunk: 7, queryOffset: 20 }, { chunk: 8, queryOffset: 20 });
  check(q, k, v, { chunk: 7, queryOffset: 20, causal: true }, { queryOffset: 20, causal: true });
  check(q, k, v, { chunk: 2 ** 40, ...place });
  const square = random.tensor(2, 4, 70, 20);
  check(square, k, v, { chunk: 16 }, {});
});

test('chunk: positions below 0 are blocks of their own', () => {
  const { lse } = check(q, k, v, { chunk: 6, queryOffset: -4 }, { queryOffset: -4 });
  assert.deepEqual([...lse.data.subarray(0, 5)].map(Number.isFinite), [false, false, false, false, true]);
});

test('globalKeys: the first keys stay visible under a window and across chunks', () => {
  const windowed = { window: [4, 0], align: 'lower-right' };
  for (const globalKeys of [1, 3, 63, 64, 65, 70, 2 ** 50]) check(q, k, v, { ...windowed, globalKeys }, windowed);
  const chunked = { chunk: 8, queryOffset: 30 };
  for (const globalKeys of [2, 24, 33]) check(q, k, v, { ...chunked, globalKeys }, chunked);
  const both = { chunk: 16, window: [3, 2], queryOffset: 45 };
  check(q, k, v, { ...both, globalKeys: 5 }, both);
});

test('globalKeys: causal, the right bound of a window, lengths and masks still hold', () => {
  const early = { queryOffset: -3, globalKeys: 9 };
  check(q, k, v, { ...early, causal: true }, { ...early });
  check(q, k, v, { ...early, window: [1, 2] }, { ...early, window: [1, Infinity] });
  check(q, k, v, { ...early, window: [1, 2], chunk: 4 });
  const limited = { window: [2, 0], queryOffset: 50, globalKeys: 9, kvLengths: ints(2, (b) => 4 + b) };
  check(q, k, v, limited, { ...limited, kvLengths: undefined });
  const mask = { data: Uint8Array.from({ length: 70 }, (_, j) => j % 2), shape: [70] };
  check(q, k, v, { ...limited, kvLengths: undefined, mask }, { ...limited, kvLengths: undefined });
  check(q, k, v, { globalKeys: 9 });
});

test('alibiSlopes: each head adds -slope·|p - j|', () => {
  const place = { align: 'lower-right' };
  check(q, k, v, { alibiSlopes: [0.5, 0.25, 0.1, -0.05], ...place }, place);
  check(
    q,
    k,
    v,
    { alibiSlopes: Float32Array.of(0.5, 0.25, 0.1, 0), ...place },
    { alibiSlopes: [0.5, 0.5, 0.5, 0.5], ...place },
  );
  check(
    q,
    k,
    v,
    { alibiSlopes: [0.2, 0.2, 0.2, 0.2], queryOffset: 30 },
    { alibiSlopes: [0.2, 0.2, 0.2, 0.2], queryOffset: 33 },
  );
  const each = { data: Float32Array.from({ length: 8 }, (_, i) => 0.1 * i), shape: [2, 4] };
  check(q, k, v, { alibiSlopes: each, ...place }, { alibiSlopes: each.data.subarray(0, 4), ...place });
  check(q, k, v, { alibiSlopes: { data: each.data.subarray(0, 4), dims: [4] }, ...place }, place);
  check(q, k, v, { alibiSlopes: { data: [0.3, 0.2, 0.1, 0], shape: [1, 4] }, ...place }, place);
});

test('alibiSlopes are added after the softcap and beside the bias', () => {
  const options = { softcap: 0.7, bias: random.tensor(9, 70), align: 'lower-right' };
  check(q, k, v, { ...options, alibiSlopes: [0.5, 0.25, 0.1, 0.05] }, options);
});

test('segmentIds: tokens see only their own id, sorted or not', () => {
  const sorted = { query: ints(9, (i) => Math.floor(i / 4)), key: ints(70, (j) => Math.floor(j / 30)) };
  const mixed = { query: ints(18, (i) => i % 3), key: ints(140, (j) => (j * 7) % 5) };
  check(q, k, v, { segmentIds: sorted }, {});
  check(q, k, v, { segmentIds: mixed }, {});
  check(
    q,
    k,
    v,
    { segmentIds: { query: { data: sorted.query, shape: [9] }, key: { data: mixed.key, dims: [2, 70] } } },
    {},
  );
  const { lse } = check(q, k, v, { segmentIds: { query: ints(9, () => -5), key: ints(70, () => 5) } }, {});
  assert.ok(lse.data.every((x) => x === -Infinity));
});

test('segmentIds: positions stay those of the whole rows', () => {
  const segmentIds = { query: ints(9, (i) => Math.floor(i / 4)), key: ints(70, (j) => (j > 64 ? 1 : 0)) };
  check(q, k, v, { segmentIds, causal: true, align: 'lower-right' }, { segmentIds });
  check(q, k, v, { segmentIds, causal: true, queryOffset: 62 }, { segmentIds, causal: true, queryOffset: 61 });
});

test('cuSeqlens: sequences see their own keys, lower-right inside each', () => {
  const { query, key, value } = one;
  const cuSeqlens = { query: Int32Array.of(0, 10, 10, 73, 80), key: Int32Array.of(0, 10, 45, 110, 130) };
  check(query, key, value, { cuSeqlens }, {});
  check(query, key, value, { cuSeqlens, causal: true }, { cuSeqlens });
  check(query, key, value, { cuSeqlens, causal: true, align: 'upper-left' }, { cuSeqlens, causal: true });
  check(query, key, value, { cuSeqlens, causal: true, align: 'lower-right' }, { cuSeqlens });
  check(query, key, value, { cuSeqlens, causal: true, queryOffset: 2 }, { cuSeqlens, causal: true });
  check(query, key, value, { cuSeqlens, window: [3, 1], globalKeys: 2 }, { cuSeqlens, window: [3, 1] });
  check(query, key, value, { cuSeqlens, chunk: 9, alibiSlopes: [0.4, 0.3, 0.2, 0.1] }, { cuSeqlens, chunk: 9 });
});

test('cuSeqlens: rows behind the last sequence see nothing, and neither do those of one without keys', () => {
  const { query, key, value } = one;
  const cuSeqlens = { query: Int32Array.of(0, 5, 40), key: Int32Array.of(0, 0, 140) };
  const { lse, out } = check(query, key, value, { cuSeqlens }, {});
  assert.deepEqual(
    [0, 4, 5, 39, 40, 89].map((i) => lse.data[i] === -Infinity),
    [true, true, false, false, true, true],
  );
  assert.ok(out.data.subarray(40 * 12, 90 * 12).every((x) => x === 0));
  const none = sdpa.attention(query, key, value, { cuSeqlens: { query: new Int32Array(1), key: new Int32Array(1) } });
  assert.ok(none.out.data.every((x) => x === 0));
});

test('cuSeqlens give each sequence the result that it has alone', () => {
  const { query, key, value } = one;
  const cuSeqlens = { query: Int32Array.of(0, 30, 90), key: Int32Array.of(0, 65, 140) };
  /** @param {any} tensor @param {number} from @param {number} to */
  const cut = ({ data, shape: [, heads, rows, width] }, from, to) => ({
    data: Float32Array.from({ length: heads * (to - from) * width }, (_, x) => {
      const h = Math.floor(x / ((to - from) * width));
      return data[h * rows * width + from * width + (x % ((to - from) * width))];
    }),
    shape: [1, heads, to - from, width],
  });
  const { out } = sdpa.attention(query, key, value, { cuSeqlens, causal: true });
  for (const [[a, b], [c, d]] of [
    [
      [0, 30],
      [0, 65],
    ],
    [
      [30, 90],
      [65, 140],
    ],
  ]) {
    const alone = sdpa.attention(cut(query, a, b), cut(key, c, d), cut(value, c, d), {
      causal: true,
      align: 'lower-right',
    });
    assert.ok(largestError(cut(out, a, b).data, alone.out.data) <= 1e-6);
  }
});

test('blockMask: cells of partial, full and empty tiles, for all heads or each, all batch rows or each', () => {
  const query = random.tensor(2, 4, 130, 20);
  const key = random.tensor(2, 2, 200, 20);
  const value = random.tensor(2, 2, 200, 12);
  for (const [batch, heads] of [
    [1, 1],
    [1, 4],
    [2, 1],
    [2, 4],
  ]) {
    check(query, key, value, { blockMask: blockMaskOf(randomBlocks(random, [batch, heads, 130, 200])) }, {});
  }
});

test('blockMask: a causal mask is the causal option, bit for bit', () => {
  const x = random.tensor(1, 2, 200, 16);
  assert.deepEqual(
    sdpa.attention(x, x, x, { blockMask: masks.causal(200), returnLse: true }),
    sdpa.attention(x, x, x, { causal: true, returnLse: true }),
  );
});

test('sinks: one more logit in the denominator, not scaled, capped or masked', () => {
  const sinks = [1, -0.5, 3, -Infinity];
  check(q, k, v, { sinks }, {});
  check(q, k, v, { sinks, scale: 0.01, softcap: 0.2, bias: random.tensor(9, 70) }, { scale: 0.01, softcap: 0.2 });
  const each = { data: Float32Array.from({ length: 8 }, (_, i) => i - 2), shape: [2, 4] };
  check(q, k, v, { sinks: each }, { sinks: each.data.subarray(0, 4) });
});

test('sinks: a row that sees nothing is zeros with the lse of its sink, also without any key', () => {
  const sinks = Float32Array.of(1, -0.5, 3, -Infinity);
  const { out, lse } = check(q, k, v, { sinks, queryLengths: ints(2, (b) => 9 * b) }, { sinks });
  assert.ok(out.data.subarray(0, 4 * 9 * 12).every((x) => x === 0));
  for (let h = 0; h < 4; h++) assert.deepEqual([...lse.data.subarray(h * 9, h * 9 + 9)], Array(9).fill(sinks[h]));
  const none = random.tensor(2, 2, 0, 20);
  const empty = sdpa.attention(q, none, random.tensor(2, 2, 0, 12), { sinks, returnLse: true });
  assert.ok(empty.lse.data.every((x, i) => x === sinks[Math.floor(i / 9) % 4]));
  const each = { data: Float32Array.from({ length: 8 }, (_, i) => i - 2), shape: [2, 4] };
  const other = sdpa.attention(q, none, random.tensor(2, 2, 0, 12), {
    sinks: each,
    smoothSoftmax: true,
    returnLse: true,
  });
  assert.ok(other.lse.data.every((x, i) => Math.abs(x - Math.log(Math.exp(each.data[Math.floor(i / 9)]) + 1)) < 1e-6));
});

test('smoothSoftmax: a sink of 0, beside those that are given', () => {
  check(q, k, v, { smoothSoftmax: true }, {});
  check(q, k, v, { smoothSoftmax: true, sinks: [1, -1, -Infinity, 90] }, { sinks: [1, -1, -Infinity, 90] });
  assert.deepEqual(sdpa.attention(q, k, v, { smoothSoftmax: true }), sdpa.attention(q, k, v, { sinks: [0, 0, 0, 0] }));
  assert.deepEqual(sdpa.attention(q, k, v, { smoothSoftmax: false }), sdpa.attention(q, k, v));
  assert.deepEqual(sdpa.attention(q, k, v, { sinks: Array(4).fill(-Infinity) }), sdpa.attention(q, k, v));
});

test('dropout: the generator of the reference is Philox 4x32-10, by its published vectors', () => {
  const hex = (/** @type {number[]} */ words) => words.map((x) => x.toString(16).padStart(8, '0')).join(' ');
  const all = 0xffffffff;
  assert.equal(hex(philox([0, 0, 0, 0], [0, 0])), '6627e8d5 e169c58d bc57ac4c 9b00dbd8');
  assert.equal(hex(philox([all, all, all, all], [all, all])), '408f276d 41c83b0e a20bc7c6 6d5451fd');
  assert.equal(
    hex(philox([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0])),
    'd16cfe09 94fdcceb 5001e420 24126ea1',
  );
});

test('dropout: drops cells of the weights and scales what is kept; lse and scores are those before', () => {
  for (const dropout of [
    { p: 0.3, seed: 1 },
    { p: 0.9, seed: 2 ** 53 - 1 },
    { p: 0.001, seed: 0 },
    { p: 2 ** -32, seed: 5 },
  ]) {
    const { lse } = check(q, k, v, { dropout }, dropout.p > 0.01 ? {} : undefined);
    assert.deepEqual(lse, sdpa.attention(q, k, v, { returnLse: true }).lse);
  }
  check(q, k, v, { dropout: { p: 0.3, seed: 1 } }, { dropout: { p: 0.3, seed: 2 } });
  check(q, k, v, { dropout: { p: 0.3, seed: 1 } }, { dropout: { p: 0.3, seed: 1 + 2 ** 32 } });
  assert.deepEqual(sdpa.attention(q, k, v, { dropout: { p: 0, seed: 1 } }), sdpa.attention(q, k, v));
  assert.ok(sdpa.attention(q, k, v, { dropout: { p: 1, seed: 1 } }).out.data.every((x) => x === 0));
});

test('dropout: which cells are dropped can be read off one-hot values', () => {
  const query = random.tensor(1, 2, 5, 8);
  const key = random.tensor(1, 2, 70, 8);
  const value = { data: new Float32Array(2 * 70 * 70), shape: [1, 2, 70, 70] };
  for (let j = 0; j < 140; j++) value.data[j * 70 + (j % 70)] = 1;
  const dropout = { p: 0.4, seed: 123456789012345 };
  const { out } = sdpa.attention(query, key, value, { dropout });
  for (let x = 0; x < out.data.length; x++) {
    const [h, i, j] = [Math.floor(x / 350), Math.floor(x / 70) % 5, x % 70];
    assert.equal(out.data[x] === 0, isDropped(dropout, 0, h, i, j), `cell ${h}, ${i}, ${j}`);
  }
});

test('excluded keys are never read: NaN in holes, other segments, other sequences and hidden tiles cannot reach the result', () => {
  const query = random.tensor(1, 2, 20, 16);
  const key = random.tensor(1, 2, 300, 16);
  const value = random.tensor(1, 2, 300, 16);
  /** @param {any} tensor @param {(j: number) => boolean} hidden @param {number} poison */
  const poisoned = ({ data, shape }, hidden, poison) => ({
    data: data.map((/** @type {number} */ x, /** @type {number} */ at) =>
      hidden(Math.floor(at / 16) % 300) ? poison : x,
    ),
    shape,
  });
  const dense = { data: Uint8Array.from({ length: 20 * 300 }, (_, at) => Number(at % 300 < 70)), shape: [20, 300] };
  /** @type {[any, (j: number) => boolean][]} */
  const cases = [
    [{ window: [9, 0], globalKeys: 4, queryOffset: 250 }, (j) => j >= 4 && j < 241],
    [{ chunk: 30, globalKeys: 3, queryOffset: 130 }, (j) => j >= 3 && (j < 120 || j >= 150)],
    [{ segmentIds: { query: ints(20, () => 2), key: ints(300, (j) => j % 3) } }, (j) => j % 3 !== 2],
    [{ segmentIds: { query: ints(20, () => 2), key: ints(300, (j) => Math.floor(j / 100)) } }, (j) => j < 200],
    [{ cuSeqlens: { query: Int32Array.of(0, 20), key: Int32Array.of(0, 77) } }, (j) => j >= 77],
    [{ blockMask: blockMaskOf(dense) }, (j) => j >= 70],
  ];
  for (const [options, hidden] of cases) {
    const clean = sdpa.attention(query, key, value, options);
    assert.ok(clean.out.data.every(Number.isFinite));
    for (const poison of [NaN, Infinity]) {
      const dirty = sdpa.attention(query, poisoned(key, hidden, poison), poisoned(value, hidden, poison), options);
      assert.deepEqual(dirty, clean, Object.keys(options).join());
    }
  }
});

test('a long list of ids or tiles, larger than the block of small calls, is placed like any other', () => {
  const rows = 40_000;
  const query = random.tensor(3, 4);
  const key = random.tensor(rows, 4);
  const value = random.tensor(rows, 2);
  const segmentIds = { query: Int32Array.of(1, 2, 3), key: ints(rows, (j) => (j * 7919) % 5) };
  const { held } = sdpa.memory();
  check(query, key, value, { segmentIds }, {});
  const dense = { data: Uint8Array.from({ length: 3 * rows }, (_, at) => Number(at % 7 === 0)), shape: [3, rows] };
  check(query, key, value, { blockMask: blockMaskOf(dense) }, {});
  assert.equal(sdpa.memory().held, held);
});
