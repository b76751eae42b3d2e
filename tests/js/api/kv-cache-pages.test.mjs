// Paged KV caches: forks share pages, and copy them before they write.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertThrows } from '../helpers/errors.mjs';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { assertSameBits } from '../helpers/workers.mjs';
import { tokens } from './kv-cache-tokens.mjs';

const random = randomSource(10);
const shape = { batch: 2, numKvHeads: 2, headDim: 48, headDimV: 40 };
const length = 331;
const query = random.tensor(2, 6, length, 48);
const key = random.tensor(2, 2, length, 48);
const value = random.tensor(2, 2, length, 40);

test('forks share pages until one of them writes', async () => {
  const sdpa = await loadVariant();
  const { held } = sdpa.memory();
  const cache = sdpa.createKVCache({ ...shape, pageSize: 8, capacity: 64 });
  const bytes = 2 * 64 * 2 * (48 + 40) * 4;
  assert.equal(cache.byteLength, bytes);
  cache.append(tokens(key, 0, 29), tokens(value, 0, 29));
  const q = tokens(query, 0, 4);
  const first = cache.attend(q);
  // 8 of 16 pages are used: nine forks of 29 tokens fit only because they share them.
  const forks = Array.from({ length: 9 }, () => cache.fork());
  for (const fork of forks) assertSameBits(fork.attend(q), first);
  assert.equal(cache.byteLength, bytes);
  forks[0].append(tokens(key, 50, 52), tokens(value, 50, 52));
  assert.deepEqual([cache.length, forks[0].length, forks[1].length], [29, 31, 29]);
  assertSameBits(cache.attend(q), first);
  assertSameBits(forks[1].attend(q), first);
  const apart = sdpa.createKVCache(shape);
  apart.append(tokens(key, 0, 29), tokens(value, 0, 29));
  apart.append(tokens(key, 50, 52), tokens(value, 50, 52));
  assertSameBits(forks[0].attend(q), apart.attend(q));
  // The first of them goes on: its forks keep what they had.
  cache.evict([0]);
  cache.append(tokens(key, 100, 120), tokens(value, 100, 120));
  for (const fork of forks.slice(1)) assertSameBits(fork.attend(q), first);
  cache.reset();
  cache.dispose();
  for (const fork of forks.slice(1)) assertSameBits(fork.attend(q), first);
  const second = forks[3].fork();
  for (const fork of forks) fork.dispose();
  assertSameBits(second.attend(q), first);
  assert.ok(sdpa.memory().held > held + apart.byteLength);
  second.dispose();
  apart.dispose();
  assert.equal(sdpa.memory().held, held);
});

test('pages go back to the pool with the last cache that uses them', async () => {
  const sdpa = await loadVariant();
  const cache = sdpa.createKVCache({ ...shape, batch: 1, pageSize: 4, capacity: 16, fixed: true });
  const one = (/** @type {any} */ tensor, /** @type {number} */ n) => ({
    data: tensor.data.slice(0, 2 * n * tensor.shape[3]),
    shape: [1, 2, n, tensor.shape[3]],
  });
  cache.append(one(key, 8), one(value, 8));
  const fork = cache.fork();
  fork.append(one(key, 8), one(value, 8));
  assertThrows(
    () => cache.append(one(key, 1), one(value, 1)),
    'capacity',
    /8 tokens and cannot take 1 more.*16 in all, and 0 of them are free/,
  );
  fork.truncate(8);
  cache.append(one(key, 5), one(value, 5));
  assertThrows(() => fork.append(one(key, 1), one(value, 1)), 'capacity', /full/);
  cache.dispose();
  fork.append(one(key, 8), one(value, 8));
  assert.equal(fork.length, 16);
  assert.equal(fork.capacity, 16);
});

test('a shared page that evict has to copy is an error where the pool has no page left, and changes nothing', async () => {
  const sdpa = await loadVariant();
  const cache = sdpa.createKVCache({ batch: 1, numKvHeads: 1, headDim: 2, pageSize: 2, capacity: 4, fixed: true });
  const x = random.tensor(1, 1, 4, 2);
  cache.append(x, x);
  const fork = cache.fork();
  const before = fork.attend(x);
  assertThrows(() => fork.evict([0]), 'capacity', /full.*2 pages of 2 tokens/);
  assert.equal(fork.length, 4);
  assertSameBits(fork.attend(x), before);
  fork.evict([3]);
  assert.equal(fork.length, 3);
  assertSameBits(cache.attend(x), before);
});
