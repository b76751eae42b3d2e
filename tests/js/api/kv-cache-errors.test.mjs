// What a KV cache refuses, and that nothing has changed afterwards.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertThrows } from '../helpers/errors.mjs';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { assertSameBits } from '../helpers/workers.mjs';

const random = randomSource(21);
const sizes = { batch: 2, numKvHeads: 2, headDim: 4, headDimV: 3 };

test('bad options of createKVCache are refused before anything is allocated', async () => {
  const sdpa = /** @type {any} */ (await loadVariant());
  const { held } = sdpa.memory();
  for (const [change, code, message] of /** @type {[any, string, RegExp][]} */ ([
    [{ batch: undefined }, 'type', /needs the option batch/],
    [{ numKvHeads: undefined }, 'type', /needs the option numKvHeads/],
    [{ headDim: undefined }, 'type', /needs the option headDim/],
    [{ batch: 0 }, 'option', /batch must be a whole number, 1 or more.*got 0/],
    [{ numKvHeads: 1.5 }, 'option', /numKvHeads must be.*got 1.5/],
    [{ headDim: '64' }, 'type', /headDim must be a number, got "64"/],
    [{ headDimV: -1 }, 'option', /headDimV must be.*got -1/],
    [{ dtype: 'bfloat16' }, 'option', /dtype must be 'float32' or 'float16' or 'int8', got "bfloat16"/],
    [{ dtype: 8 }, 'type', /dtype must be/],
    [{ capacity: 0 }, 'option', /capacity must be.*got 0/],
    [{ capacity: Infinity }, 'option', /capacity must be.*got Infinity/],
    [{ fixed: 1 }, 'type', /fixed must be true or false, got 1/],
    [{ fixed: true }, 'option', /fixed needs a capacity/],
    [{ window: 0 }, 'option', /window must be.*got 0/],
    [{ window: [3, 0] }, 'type', /window must be a number/],
    [{ globalKeys: -1, window: 4 }, 'option', /globalKeys must be.*got -1/],
    [{ globalKeys: 4 }, 'option', /globalKeys is 4 but without a window/],
    [{ pageSize: 0 }, 'option', /pageSize must be.*got 0/],
    [{ pageSize: 4, window: 8 }, 'option', /window and pageSize exclude each other/],
    [{ capacity: 9, window: 8 }, 'option', /window and capacity exclude each other.*window \+ globalKeys = 8/],
    [{ fixed: true, window: 8 }, 'option', /window and fixed exclude each other/],
    [{ rope: { bass: 10 } }, 'unknown-option', /bass/],
    [{ rope: { rotaryDim: 6 } }, 'option', /rotaryDim .*head size/],
    [{ page_size: 4 }, 'unknown-option', /createKVCache has no option 'page_size'; did you mean 'pageSize'/],
    [{ heads: 4 }, 'unknown-option', /createKVCache has no option 'heads'; the options are batch, /],
    [{ batch: 2 ** 40 }, 'out-of-memory', /a KV cache of 1099511627776 rows needs/],
    [{ capacity: 2 ** 40 }, 'out-of-memory', /a float32 KV cache of 2 x 1099511627776 tokens needs/],
  ])) {
    assertThrows(() => sdpa.createKVCache({ ...sizes, ...change }), code, message);
  }
  assertThrows(() => sdpa.createKVCache(), 'type', /needs the option batch/);
  assertThrows(() => sdpa.createKVCache(4), 'type', /options of createKVCache must be an object, got 4/);
  assert.equal(sdpa.memory().held, held);
});

/** @param {any} cache */
const state = (cache) => ({ lengths: [...cache.lengths], capacity: cache.capacity, bytes: cache.byteLength });

