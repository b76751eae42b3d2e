// attentionAsync() as a call: its arguments, its errors, its order, its results.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertRejects } from '../helpers/errors.mjs';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { assertSameBits, longCall, untilWorkersRun, watchWorkers } from '../helpers/workers.mjs';

const { tensor } = randomSource(21);
const small = { query: tensor(2, 5, 8), key: tensor(2, 9, 8), value: tensor(2, 9, 8) };

for (const threads of [0, 2]) {
  const how = threads ? 'on workers' : 'on this thread';

  test(`${how}: what happens to the inputs after the call does not matter`, async () => {
    const sdpa = await loadVariant({ threads });
    const { query, key, value } = longCall();
    const bias = tensor(900);
    const mask = { data: new Uint8Array(900).fill(1).fill(0, 300, 400), shape: [900] };
    const resident = sdpa.tensor(value.shape);
    resident.data.set(value.data);
    const kvLengths = Int32Array.of(850);
    const options = { mask, bias, kvLengths, returnLse: true };
    const want = sdpa.attention(query, key, value, options);
    const promise = sdpa.attentionAsync(query, key, resident, options);
    for (const { data } of [query, key, bias]) data.fill(NaN);
    mask.data.fill(0);
    kvLengths.fill(1);
    resident.data.fill(NaN);
    resident.dispose();
    structuredClone(query.data.buffer, { transfer: [query.data.buffer] });
    assertSameBits(await promise, want);
    sdpa.dispose();
  });

  test(`${how}: boolean arrays, views into memory that grows and tensors of another instance are inputs`, async () => {
    const [sdpa, other] = [await loadVariant({ threads }), await loadVariant({ threads: 0 })];
    const key = other.tensor(small.key.shape);
    key.data.set(small.key.data);
    const query = sdpa.tensor(small.query.shape);
    query.data.set(small.query.data);
    const mask = { data: Array.from({ length: 9 }, (_, j) => j !== 4), shape: [9] };
    const want = sdpa.attention(query, key, small.value, { mask });
    const promise = sdpa.attentionAsync({ data: query.data, shape: query.shape }, key, small.value, { mask });
    sdpa.tensor([40_000_000]);
    assertSameBits(await promise, want);
    sdpa.dispose();
    other.dispose();
  });

  test(`${how}: out receives the result, as an array or in wasm memory that grows meanwhile`, async () => {
    const sdpa = await loadVariant({ threads });
    const { query, key, value } = longCall();
    const want = sdpa.attention(query, key, value);
    const array = new Float32Array(want.out.data.length);
    const promises = [
      sdpa.attentionAsync(query, key, value, { out: array }),
      sdpa.attentionAsync(query, key, value, { out: sdpa.tensor(query.shape) }),
      // The inputs' own array: they have been copied.
      sdpa.attentionAsync(query, key, value, { out: query.data }),
    ];
    sdpa.tensor([30_000_000]);
    const [first, second, third] = await Promise.all(promises);
    assert.equal(first.out.data, array);
    assert.equal(third.out.data, query.data);
    for (const { out } of [first, second, third]) {
      assertSameBits({ out: { data: out.data, shape: out.shape } }, want);
    }
    sdpa.dispose();
  });

  test(`${how}: an out that is lost during the call is an error, and the next call works`, async () => {
    const sdpa = await loadVariant({ threads });
    const { query, key, value } = longCall();
    const out = sdpa.tensor(query.shape);
    const array = new Float32Array(query.data.length);
    const promises = [
      assertRejects(sdpa.attentionAsync(query, key, value, { out }), 'disposed', /tensor of shape \[2, 900, 32\]/),
      assertRejects(
        sdpa.attentionAsync(query, key, value, { out: array }),
        'type',
        /^out's buffer has been transferred/,
      ),
    ];
    out.dispose();
    structuredClone(array.buffer, { transfer: [array.buffer] });
    await Promise.all(promises);
    assertSameBits(await sdpa.attentionAsync(query, key, value), sdpa.attention(query, key, value));
    sdpa.dispose();
  });

  test(`${how}: progress grows to the total, one call after the other`, async () => {
    const sdpa = await loadVariant({ threads });
    const { query, key, value } = longCall();
    /** @type {[number, { done: number, total: number }][]} */
    const seen = [];
    const calls = [0, 1, 2].map((i) =>
      sdpa.attentionAsync(query, key, value, { onProgress: (progress) => seen.push([i, progress]) }),
    );
    await Promise.all(calls);
    for (const i of [0, 1, 2]) {
      const own = seen.filter(([of]) => of === i).map(([, progress]) => progress);
      assert.ok(own.every(({ total }) => total === 1800));
      assert.ok(own.every(({ done }, n) => done > (n ? own[n - 1].done : 0)));
      assert.equal(own.at(-1)?.done, 1800);
    }
    const starts = [0, 1, 2].map((i) => seen.findIndex(([of]) => of === i));
    assert.deepEqual(
      starts,
      [...starts].sort((a, b) => a - b),
      'calls overtook each other',
    );
    sdpa.dispose();
  });

  test(`${how}: an error that onProgress throws ends the call, and the next call works`, async () => {
    const sdpa = await loadVariant({ threads });
    const { query, key, value } = longCall();
    const mine = new Error('mine');
    let calls = 0;
    const failing = sdpa.attentionAsync(query, key, value, {
      onProgress: () => {
        calls++;
        throw mine;
      },
    });
    const next = sdpa.attentionAsync(query, key, value);
    await assert.rejects(failing, (error) => error === mine);
    assertSameBits(await next, sdpa.attention(query, key, value));
    assert.equal(calls, 1);
    sdpa.dispose();
  });

  test(`${how}: results that are empty come without any work`, async (t) => {
    const { workers } = watchWorkers(t);
    const sdpa = await loadVariant({ threads });
    const none = { data: new Float32Array(0), shape: [0, 4] };
    const some = { data: new Float32Array(12), shape: [3, 4] };
    /** @type {any[]} */
    const seen = [];
    const onProgress = (/** @type {any} */ progress) => seen.push(progress);
    const plain = { returnLse: /** @type {const} */ (true) };
    const options = { ...plain, onProgress };
    assertSameBits(await sdpa.attentionAsync(some, none, none, options), sdpa.attention(some, none, none, plain));
    assertSameBits(await sdpa.attentionAsync(none, some, some, options), sdpa.attention(none, some, some, plain));
    assert.deepEqual(seen, [
      { done: 3, total: 3 },
      { done: 0, total: 0 },
    ]);
    assert.equal(workers.length, 0);
    sdpa.dispose();
  });

  test(`${how}: the sync call works while an asynchronous one runs`, async () => {
    const sdpa = await loadVariant({ threads });
    const { query, key, value } = longCall();
    const want = sdpa.attention(query, key, value);
    let between = 0;
    const promise = sdpa.attentionAsync(query, key, value, {
      onProgress: () => {
        between++;
        assertSameBits(sdpa.attention(query, key, value), want);
      },
    });
    assertSameBits(await promise, want);
    assert.ok(between > 0);
    sdpa.dispose();
  });

  test(`${how}: dispose() ends the calls that run and those that wait`, async () => {
    const sdpa = await loadVariant({ threads });
    const { query, key, value } = longCall();
    const calls = [0, 1, 2].map((i) =>
      sdpa.attentionAsync(query, key, value, { onProgress: () => void (i === 0 && sdpa.dispose()) }),
    );
    for (const call of calls) await assertRejects(call, 'disposed', /disposed of while the call ran/);
    assert.equal(sdpa.threads, 0);
    await assertRejects(sdpa.attentionAsync(query, key, value), 'disposed', /has been disposed of$/);
    sdpa.dispose();
  });

  test(`${how}: memory that does not suffice is an error of the call, and the next call works`, async () => {
    const sdpa = await loadVariant({ threads, maxMemory: 1_000_000 });
    const large = tensor(4000, 64);
    const promise = sdpa.attentionAsync(large, large, large);
    const error = await assertRejects(promise, 'out-of-memory', /needs \d+ bytes and \d+ bytes are allowed/);
    assert.ok(Number(error.needed) > Number(error.allowed));
    const { query, key, value } = small;
    assertSameBits(await sdpa.attentionAsync(query, key, value), sdpa.attention(query, key, value));
    const { held } = sdpa.memory();
    assert.ok(held < 300_000, `${held} bytes are held`);
    sdpa.dispose();
  });
}

