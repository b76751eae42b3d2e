// Memory: what is held, what grows, what happens at the ceiling.

import assert from 'node:assert/strict';
import { freemem } from 'node:os';
import { test } from 'node:test';
import { jsonOf } from '../helpers/child.mjs';
import { assertRejects, assertThrows } from '../helpers/errors.mjs';
import { largestError, randomSource, referenceAttention } from '../helpers/reference.mjs';
import { loadVariant, VARIANT } from '../helpers/sdpa.mjs';

const random = randomSource(4);

test('calls hold nothing afterwards, whatever their size', async () => {
  const sdpa = await loadVariant();
  const { held } = sdpa.memory();
  for (const L of [1, 10, 100, 1000, 3000]) {
    const x = random.tensor(1, 2, L, 16);
    sdpa.attention(x, x, x, { returnLse: true });
    assert.equal(sdpa.memory().held, held);
  }
  assert.ok(sdpa.memory().peak > held + 3 * 2 * 3000 * 16 * 4);
});

test('20 000 calls and 20 000 calls that throw do not grow anything', async () => {
  const sdpa = await loadVariant();
  const x = random.tensor(1, 2, 6, 8);
  const large = random.tensor(1, 1, 700, 64);
  const mask = { data: new Uint8Array(9), shape: [3, 3] };
  /** @param {number} times */
  const run = (times) => {
    for (let i = 0; i < times; i++) {
      sdpa.attention(x, x, x, { causal: true, returnLse: true });
      try {
        sdpa.attention(x, x, x, { mask });
        assert.fail('the mask does not fit');
      } catch (error) {
        assert.equal(/** @type {any} */ (error).code, 'shape');
      }
      if (i % 1000 === 0) sdpa.attention(large, large, large);
    }
  };
  run(1000);
  const first = sdpa.memory();
  run(19_000);
  assert.deepEqual(sdpa.memory(), first);
});

test('results stay right when the memory grows later and during a call', async () => {
  const sdpa = await loadVariant();
  const x = random.tensor(1, 1, 64, 64);
  const first = sdpa.attention(x, x, x);
  const kept = first.out.data.slice();
  const { wasm } = sdpa.memory();
  // One query over many keys: 300 MB of inputs and little to compute.
  const key = { data: new Float32Array(40e6), shape: [1, 1, 625_000, 64] };
  for (let i = 0; i < key.data.length; i += 97) key.data[i] = (i % 31) / 31;
  const query = random.tensor(1, 1, 1, 64);
  const got = sdpa.attention(query, key, key);
  assert.ok(sdpa.memory().wasm > wasm + 300e6, 'the memory has grown');
  assert.ok(largestError(got.out.data, referenceAttention(query, key, key).out) <= 2e-6);
  assert.deepEqual(first.out.data, kept);
  assert.deepEqual(sdpa.attention(x, x, x).out.data, kept);
});

test('results are ordinary arrays of the caller', async () => {
  const sdpa = await loadVariant();
  const x = random.tensor(1, 1, 4, 4);
  const { out, lse } = sdpa.attention(x, x, x, { returnLse: true });
  assert.ok(out.data.buffer instanceof ArrayBuffer && out.data.byteOffset === 0);
  assert.equal(out.data.buffer.byteLength, 64);
  const copy = out.data.slice();
  sdpa.attention(random.tensor(1, 1, 4, 4), x, x);
  assert.deepEqual(out.data, copy);
  structuredClone(lse, { transfer: [lse.data.buffer] });
  await new Blob([out.data]).arrayBuffer();
});

test('maxMemory bounds what is held; what does not fit names bytes needed and allowed, and changes nothing', async () => {
  const maxMemory = 1_000_000;
  const sdpa = await loadVariant({ maxMemory });
  const small = random.tensor(1, 1, 40, 16);
  const large = random.tensor(1, 1, 8000, 16);
  const want = sdpa.attention(small, small, small);
  const { held } = sdpa.memory();
  const out = new Float32Array(8000 * 16).fill(5);
  const error = assertThrows(
    () => sdpa.attention(large, large, large, { out }),
    'out-of-memory',
    /^attention needs \d+ bytes and \d+ bytes are allowed$/,
  );
  assert.ok(/** @type {number} */ (error.needed) > 4 * 8000 * 16 * 4);
  assert.equal(error.allowed, maxMemory - held);
  assert.ok(out.every((x) => x === 5));
  assert.equal(sdpa.memory().held, held);
  assert.deepEqual(sdpa.attention(small, small, small), want);
  assertThrows(
    () => sdpa.tensor([1_000_000]),
    'out-of-memory',
    /a float32 tensor of shape \[1000000\] needs 4000000 bytes/,
  );
  assert.ok(sdpa.memory().peak <= maxMemory);
});

test('maxMemory too small for anything is an error of load', async () => {
  await assertRejects(
    loadVariant({ maxMemory: 100 }),
    'out-of-memory',
    /loading needs \d+ bytes and 100 bytes are allowed/,
  );
});

test('when the engine refuses to grow, the error is catchable and the instance goes on', () => {
  const got = jsonOf(
    `import { load } from 'sdpa';
     const sdpa = await load({ variant: '${VARIANT}' });
     const x = { data: Float32Array.from({ length: 64 }, (_, i) => Math.sin(i)), shape: [1, 1, 8, 8] };
     const before = sdpa.attention(x, x, x).out.data;
     const big = { data: new Float32Array(8 * 16384 * 128), shape: [1, 8, 16384, 128] };
     let caught;
     try { sdpa.attention(big, big, big); } catch (error) { caught = error; }
     const after = sdpa.attention(x, x, x).out.data;
     console.log(JSON.stringify({ code: caught?.code, name: caught?.name, message: caught?.message, needed: caught?.needed,
       same: before.every((value, i) => value === after[i]), memory: sdpa.memory() }));`,
    { flags: ['--wasm-max-mem-pages=1024'] },
  );
  assert.equal(got.code, 'out-of-memory');
  assert.equal(got.name, 'RangeError');
  assert.match(got.message, /attention needs \d+ bytes and \d+ bytes are allowed/);
  assert.ok(got.needed > 4 * 8 * 16384 * 128 * 4);
  assert.ok(got.same);
  assert.ok(got.memory.held < 1e6);
});

