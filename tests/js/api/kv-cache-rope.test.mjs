// A KV cache with rope: keys are rotated as they are appended, queries as they attend, each by its position.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { assertSameBits } from '../helpers/workers.mjs';
import { blhd, pieces, tokens } from './kv-cache-tokens.mjs';

const random = randomSource(12);
const length = 70;
const query = random.tensor(2, 4, length, 16);
const key = random.tensor(2, 2, length, 16);
const value = random.tensor(2, 2, length, 16);
const shape = { batch: 2, numKvHeads: 2, headDim: 16 };

for (const rope of /** @type {any[]} */ ([
  {},
  { base: 500, pairing: 'interleaved' },
  { rotaryDim: 6 },
  { scaling: { type: 'linear', factor: 4 } },
])) {
  test(`a cache with rope ${JSON.stringify(rope)} is attention of rotated queries and keys, bit for bit`, async () => {
    const sdpa = await loadVariant();
    const want = sdpa.attention(sdpa.rope(query, rope), sdpa.rope(key, rope), value, { causal: true });
    const plain = sdpa.attention(query, key, value, { causal: true });
    for (const kind of [{}, { pageSize: 8 }, { window: length }]) {
      const cache = sdpa.createKVCache({ ...shape, ...kind, rope });
      for (const [from, to] of pieces(length, [1, 30, 3])) {
        const given = [tokens(key, from, to), tokens(value, from, to), tokens(query, from, to)];
        const kept = given.map(({ data }) => data.slice());
        cache.append(given[0], given[1]);
        const got = cache.attend(given[2]);
        assertSameBits(got, { out: tokens(want.out, from, to) });
        assert.deepEqual(
          given.map(({ data }) => data),
          kept,
          'what the caller gave is unchanged',
        );
        if (from > 0) assert.notDeepEqual(got.out.data, tokens(plain.out, from, to).data);
      }
    }
  });
}

test('positions are those of each row, in either layout, and go on after truncate', async () => {
  const sdpa = await loadVariant();
  const cache = sdpa.createKVCache({ ...shape, rope: {} });
  const lengths = Int32Array.of(20, 9);
  cache.append(blhd(tokens(key, 0, 25)), blhd(tokens(value, 0, 25)), { layout: 'blhd', lengths: [25, 11] });
  cache.truncate(lengths);
  const q = tokens(query, 30, 33);
  const offset = lengths.map((n) => n - 3);
  const want = sdpa.attention(sdpa.rope(q, { offset }), sdpa.rope(tokens(key, 0, 20)), tokens(value, 0, 20), {
    causal: true,
    align: 'lower-right',
    kvLengths: lengths,
  });
  assertSameBits(cache.attend(q), want);
  assertSameBits({ out: cache.attend(blhd(q), { layout: 'blhd' }).out }, { out: blhd(want.out) });
  // The next token of each row stands behind its last.
  const next = tokens(key, 40, 41);
  cache.append(next, tokens(value, 40, 41));
  const rotated = sdpa.rope(next, { offset: lengths });
  const all = sdpa.createKVCache(shape);
  all.append(sdpa.rope(tokens(key, 0, 20)), tokens(value, 0, 20), { lengths });
  all.append(rotated, tokens(value, 40, 41));
  assertSameBits(cache.attend(q), all.attend(sdpa.rope(q, { offset: lengths.map((n) => n + 1 - 3) })));
});

test('keys are rotated before they are rounded to the storage type', async () => {
  const sdpa = await loadVariant();
  for (const dtype of /** @type {const} */ (['float16', 'int8'])) {
    const [cache, want] = [sdpa.createKVCache({ ...shape, dtype, rope: {} }), sdpa.createKVCache({ ...shape, dtype })];
    cache.append(key, value);
    want.append(sdpa.rope(key), value);
    assertSameBits(cache.attend(query), want.attend(sdpa.rope(query)));
  }
});