test('arguments are checked as by attention(), and reject', async () => {
  const sdpa = await loadVariant({ threads: 0 });
  const { query, key, value } = small;
  /** @type {any} */
  const call = (/** @type {any[]} */ ...args) => sdpa.attentionAsync(.../** @type {[any, any, any]} */ (args));
  await assertRejects(call(), 'type', /^query must be a tensor/);
  await assertRejects(call(query, key, tensor(2, 8, 8)), 'shape', /^value length is 8 but key length is 9$/);
  await assertRejects(call(query, key, value, { causal: true }), 'align-required', /^causal needs to know/);
  await assertRejects(call(query, key, value, { isCausal: true }), 'unknown-option', /no option 'isCausal'/);
  await assertRejects(call(query, key, value, { dropout: {} }), 'type', /dropout needs p and seed/);
  await assertRejects(call(query, key, value, 5), 'type', /^options must be an object, got 5$/);
  await assertRejects(call(query, key, value, { out: new Float32Array(3) }), 'shape', /^out has 3 elements/);
  await assertRejects(call(query, key, value, { signal: {} }), 'type', /^signal must be an AbortSignal, got a Object$/);
  await assertRejects(call(query, key, value, { signal: null }), 'type', /^signal must be an AbortSignal, got null$/);
  await assertRejects(call(query, key, value, { onProgress: 1 }), 'type', /^onProgress must be a function, got 1$/);
  const huge = { data: new Float32Array(1), shape: [1, 2 ** 30, 2 ** 30] };
  await assertRejects(call(huge, huge, huge), 'shape', /more than 2\^53 elements/);
  assertSameBits(await call(query, key, value, { signal: undefined, onProgress: undefined, scale: undefined }), {
    ...sdpa.attention(query, key, value),
  });
  sdpa.dispose();
});

