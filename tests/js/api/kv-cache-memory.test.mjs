// The memory that a KV cache takes, and gives back.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jsonOf } from '../helpers/child.mjs';
import { assertThrows } from '../helpers/errors.mjs';
import { largestError, randomSource, referenceAttention } from '../helpers/reference.mjs';
import { loadVariant, VARIANT } from '../helpers/sdpa.mjs';
import { tokens } from './kv-cache-tokens.mjs';

const random = randomSource(11);
const shape = { batch: 2, numKvHeads: 2, headDim: 48, headDimV: 40 };
const length = 331;
const query = random.tensor(2, 6, length, 48);
const key = random.tensor(2, 2, length, 48);
const value = random.tensor(2, 2, length, 40);

test('an int8 cache of 32 768 tokens holds at most 0.29 of the bytes of float32', async () => {
  const sdpa = await loadVariant();
  const { held } = sdpa.memory();
  const bytes = Object.fromEntries(
    /** @type {const} */ (['float32', 'float16', 'int8']).map((dtype) => {
      const cache = sdpa.createKVCache({ batch: 1, numKvHeads: 2, headDim: 64, dtype, capacity: 32768 });
      assert.equal(sdpa.memory().held, held + cache.byteLength);
      const { byteLength } = cache;
      cache.dispose();
      return [dtype, byteLength];
    }),
  );
  assert.equal(bytes.float32, 2 * 2 * 32768 * 64 * 4);
  assert.equal(bytes.float16, bytes.float32 / 2);
  assert.ok(bytes.int8 <= 0.29 * bytes.float32);
});

test('capacity doubles, what it held is given back, and dispose gives back the rest', async () => {
  const sdpa = await loadVariant();
  const { held } = sdpa.memory();
  const cache = sdpa.createKVCache({ ...shape, capacity: 4 });
  const seen = new Set();
  for (let i = 0; i < 40; i++) {
    cache.append(tokens(key, i, i + 1), tokens(value, i, i + 1));
    seen.add(cache.capacity);
    assert.equal(cache.byteLength, cache.capacity * 2 * 2 * (48 + 40) * 4);
    assert.equal(sdpa.memory().held, held + cache.byteLength);
  }
  assert.deepEqual([...seen], [4, 8, 16, 32, 64]);
  assert.equal(sdpa.createKVCache(shape).capacity, 64);
  cache.dispose();
  cache.dispose();
  assert.ok(cache.disposed);
  for (const use of [
    () => cache.append(key, value),
    () => cache.attend(query),
    () => cache.truncate(0),
    () => cache.reset(),
    () => cache.evict([0]),
    () => cache.fork(),
    () => cache.length,
    () => cache.lengths,
    () => cache.capacity,
    () => cache.byteLength,
  ]) {
    assertThrows(use, 'disposed', /this KV cache has been disposed of/);
  }
  const other = sdpa.createKVCache(shape);
  other[Symbol.dispose]();
  assert.ok(other.disposed);
});

test('after the instance is disposed of its caches are too', async () => {
  const sdpa = await loadVariant();
  const cache = sdpa.createKVCache(shape);
  const paged = sdpa.createKVCache({ ...shape, pageSize: 4 });
  sdpa.dispose();
  assert.ok(cache.disposed);
  assertThrows(() => cache.append(key, value), 'disposed', /instance of this KV cache has been disposed of/);
  assertThrows(() => paged.fork(), 'disposed', /instance/);
  assertThrows(() => sdpa.createKVCache(shape), 'disposed', /instance/);
  cache.dispose();
  paged.dispose();
});

test('memory of caches and forks that were forgotten is freed', () => {
  const got = jsonOf(
    `import { load } from 'sdpa';
     const sdpa = await load({ variant: '${VARIANT}' });
     const { held } = sdpa.memory();
     const sizes = { batch: 1, numKvHeads: 1, headDim: 16 };
     const x = { data: new Float32Array(16 * 40), shape: [1, 1, 40, 16] };
     // In functions, so that no variable of this module's holds the last one.
     const make = () => {
       sdpa.createKVCache(sizes).append(x, x);
       const paged = sdpa.createKVCache({ ...sizes, pageSize: 4 });
       paged.append(x, x);
       paged.fork().fork();
     };
     for (let i = 0; i < 50; i++) make();
     const full = sdpa.memory().held - held;
     const kept = sdpa.createKVCache({ ...sizes, pageSize: 4, capacity: 80, fixed: true });
     kept.append(x, x);
     const fork = () => {
       const other = kept.fork();
       other.truncate(2);
       other.evict([0]);
     };
     for (let i = 0; i < 10; i++) fork();
     const append = () => {
       try {
         kept.append(x, x);
         return true;
       } catch {
         return false;
       }
     };
     const taken = !append();
     for (let i = 0; i < 200 && sdpa.memory().held > held + kept.byteLength; i++) { gc(); await new Promise((done) => setTimeout(done, 5)); }
     let room = append();
     for (let i = 0; i < 200 && !room; i++) { gc(); await new Promise((done) => setTimeout(done, 5)); room = append(); }
     console.log(JSON.stringify({ full, taken, left: sdpa.memory().held - held - kept.byteLength, room, length: kept.length }));`,
    { flags: ['--expose-gc'] },
  );
  assert.deepEqual(got, { full: 50 * 2 * 64 * 2 * 16 * 4, taken: true, left: 0, room: true, length: 80 });
});

test('tensors in wasm memory and their data are appended, also where the memory grows meanwhile', async () => {
  const sdpa = await loadVariant();
  const before = 60_000;
  const x = random.tensor(1, 1, 300, 64);
  const tensor = sdpa.tensor(x.shape);
  tensor.data.set(x.data);
  const want = referenceAttention(x, x, x, { causal: true });
  const mask = { data: new Uint8Array(before + 300).fill(1, before), shape: [1, before + 300] };
  const filler = { data: new Float32Array(before * 64), shape: [1, 1, before, 64] };
  for (const kind of [{}, { pageSize: 16 }, { dtype: 'float16' }]) {
    for (const give of [() => tensor, () => ({ data: tensor.data, shape: x.shape })]) {
      const sizes = { batch: 1, numKvHeads: 1, headDim: 64, capacity: before };
      const cache = sdpa.createKVCache(/** @type {any} */ ({ ...sizes, ...kind }));
      cache.append(filler, filler);
      const { byteLength } = cache;
      cache.append(give(), give());
      assert.ok(cache.byteLength > byteLength, 'the cache has grown');
      const error = largestError(cache.attend(x, { mask }).out.data, want.out);
      assert.ok(error <= ('dtype' in kind ? 2e-3 : 2e-6), `off by ${error}`);
      cache.dispose();
    }
  }
});
