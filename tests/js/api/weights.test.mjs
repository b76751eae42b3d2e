// attentionWeights(): each kind of result against the float64 reference, and what must hold of weights by themselves.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { assertSameBits } from '../helpers/workers.mjs';
import { assertWeights, referenceWeights } from './weights-reference.mjs';

const sdpa = await loadVariant();
const { tensor: x } = randomSource(41);

const L = 75;
const S = 210;
const q = x(2, 4, L, 20);
const k = x(2, 2, S, 20);
const options = { causal: true, align: 'lower-right', window: [150, 0] };
const reference = referenceWeights(q, k, options);
const lse = sdpa.attention(q, k, k, { ...options, returnLse: true }).lse;

/** @type {[string, any][]} */
const wanted = [
  ['rows', { rows: [3, 4, 5, 40, 74] }],
  ['rows in any order, some twice', { rows: [74, 3, 3, 0, 40] }],
  ['all rows', { rows: Array.from({ length: L }, (_, i) => i) }],
  ['columns', { columns: Int32Array.of(0, 95, 96, 97, 209) }],
  ['columns in any order, some twice', { columns: [96, 3, 96, 0] }],
  ['columnSums', { columnSums: true }],
  ['the largest', { topK: 1 }],
  ['the five largest', { topK: 5 }],
  ['more than there are keys', { topK: 300 }],
  ['stats', { stats: true }],
  ['a map of means', { pool: { rows: 7, columns: 30 } }],
  ['a map of maxima', { pool: { rows: 10, columns: 11, kind: 'max' } }],
  ['a map of one cell', { pool: { rows: 1, columns: 1, kind: 'mean' } }],
  ['a map of all cells', { pool: { rows: L, columns: S, kind: 'mean' } }],
  ['some heads', { rows: [9], heads: [3, 0] }],
  ['one head twice', { stats: true, heads: Int32Array.of(2, 2) }],
  [
    'everything at once',
    { rows: [1], columns: [2], columnSums: true, topK: 2, stats: true, pool: { rows: 2, columns: 3 }, heads: [1, 2] },
  ],
];

for (const [name, want] of wanted) {
  test(`${name} are those of the reference, with lse and without`, () => {
    const got = sdpa.attentionWeights(q, k, { ...options, ...want, lse });
    assertWeights(got, reference, want);
    assertSameBits(flat(sdpa.attentionWeights(q, k, { ...options, ...want })), flat(got), name);
  });
}

/**
 * The tensors of a result.
 * @param {any} result
 */
const flat = (result) =>
  Object.fromEntries(
    Object.entries(result).flatMap(([name, part]) =>
      part.data ? [[name, part]] : Object.entries(part).map(([inner, tensor]) => [`${name}.${inner}`, tensor]),
    ),
  );

test('weights change nothing of the output', () => {
  const want = sdpa.attention(q, k, k, options).out.data;
  sdpa.attentionWeights(q, k, { ...options, stats: true, topK: 3, columnSums: true });
  assert.deepEqual(sdpa.attention(q, k, k, options).out.data, want);
});

test('rank 3 and rank 2 leave out the dimensions that the query lacks', () => {
  const [q3, k3] = [x(4, 9, 8), x(2, 30, 8)];
  const want = {
    rows: [1, 8],
    columns: [0, 29, 3],
    columnSums: true,
    topK: 2,
    stats: true,
    pool: { rows: 3, columns: 4 },
  };
  const three = sdpa.attentionWeights(q3, k3, { ...want, heads: [3, 1, 0] });
  assertWeights(three, referenceWeights(q3, k3, {}), { ...want, heads: [3, 1, 0] });
  assert.deepEqual(three.rows.shape, [3, 2, 30]);
  const [q2, k2] = [x(9, 8), x(30, 8)];
  const two = sdpa.attentionWeights(q2, k2, want);
  assertWeights(two, referenceWeights(q2, k2, {}), want);
  assert.deepEqual(
    [two.rows, two.columns, two.columnSums, two.topK.values, two.stats.maxIndex, two.pool].map(({ shape }) => shape),
    [[2, 30], [9, 3], [30], [9, 2], [9], [3, 4]],
  );
});

test('tensors in wasm memory, an lse there too', () => {
  const put = (/** @type {any} */ { data, shape }) => {
    const tensor = sdpa.tensor(shape);
    tensor.data.set(data);
    return tensor;
  };
  const [query, key, sums] = [put(q), put(k), put(lse)];
  const want = { columnSums: true, pool: { rows: 5, columns: 6 } };
  assertSameBits(
    sdpa.attentionWeights(query, key, { ...options, ...want, lse: sums }),
    sdpa.attentionWeights(q, k, { ...options, ...want, lse }),
  );
  for (const tensor of [query, key, sums]) tensor.dispose();
});