test('a bad append changes nothing, and the cache goes on', async () => {
  const sdpa = /** @type {any} */ (await loadVariant());
  const kinds = [{}, { dtype: 'int8' }, { dtype: 'float16', pageSize: 2 }, { window: 4 }, { capacity: 9, fixed: true }];
  for (const kind of kinds) {
    const cache = sdpa.createKVCache({ ...sizes, ...kind });
    const key = random.tensor(2, 2, 3, 4);
    const value = random.tensor(2, 2, 3, 3);
    cache.append(key, value);
    const query = random.tensor(2, 4, 2, 4);
    const before = { ...state(cache), held: sdpa.memory().held };
    const want = cache.attend(query);
    const disposed = sdpa.tensor([2, 2, 3, 4]);
    disposed.dispose();
    for (const [append, code, message] of /** @type {[() => unknown, string, RegExp][]} */ ([
      [() => cache.append(random.tensor(1, 2, 3, 4), value), 'shape', /key batch is 1 but the cache's is 2/],
      [() => cache.append(random.tensor(2, 3, 3, 4), value), 'shape', /key number of heads is 3 but the cache's is 2/],
      [() => cache.append(random.tensor(2, 2, 3, 5), value), 'shape', /key head size is 5 but the cache's is 4/],
      [() => cache.append(key, random.tensor(2, 2, 3, 4)), 'shape', /value head size is 4 but the cache's is 3/],
      [() => cache.append(key, random.tensor(2, 2, 2, 3)), 'shape', /value has 2 tokens but key has 3/],
      [() => cache.append(random.tensor(2, 3, 4), value), 'shape', /key batch is 1 but/],
      [() => cache.append(random.tensor(4), value), 'shape', /key must have 2, 3 or 4 dimensions, got 1/],
      [() => cache.append({ data: key.data, shape: [2, 2, 4, 4] }, value), 'shape', /key data has 48 elements/],
      [() => cache.append({ data: new Int8Array(48), shape: key.shape }, value), 'type', /key data must be/],
      [() => cache.append(key.data, value), 'type', /key must be a tensor/],
      [() => cache.append(key), 'type', /value must be a tensor/],
      [() => cache.append(disposed, value), 'disposed', /tensor of shape/],
      [() => cache.append(key, value, { lengths: [1] }), 'shape', /lengths has 1 numbers but the batch is 2/],
      [
        () => cache.append(key, value, { lengths: [1, 4] }),
        'option',
        /lengths\[1\] is 4 but must be between 0 and the 3/,
      ],
      [() => cache.append(key, value, { lengths: [1, -1] }), 'option', /lengths\[1\] is -1/],
      [() => cache.append(key, value, { lengths: [1, 0.5] }), 'option', /lengths\[1\] must be a whole number, got 0.5/],
      [() => cache.append(key, value, { lengths: ['1', 1] }), 'type', /lengths\[0\] must be a number/],
      [() => cache.append(key, value, { lengths: 3 }), 'type', /lengths must be an Int32Array or an array/],
      [() => cache.append(key, value, { layout: 'bhdl' }), 'option', /layout must be 'bhld' or 'blhd'/],
      [() => cache.append(key, value, { count: 3 }), 'unknown-option', /append has no option 'count'/],
      [() => cache.append(key, value, 3), 'type', /options of append must be an object/],
    ])) {
      assertThrows(append, code, message);
      assert.deepEqual({ ...state(cache), held: sdpa.memory().held }, before);
    }
    assertSameBits(cache.attend(query), want);
    cache.append(key, value);
    assert.equal(cache.length, 6);
  }
});

test('a full cache says how many tokens it has, how many were to come, and its capacity', async () => {
  const sdpa = await loadVariant();
  const cache = sdpa.createKVCache({ ...sizes, capacity: 5, fixed: true });
  cache.append(random.tensor(2, 2, 4, 4), random.tensor(2, 2, 4, 3), { lengths: [1, 4] });
  const query = random.tensor(2, 2, 1, 4);
  const want = cache.attend(query);
  const [key, value] = [random.tensor(2, 2, 2, 4), random.tensor(2, 2, 2, 3)];
  const message =
    /the cache is full: batch row 1 has 4 tokens and cannot take 2 more, because its capacity is fixed at 5/;
  assertThrows(() => cache.append(key, value), 'capacity', message);
  assert.deepEqual([...cache.lengths], [1, 4]);
  assertSameBits(cache.attend(query), want);
  cache.append(key, value, { lengths: [2, 1] });
  assert.deepEqual([...cache.lengths], [3, 5]);
});

test('an int8 cache refuses NaN and Infinity, says where, and holds what it held', async () => {
  const sdpa = await loadVariant();
  const cache = sdpa.createKVCache({ ...sizes, dtype: 'int8' });
  const [key, value] = [random.tensor(2, 2, 3, 4), random.tensor(2, 2, 3, 3)];
  cache.append(key, value);
  const query = random.tensor(2, 2, 1, 4);
  const want = cache.attend(query);
  const bad = { ...value, data: value.data.slice() };
  bad.data[((1 * 2 + 0) * 3 + 2) * 3 + 1] = -Infinity;
  assertThrows(
    () => cache.append(key, bad),
    'option',
    /an int8 cache cannot hold NaN or Infinity: value is -Infinity at batch row 1, head 0, token 2, element 1/,
  );
  const nan = { ...key, data: key.data.slice() };
  nan.data[0] = NaN;
  assertThrows(() => cache.append(nan, value), 'option', /key is NaN at batch row 0, head 0, token 0, element 0/);
  assert.equal(cache.length, 3);
  assertSameBits(cache.attend(query), want);
  // A token that does not count is not read.
  cache.append(key, bad, { lengths: [3, 2] });
  assert.deepEqual([...cache.lengths], [6, 5]);
});

test('an append that memory does not suffice for changes nothing, and less still fits', async () => {
  const big = { batch: 1, numKvHeads: 1, headDim: 64 };
  for (const kind of [{}, { pageSize: 16 }, { pageSize: 1 }]) {
    const sdpa = await loadVariant({ maxMemory: 1_000_000 });
    const cache = sdpa.createKVCache({ ...big, ...kind, capacity: 512 });
    const first = random.tensor(1, 1, 500, 64);
    cache.append(first, first);
    const query = random.tensor(1, 1, 1, 64);
    const want = cache.attend(query, { returnLse: true });
    const before = { ...state(cache), held: sdpa.memory().held };
    const more = random.tensor(1, 1, 600, 64);
    const error = assertThrows(() => cache.append(more, more), 'out-of-memory', /KV cache of \d+ x \d+ tokens needs/);
    assert.ok(Number(error.needed) > Number(error.allowed));
    assert.deepEqual({ ...state(cache), held: sdpa.memory().held }, before);
    assertSameBits(cache.attend(query, { returnLse: true }), want);
    const few = random.tensor(1, 1, 12, 64);
    cache.append(few, few);
    assert.equal(cache.length, 512);
    sdpa.dispose();
  }
});

test('attend refuses what the cache sets itself, and wrong queries', async () => {
  const sdpa = /** @type {any} */ (await loadVariant());
  const cache = sdpa.createKVCache(sizes);
  cache.append(random.tensor(2, 2, 5, 4), random.tensor(2, 2, 5, 3));
  const query = random.tensor(2, 4, 2, 4);
  for (const [options, code, message] of /** @type {[any, string, RegExp][]} */ ([
    [{ align: 'lower-right' }, 'option', /cache sets align/],
    [{ queryOffset: 3 }, 'option', /cache sets queryOffset/],
    [{ kvLengths: Int32Array.of(1, 1) }, 'option', /cache sets kvLengths/],
    [{ cuSeqlens: { query: Int32Array.of(0, 2), key: Int32Array.of(0, 5) } }, 'option', /cache sets cuSeqlens/],
    [
      { mask: { data: new Uint8Array(8), shape: [2, 4] } },
      'shape',
      /mask shape \[2, 4\] does not broadcast to \[2, 4, 2, 5\]/,
    ],
    [{ causal: 1 }, 'type', /causal must be true or false/],
    [{ casual: true }, 'unknown-option', /^attend has no option 'casual'/],
    [{ heads: 2 }, 'unknown-option', /^(?!.*cuSeqlens).* the options are .*causal/],
    [{ queryLengths: Int32Array.of(1, 3) }, 'option', /queryLengths\[1\] is 3/],
    [{ out: new Float32Array(3) }, 'shape', /out has 3 elements/],
  ])) {
    assertThrows(() => cache.attend(query, options), code, message);
  }
  for (const [wrong, code, message] of /** @type {[any, string, RegExp][]} */ ([
    [random.tensor(1, 4, 2, 4), 'shape', /query batch is 1 but cache batch is 2/],
    [random.tensor(2, 3, 2, 4), 'shape', /query has 3 heads, which is not a multiple of the 2 heads of the cache/],
    [random.tensor(2, 4, 2, 5), 'shape', /query head size is 5 but cache head size is 4/],
    [random.tensor(4, 2, 4), 'shape', /query batch is 1/],
    [undefined, 'type', /query must be a tensor/],
  ])) {
    assertThrows(() => cache.attend(wrong), code, message);
  }
  assert.equal(cache.attend(query).out.data.length, 2 * 4 * 2 * 3);
});

test('truncate and evict refuse what a cache does not have', async () => {
  const sdpa = /** @type {any} */ (await loadVariant());
  const cache = sdpa.createKVCache(sizes);
  cache.append(random.tensor(2, 2, 5, 4), random.tensor(2, 2, 5, 3), { lengths: [3, 5] });
  for (const [length, code, message] of /** @type {[any, string, RegExp][]} */ ([
    [6, 'option', /from 0 to 5, the tokens of the longest row, got 6/],
    [-1, 'option', /got -1/],
    [1.5, 'option', /got 1.5/],
    [NaN, 'option', /got NaN/],
    [undefined, 'type', /truncate needs a number, or an Int32Array or array of them, got undefined/],
    [[1], 'shape', /1 numbers, but the batch is 2/],
    [Int32Array.of(4, 5), 'option', /truncate to 4 tokens of batch row 0, which has 3/],
    [[3, -2], 'option', /truncate to -2 tokens of batch row 1/],
  ])) {
    assertThrows(() => cache.truncate(length), code, message);
  }
  for (const [indices, code, message] of /** @type {[any, string, RegExp][]} */ ([
    [[0, 5], 'option', /indices has 5 but the longest row has the tokens 0 to 4/],
    [[-1], 'option', /indices has -1/],
    [[0.5], 'option', /indices\[0\] must be a whole number, got 0.5/],
    [3, 'type', /indices must be an Int32Array or an array of numbers, got 3/],
  ])) {
    assertThrows(() => cache.evict(indices), code, message);
  }
  assert.deepEqual([...cache.lengths], [3, 5]);
  assertThrows(() => sdpa.createKVCache(sizes).evict([0]), 'option', /has no token/);
  assertThrows(() => sdpa.createKVCache({ ...sizes, window: 4 }).evict([0]), 'option', /a ring.*cannot evict/);
  assertThrows(() => sdpa.createKVCache({ ...sizes, rope: {} }).evict([0]), 'option', /rope cannot evict/);
  assertThrows(() => cache.fork(), 'option', /only a paged cache can fork/);
});

test('each property of the arguments is read once', async () => {
  const sdpa = /** @type {any} */ (await loadVariant());
  /** @type {Record<string, number>} */
  const reads = {};
  /** @param {string} name @param {any} object */
  const counted = (name, object) =>
    new Proxy(object, {
      get(target, property, receiver) {
        const key = `${name}.${String(property)}`;
        if (typeof property === 'string') reads[key] = (reads[key] ?? 0) + 1;
        return Reflect.get(target, property, receiver);
      },
    });
  const cache = sdpa.createKVCache(
    counted('create', { ...sizes, capacity: 3, fixed: false, dtype: 'int8', pageSize: 2 }),
  );
  const [key, value] = [random.tensor(2, 2, 3, 4), random.tensor(2, 2, 3, 3)];
  cache.append(counted('key', key), counted('value', value), counted('append', { lengths: [1, 2], layout: 'bhld' }));
  cache.attend(
    counted('query', random.tensor(2, 2, 1, 4)),
    counted('attend', { causal: false, window: [1, 1], returnLse: true }),
  );
  for (const [name, count] of Object.entries(reads)) assert.equal(count, 1, name);
  assert.ok(reads['create.pageSize'] && reads['append.lengths'] && reads['attend.causal'] && reads['key.data']);
});

test('a cache that getters of the arguments change or dispose of is not harmed', async () => {
  const sdpa = /** @type {any} */ (await loadVariant());
  const [key, value] = [random.tensor(2, 2, 3, 4), random.tensor(2, 2, 3, 3)];
  const query = random.tensor(2, 2, 1, 4);
  for (const kind of [{}, { pageSize: 2 }]) {
    const cache = sdpa.createKVCache({ ...sizes, ...kind });
    cache.append(key, value);
    // append inside append: the inner one comes first.
    cache.append(key, {
      shape: value.shape,
      get data() {
        cache.append(key, value);
        return value.data;
      },
    });
    assert.equal(cache.length, 9);
    const options = {
      get causal() {
        cache.truncate(5);
        return true;
      },
    };
    assertThrows(() => cache.attend(query, options), 'option', /changed while the arguments of attend were read/);
    assert.equal(cache.length, 5);
    cache.attend(query);
    const disposing = {
      get lengths() {
        cache.dispose();
        return undefined;
      },
    };
    assertThrows(() => cache.append(key, value, disposing), 'disposed', /KV cache has been disposed of/);
    const other = sdpa.createKVCache({ ...sizes, ...kind });
    other.append(key, value);
    const late = {
      get softcap() {
        other.dispose();
        return 0;
      },
    };
    assertThrows(() => other.attend(query, late), 'disposed', /KV cache has been disposed of/);
  }
});

test('more pages than are kept are refused by number', async () => {
  const sdpa = await loadVariant();
  const { held } = sdpa.memory();
  const many = { batch: 1, numKvHeads: 1, headDim: 1, capacity: 2 ** 27, pageSize: 1 };
  assertThrows(() => sdpa.createKVCache(many), 'capacity', /needs 134217728 pages of pageSize 1, and at most 16777216/);
  assert.equal(sdpa.memory().held, held);
});

test('a cache that is disposed of while its indices are read says so', async () => {
  const sdpa = await loadVariant();
  for (const method of /** @type {const} */ (['evict', 'truncate'])) {
    const cache = sdpa.createKVCache({ batch: 1, numKvHeads: 1, headDim: 1 });
    const token = { data: new Float32Array(2), shape: [1, 1, 2, 1] };
    cache.append(token, token);
    const indices = Object.defineProperty([0], 0, {
      get() {
        cache.dispose();
        return 0;
      },
    });
    assertThrows(() => cache[method](indices), 'disposed', /has been disposed of/);
  }
});

test('truncate says what it takes', async () => {
  const sdpa = await loadVariant();
  const cache = sdpa.createKVCache({ batch: 1, numKvHeads: 1, headDim: 1 });
  assertThrows(
    () => cache.truncate(/** @type {any} */ ('1')),
    'type',
    /needs a number, or an Int32Array or array.*got "1"/,
  );
  cache.dispose();
});