const roomy = freemem() > 8 * 2 ** 30 ? false : 'needs 8 GiB of free memory';

test(
  'addresses above 2 GiB are addresses, and the end of the 4 GiB is an error that can be caught',
  { skip: roomy },
  () => {
    const got = jsonOf(
      `import { load } from 'sdpa';
     const sdpa = await load({ variant: '${VARIANT}' });
     const x = { data: Float32Array.from({ length: 4096 }, (_, i) => Math.sin(i)), shape: [1, 1, 64, 64] };
     const want = sdpa.attention(x, x, x).out.data;
     const same = ({ data }) => want.every((value, i) => value === data[i]);
     const kept = [sdpa.tensor([1.25 * 2 ** 30], 'bool'), sdpa.tensor([1.25 * 2 ** 30], 'bool')];
     const high = sdpa.tensor([1, 1, 64, 64]);
     high.data.set(x.data);
     const out = sdpa.tensor([1, 1, 64, 64]);
     sdpa.attention(high, x, high, { out });
     // 1 MiB: more than the block that small calls use.
     const long = { data: new Float32Array(2 ** 18), shape: [1, 1, 4096, 64] };
     const zeros = sdpa.attention(long, long, long).out.data.every((value) => value === 0);
     let error; try { for (;;) kept.push(sdpa.tensor([2 ** 28], 'bool')); } catch (caught) { error = caught; }
     console.log(JSON.stringify({ address: high.data.byteOffset, high: same(out), zeros, code: error.code, tensors: kept.length,
       after: same(sdpa.attention(x, x, x).out), copied: same(sdpa.attention(high, high, x).out) }));`,
    );
    assert.ok(got.address > 2 ** 31);
    assert.deepEqual(
      { ...got, address: 0 },
      { address: 0, high: true, zeros: true, code: 'out-of-memory', tensors: 2 + 5, after: true, copied: true },
    );
  },
);

test('forgotten tensors are freed by the garbage collector', () => {
  const got = jsonOf(
    `import { load } from 'sdpa';
     const sdpa = await load({ variant: '${VARIANT}' });
     const { held } = sdpa.memory();
     let kept = sdpa.tensor([1000]);
     for (let i = 0; i < 200; i++) sdpa.tensor([10000]);
     const full = sdpa.memory().held;
     for (let i = 0; i < 50 && sdpa.memory().held > held + 4000; i++) { gc(); await new Promise((done) => setTimeout(done, 5)); }
     kept.data[0] = 1;
     console.log(JSON.stringify({ before: full - held, after: sdpa.memory().held - held }));`,
    { flags: ['--expose-gc'] },
  );
  assert.deepEqual(got, { before: 4000 + 200 * 40000, after: 4000 });
});

test('after dispose everything but dispose is an error', async () => {
  const sdpa = await loadVariant();
  const x = random.tensor(1, 1, 4, 4);
  const tensor = sdpa.tensor([2]);
  sdpa.dispose();
  sdpa.dispose();
  tensor.dispose();
  assertThrows(() => sdpa.attention(x, x, x), 'disposed', /instance has been disposed of/);
  assertThrows(() => sdpa.tensor([2]), 'disposed', /instance/);
  assertThrows(() => sdpa.memory(), 'disposed', /instance/);
  assertThrows(() => tensor.data, 'disposed', /has been disposed of/);
});

test('twenty instances work side by side and fifty can be made and dropped', async () => {
  const all = await Promise.all(Array.from({ length: 20 }, () => loadVariant()));
  const x = random.tensor(1, 1, 9, 7);
  const want = all[0].attention(x, x, x);
  for (const [i, sdpa] of all.entries()) {
    if (i % 2) all[i - 1].dispose();
    assert.deepEqual(sdpa.attention(x, x, x), want);
  }
  for (let i = 0; i < 50; i++) {
    const sdpa = await loadVariant();
    assert.deepEqual(sdpa.attention(x, x, x), want);
    sdpa.dispose();
  }
});

test('head sizes of 16 384 need no more stack than others', async () => {
  const sdpa = await loadVariant();
  const x = random.tensor(1, 1, 2, 16384);
  const y = random.tensor(1, 1, 2, 16384);
  const got = sdpa.attention(x, y, y, { scale: 1 / 128 });
  assert.ok(largestError(got.out.data, referenceAttention(x, y, y, { scale: 1 / 128 }).out) <= 2e-5);
});

test('memory above inputs and outputs grows with the length, not with its square', async () => {
  const sdpa = await loadVariant();
  /** @param {number} L */
  const extra = async (L) => {
    const fresh = await loadVariant();
    const x = { data: new Float32Array(L * 8), shape: [1, 1, L, 8] };
    fresh.attention(x, x, x);
    return fresh.memory().peak - 4 * x.data.byteLength;
  };
  const [small, large] = [await extra(1000), await extra(8000)];
  assert.ok(large < 16 * Math.max(small, 262144), `${small} bytes at 1000, ${large} at 8000`);
  assert.ok(large < 8e6);
  sdpa.dispose();
});