test('rows sum to 1, columns to the number of rows, cells times their size to their sum', () => {
  const { rows, columnSums, pool } = sdpa.attentionWeights(q, k, {
    rows: Array.from({ length: L }, (_, i) => i),
    columnSums: true,
    pool: { rows: 5, columns: 7 },
    lse: sdpa.attention(q, k, k, { returnLse: true }).lse,
  });
  const sum = (/** @type {Float32Array} */ data) => data.reduce((total, p) => total + p, 0);
  for (let line = 0; line < 8 * L; line++) {
    assert.ok(Math.abs(sum(rows.data.subarray(line * S, (line + 1) * S)) - 1) < 3e-6);
  }
  for (let head = 0; head < 8; head++) {
    assert.ok(Math.abs(sum(columnSums.data.subarray(head * S, (head + 1) * S)) - L) < 2e-6 * L);
    const total = sum(pool.data.subarray(head * 35, (head + 1) * 35)) * (L / 5) * (S / 7);
    assert.ok(Math.abs(total - L) < 3e-6 * L);
  }
});

test('the columns of rows are the rows of columns, bit by bit', () => {
  const { rows, columns } = sdpa.attentionWeights(q, k, { ...options, rows: [0, 33, 74], columns: [60, 200], lse });
  for (let head = 0; head < 8; head++) {
    [0, 33, 74].forEach((i, n) => {
      [60, 200].forEach((j, m) => {
        assert.equal(rows.data[(head * 3 + n) * S + j], columns.data[(head * L + i) * 2 + m]);
      });
    });
  }
});

test('one sink takes its share of every row', () => {
  const { rows } = sdpa.attentionWeights(x(3, 4), x(5, 4), { smoothSoftmax: true, rows: [0, 1, 2] });
  for (let i = 0; i < 3; i++) assert.ok(rows.data.subarray(i * 5, i * 5 + 5).reduce((a, b) => a + b) < 0.999);
});

test('where nothing is seen there are zeros and no key', () => {
  const mask = { data: new Uint8Array(L * S), shape: [L, S] };
  const want = { rows: [4], columnSums: true, topK: 2, stats: true, pool: { rows: 2, columns: 2, kind: 'max' } };
  const got = flat(sdpa.attentionWeights(q, k, { mask, ...want }));
  for (const [name, { data }] of Object.entries(got)) {
    assert.ok(
      data.every((/** @type {number} */ p) => p === (/ind/i.test(name) ? -1 : 0)),
      name,
    );
  }
});

test('no keys, no queries, no batch: empty results, or zeros', () => {
  const none = sdpa.attentionWeights(x(2, 3, 4), x(2, 0, 4), { rows: [1], topK: 2, stats: true, columnSums: true });
  assert.deepEqual(none.rows.shape, [2, 1, 0]);
  assert.deepEqual([...none.topK.indices.data], Array(12).fill(-1));
  assert.deepEqual([...none.stats.entropy.data], Array(6).fill(0));
  assert.deepEqual([...none.stats.maxIndex.data], Array(6).fill(-1));
  assert.deepEqual(none.columnSums.shape, [2, 0]);
  const noRow = sdpa.attentionWeights(x(1, 0, 4), x(1, 3, 4), { rows: [], columns: [1], columnSums: true, topK: 1 });
  assert.deepEqual([...noRow.columnSums.data], [0, 0, 0]);
  assert.deepEqual(noRow.columns.shape, [1, 0, 1]);
  const empty = sdpa.attentionWeights(x(0, 2, 3, 4), x(0, 2, 3, 4), { stats: true, pool: { rows: 3, columns: 3 } });
  assert.deepEqual(empty.pool.shape, [0, 2, 3, 3]);
  const noHead = sdpa.attentionWeights(q, k, { heads: [], rows: [1], columns: [] });
  assert.deepEqual(
    [noHead.rows.shape, noHead.columns.shape],
    [
      [2, 0, 1, S],
      [2, 0, L, 0],
    ],
  );
});

test('a row of NaN is NaN where it sees keys, and no other', () => {
  const query = { data: q.data.slice(), shape: q.shape };
  query.data[5 * 20] = NaN; // row 5 of head 0
  const { rows, stats, topK } = sdpa.attentionWeights(query, k, {
    causal: true,
    queryOffset: 0,
    rows: [4, 5, 6],
    stats: true,
    topK: 1,
  });
  assert.deepEqual(
    [...rows.data.subarray(0, 3 * S).keys()].filter((n) => Number.isNaN(rows.data[n])),
    [0, 1, 2, 3, 4, 5].map((j) => S + j),
  );
  const broken = (/** @type {any} */ { data }) => [...data.keys()].filter((n) => Number.isNaN(data[n]));
  assert.deepEqual([broken(stats.entropy), broken(stats.maxWeight), broken(topK.values)], [[5], [5], [5]]);
  assert.deepEqual([stats.maxIndex.data[5], topK.indices.data[5]], [-1, -1]);
});
