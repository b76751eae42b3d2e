// Several queries at once over a ring.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { assertSameBits } from '../helpers/workers.mjs';
import { pieces, tokens } from './kv-cache-tokens.mjs';

const random = randomSource(12);
const length = 200;
const query = random.tensor(1, 4, length, 24);
const key = random.tensor(1, 2, length, 24);
const value = random.tensor(1, 2, length, 24);
const shape = { batch: 1, numKvHeads: 2, headDim: 24 };

/**
 * Whether pieces of n tokens through a ring give one call with the window w.
 * @param {any} sdpa
 * @param {number} w
 * @param {number} n
 * @param {number} ring tokens of the ring
 * @param {number} globalKeys
 */
function checkPieces(sdpa, w, n, ring, globalKeys) {
  const window = /** @type {const} */ ([w - 1, 0]);
  const want = sdpa.attention(query, key, value, { causal: true, window, globalKeys });
  const cache = sdpa.createKVCache({ ...shape, window: ring, globalKeys });
  for (const [from, to] of pieces(length, [n])) {
    cache.append(tokens(key, from, to), tokens(value, from, to));
    const got = cache.attend(tokens(query, from, to), { window, globalKeys });
    assertSameBits(got, { out: tokens(want.out, from, to) }, `w ${w}, n ${n}, ${from} to ${to}`);
  }
  cache.dispose();
}

test('n tokens at a time through a ring of n - 1 more tokens than the window are one call, bit for bit', async () => {
  const sdpa = await loadVariant();
  for (const [w, n] of [
    [30, 2],
    [64, 7],
    [5, 40],
    [70, 64],
  ]) {
    for (const globalKeys of [0, 3]) checkPieces(sdpa, w, n, w + n - 1, globalKeys);
  }
});

test('in a smaller ring the first of n queries misses what the last tokens wrote over', async () => {
  const sdpa = await loadVariant();
  assert.throws(() => checkPieces(sdpa, 30, 7, 30 + 7 - 2, 0), { code: 'ERR_ASSERTION' });

  const cache = sdpa.createKVCache({ ...shape, window: 10 });
  cache.append(key, value);
  const { scores } = cache.attend(tokens(query, length - 4, length), { scores: 'weights' });
  const seen = [0, 1, 2, 3].map((i) => scores.data.subarray(i * length, (i + 1) * length).filter((p) => p > 0).length);
  assert.deepEqual(seen, [7, 8, 9, 10]);
});