test('attention() itself takes neither signal nor onProgress', async () => {
  const sdpa = await loadVariant({ threads: 0 });
  const { query, key, value } = small;
  for (const name of ['signal', 'onProgress']) {
    assert.throws(
      () => sdpa.attention(query, key, value, /** @type {any} */ ({ [name]: null })),
      (/** @type {any} */ error) => error.code === 'unknown-option',
    );
  }
  sdpa.dispose();
});

test('results are ordinary arrays that other interfaces take', async () => {
  const sdpa = await loadVariant({ threads: 2 });
  const { query, key, value } = longCall();
  const { out, lse } = await sdpa.attentionAsync(query, key, value, { returnLse: true });
  assert.ok(out.data.buffer instanceof ArrayBuffer && lse.data.buffer instanceof ArrayBuffer);
  assert.equal(out.data.byteOffset, 0);
  assert.equal(out.data.buffer.byteLength, out.data.byteLength);
  assert.equal((await new Blob([out.data]).arrayBuffer()).byteLength, out.data.byteLength);
  assert.equal((await crypto.subtle.digest('SHA-256', out.data)).byteLength, 32);
  const { length } = out.data;
  assert.equal(structuredClone(out.data, { transfer: [out.data.buffer] }).length, length);
  sdpa.dispose();
});

test('small calls start no more workers than they can use, and threads counts those that run', async (t) => {
  const { workers } = watchWorkers(t);
  const sdpa = await loadVariant({ threads: 3 });
  assert.equal(sdpa.threads, 0);
  await sdpa.attentionAsync(small.query, small.key, small.value);
  assert.equal(workers.length, 1);
  await untilWorkersRun(sdpa, 1);
  assert.ok(sdpa.threads <= workers.length);
  await untilWorkersRun(sdpa, 3);
  assert.equal(workers.length, 3);
  sdpa.dispose();
  assert.equal(sdpa.threads, 0);
});

test('an idle instance keeps neither keys nor values, here or in its workers', async (t) => {
  const { workers } = watchWorkers(t);
  const { query, key, value } = longCall();
  const local = await loadVariant({ threads: 0 });
  const { held } = local.memory();
  await local.attentionAsync(query, key, value);
  assert.equal(local.memory().held, held);
  local.dispose();
  const sdpa = await loadVariant({ threads: 2 });
  await sdpa.attentionAsync(query, key, value);
  for (const { sent } of workers) {
    if (sent.some((/** @type {any} */ { type }) => type === 'slice')) assert.equal(sent.at(-1).type, 'free');
  }
  sdpa.dispose();
});
