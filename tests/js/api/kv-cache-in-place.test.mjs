// Decode reads keys and values where they lie, widened in registers and run by run; a block of many rows has copies of them. A row
// has the same bits either way.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { tokens } from './kv-cache-tokens.mjs';

/** @typedef {{ data: Float32Array, shape: number[] }} Tensor */
/** @typedef {Partial<import('sdpa').KVCacheOptions>} Kind */

/** Query rows of a call whose blocks are copied. */
const rows = 40;

/** @type {Kind[]} */
const kinds = [
  { dtype: 'float16' },
  { dtype: 'int8' },
  ...[8, 16, 24, 128].map((pageSize) => ({ pageSize })),
  ...[3, 16].map((pageSize) => /** @type {Kind} */ ({ dtype: 'float16', pageSize })),
  ...[12, 100].map((pageSize) => /** @type {Kind} */ ({ dtype: 'int8', pageSize })),
  // Room for the window of the first of the rows.
  ...[{}, { dtype: 'float16' }, { dtype: 'int8' }].map((kind) => /** @type {Kind} */ ({ ...kind, window: 150 })),
];

/**
 * @param {number} numHeads
 * @param {number} numKvHeads
 * @param {number} headDim
 * @param {number} [headDimV]
 * @param {number} [length] no multiple of anything
 */
function operandsOf(numHeads, numKvHeads, headDim, headDimV = headDim, length = 331) {
  const random = randomSource(headDim + numHeads);
  return {
    query: random.tensor(1, numHeads, rows, headDim),
    key: random.tensor(1, numKvHeads, length, headDim),
    value: random.tensor(1, numKvHeads, length, headDimV),
  };
}

/**
 * The last query rows of a cache alone and in small groups beside the same rows among many.
 * @param {Kind} kind
 * @param {{ query: Tensor, key: Tensor, value: Tensor }} operands
 * @param {Parameters<import('sdpa').KVCache['attend']>[1]} [options]
 * @returns {Promise<Float32Array>} out of the rows among many
 */
async function compare(kind, { query, key, value }, options = {}) {
  const sdpa = await loadVariant();
  const [batch, numKvHeads, length, headDim] = key.shape;
  const cache = sdpa.createKVCache({ batch, numKvHeads, headDim, headDimV: value.shape[3], ...kind });
  for (let from = 0; from < length; from += 100) {
    const to = Math.min(from + 100, length);
    cache.append(tokens(key, from, to), tokens(value, from, to));
  }
  /** @param {Tensor} some */
  const results = (some) => {
    const { out, lse } = cache.attend(some, { ...options, returnLse: true });
    return [out, { data: lse.data, shape: [...lse.shape, 1] }];
  };
  const all = results(query);
  for (const count of [1, 2, 4, 5]) {
    const got = results(tokens(query, rows - count, rows));
    for (const [i, tensor] of all.entries()) {
      const want = tokens(tensor, rows - count, rows).data;
      const bad = [...want.keys()].filter((k) => !Object.is(got[i].data[k], want[k]));
      assert.ok(
        bad.length === 0,
        `${JSON.stringify(kind)}, head size ${headDim}, ${count} rows: ${bad.length} of ${want.length} differ, ` +
          `[${bad[0]}] is ${got[i].data[bad[0]]} not ${want[bad[0]]}`,
      );
    }
  }
  cache.dispose();
  return /** @type {Float32Array} */ (all[0].data);
}

test('a row that is decoded has the bits of the same row among many, in every kind of cache', async () => {
  for (const kind of kinds) {
    for (const numHeads of [2, 4, 8]) await compare(kind, operandsOf(numHeads, 2, 64));
  }
});

test('head sizes that are not widened in registers, or only some of whose columns are', async () => {
  for (const kind of kinds) {
    for (const [headDim, headDimV] of [[128], [40], [8, 16], [16, 80], [21, 34], [48, 12]]) {
      await compare(kind, operandsOf(2, 2, headDim, headDimV));
      await compare(kind, operandsOf(4, 1, headDim, headDimV));
    }
  }
});

test('with a softcap, a mask, a bias, sinks and a window', async () => {
  const random = randomSource(3);
  const mask = { data: Uint8Array.from({ length: 331 }, (_, j) => Number(j % 7 !== 3)), shape: [1, 331] };
  const every = [{ softcap: 3 }, { mask }, { bias: random.tensor(1, 331) }, { sinks: Float32Array.of(0, 1, 2, 3) }];
  for (const kind of [{ dtype: 'float16' }, { dtype: 'int8' }, { pageSize: 16 }]) {
    for (const numKvHeads of [4, 1]) {
      for (const options of [...every, { window: [90, 0] }]) {
        await compare(/** @type {Kind} */ (kind), operandsOf(4, numKvHeads, 64), /** @type {any} */ (options));
      }
    }
  }
});

test('infinities and NaNs of a float16 cache stay what they are', async () => {
  for (const numHeads of [2, 8]) {
    for (const garbage of [Infinity, -Infinity, NaN]) {
      for (const pageSize of [0, 16]) {
        const kind = /** @type {Kind} */ ({ dtype: 'float16', ...(pageSize && { pageSize }) });
        const operands = operandsOf(numHeads, 2, 64);
        // Head 0, token 130: column 40 of the values.
        operands.value.data[130 * 64 + 40] = garbage;
        const out = await compare(kind, operands);
        const last = (rows - 1) * 64;
        assert.ok(Object.is(out[last + 40], garbage), `${out[last + 40]}`);
        assert.ok([...out.subarray(last, last + 40)].every(Number.isFinite));
        // Head 1, token 200: an element of the key.
        operands.key.data[(331 + 200) * 64 + 5] = garbage;
        const both = await compare(kind, operands);
        const group = numHeads / 2;
        assert.ok([...both.subarray(0, 40)].every(Number.isFinite));
        // A score is -infinity at best, and then the key takes no part.
        const ofHead1 = [...both.subarray((group * rows + rows - 1) * 64, (group * rows + rows) * 64)];
        const down = operands.query.data[(group * rows + rows - 1) * 64 + 5] * garbage === -Infinity;
        assert.ok(ofHead1.every(down ? Number.isFinite : Number.isNaN), `${ofHead1[0]}`);
      }
    }
  }
});

test('queries too large to take a power of two from the keys, and keys and values of any size', async () => {
  for (const kind of [{ dtype: 'float16' }, { dtype: 'int8' }]) {
    for (const [ofQuery, ofKey, ofValue] of [
      [2 ** 20, 2 ** -20, 1],
      [2 ** 100, 2 ** -14, 1],
      [2 ** -100, 2 ** 12, 1],
      [1, 2 ** -18, 2 ** -20],
      [2 ** -8, 2 ** 12, 2 ** 13],
    ]) {
      for (const numHeads of [1, 4]) {
        const operands = operandsOf(numHeads, 1, 64, 64, 131);
        for (const [name, factor] of [
          ['query', ofQuery],
          ['key', ofKey],
          ['value', ofValue],
        ]) {
          const { data } = operands[/** @type {'query'} */ (name)];
          for (let i = 0; i < data.length; i++) data[i] *= /** @type {number} */ (factor);
        }
        const out = await compare(/** @type {Kind} */ (kind), operands);
        assert.ok(out.every(Number.isFinite));
      }
    }
  }
});

test('steps of int8 overflow no product whose score is a number', async () => {
  const operands = operandsOf(1, 1, 64, 64, 50);
  for (let i = 0; i < operands.query.data.length; i++) operands.query.data[i] *= 2 ** 121;
  for (let i = 0; i < operands.key.data.length; i++) operands.key.data[i] *= 2 ** -121;
  const out = await compare({ dtype: 'int8' }, operands);
  assert.ok(out.every(Number.isFinite));
});
