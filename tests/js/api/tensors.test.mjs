// Tensors that live in wasm memory.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertThrows } from '../helpers/errors.mjs';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant, resident } from '../helpers/sdpa.mjs';

const random = randomSource(3);
const q = random.tensor(1, 2, 5, 8);
const k = random.tensor(1, 2, 7, 8);
const v = random.tensor(1, 2, 7, 4);

test('a new tensor is zeros of the asked shape and type', async () => {
  const sdpa = await loadVariant();
  for (const [dtype, kind] of /** @type {[any, any][]} */ ([
    [undefined, Float32Array],
    ['float32', Float32Array],
    ['float16', Uint16Array],
    ['bfloat16', Uint16Array],
    ['bool', Uint8Array],
  ])) {
    const tensor = sdpa.tensor([2, 3], dtype);
    assert.ok(tensor.data instanceof kind);
    assert.deepEqual([...tensor.data], [0, 0, 0, 0, 0, 0]);
    assert.deepEqual(tensor.shape, [2, 3]);
    assert.equal(tensor.dtype, dtype ?? 'float32');
    tensor.data.fill(1);
    tensor.dispose();
  }
});

test('tensors give the same result as arrays, as inputs, mask, bias and out', async () => {
  const sdpa = await loadVariant();
  const mask = { data: Uint8Array.from({ length: 35 }, () => Number(random.uniform() < 0.7)), shape: [5, 7] };
  const bias = random.tensor(2, 5, 7);
  const want = sdpa.attention(q, k, v, { mask, bias, returnLse: true });
  const out = sdpa.tensor([1, 2, 5, 4]);
  const options = { mask: resident(sdpa, mask, 'bool'), bias: resident(sdpa, bias), out, returnLse: true };
  const got = sdpa.attention(resident(sdpa, q), resident(sdpa, k), resident(sdpa, v), options);
  assert.equal(got.out, out);
  assert.deepEqual([...got.out.data], [...want.out.data]);
  assert.deepEqual(got.lse, want.lse);
});

test('16-bit tensors are read as their type', async () => {
  const sdpa = await loadVariant();
  const one = { data: new Float32Array([1]), shape: [1, 1] };
  const half = sdpa.tensor([1, 2], 'float16');
  half.data.set([0x3e00, 0xc000]);
  assert.deepEqual([...sdpa.attention(one, one, half).out.data], [1.5, -2]);
  const brain = sdpa.tensor([1, 2], 'bfloat16');
  brain.data.set([0x3fc0, 0xc000]);
  assert.deepEqual([...sdpa.attention(one, one, brain).out.data], [1.5, -2]);
});

test('a tensor keeps its numbers when the memory grows, and data is derived again', async () => {
  const sdpa = await loadVariant();
  const tensor = resident(sdpa, q);
  const stale = tensor.data;
  const big = sdpa.tensor([64, 1024, 1024]);
  assert.equal(stale.length, 0, 'the memory has grown');
  assert.deepEqual([...tensor.data], [...q.data]);
  big.dispose();
  assert.deepEqual([...sdpa.attention(tensor, k, v).out.data], [...sdpa.attention(q, k, v).out.data]);
});

test('the data of a tensor, handed over as an array, survives growth in the same call', async () => {
  const sdpa = await loadVariant();
  const key = random.tensor(1, 1, 600_000, 8);
  const value = random.tensor(1, 1, 600_000, 8);
  const query = random.tensor(1, 1, 2, 8);
  const want = sdpa.attention(query, key, value);
  const other = await loadVariant();
  const tensor = other.tensor(query.shape);
  tensor.data.set(query.data);
  const size = other.memory().wasm;
  const got = other.attention({ data: tensor.data, shape: tensor.shape }, key, value);
  assert.ok(other.memory().wasm > size, 'the memory has grown');
  assert.deepEqual(got, want);
});

test('dispose frees, may be called twice, and use afterwards is an error', async () => {
  const sdpa = await loadVariant();
  const { held } = sdpa.memory();
  const tensor = sdpa.tensor([1000, 8]);
  assert.equal(sdpa.memory().held, held + 32000);
  assert.equal(tensor.disposed, false);
  tensor.dispose();
  tensor.dispose();
  assert.equal(tensor.disposed, true);
  assert.equal(sdpa.memory().held, held);
  assertThrows(() => tensor.data, 'disposed', /tensor of shape \[1000, 8\] has been disposed of/);
  assertThrows(() => sdpa.attention(tensor, k, v), 'disposed', /tensor of shape/);
  assertThrows(() => sdpa.attention(q, k, v, { out: tensor }), 'disposed', /tensor of shape/);
});

test('Symbol.dispose disposes', async () => {
  const sdpa = await loadVariant();
  const tensor = sdpa.tensor([3]);
  assert.equal(typeof Symbol.dispose, 'symbol');
  tensor[Symbol.dispose]();
  assert.ok(tensor.disposed);
  sdpa[Symbol.dispose]();
  assertThrows(() => sdpa.attention(q, k, v), 'disposed', /instance/);
});

test('a tensor of another instance is copied like any array', async () => {
  const [a, b] = [await loadVariant(), await loadVariant()];
  const tensor = resident(b, q);
  assert.deepEqual(a.attention(tensor, k, v), a.attention(q, k, v));
  assertThrows(() => a.attention(q, k, v, { out: b.tensor([1, 2, 5, 4]) }), 'option', /another sdpa instance/);
});

test('out may not lie over an input', async () => {
  const sdpa = await loadVariant();
  const query = resident(sdpa, random.tensor(1, 2, 5, 8));
  const square = random.tensor(1, 2, 5, 8);
  const kept = [...query.data];
  assertThrows(() => sdpa.attention(query, square, square, { out: query }), 'option', /out overlaps query/);
  assertThrows(() => sdpa.attention(square, query, square, { out: query }), 'option', /out overlaps key/);
  assertThrows(() => sdpa.attention(square, square, query, { out: query }), 'option', /out overlaps value/);
  const view = { data: query.data.subarray(8, 72), shape: [1, 2, 4, 8] };
  assertThrows(() => sdpa.attention(square, view, view, { out: query }), 'option', /out overlaps key/);
  assertThrows(() => sdpa.attention(square, square, square, { out: query.data }), 'option', /view of wasm memory/);
  assert.deepEqual([...query.data], kept);
});

test('out may be the array of an input: inputs are copied first', async () => {
  const sdpa = await loadVariant();
  const square = random.tensor(1, 2, 5, 8);
  const want = sdpa.attention(square, square, square);
  const got = sdpa.attention(square, square, square, { out: square.data });
  assert.deepEqual([...got.out.data], [...want.out.data]);
});

test('an out tensor of another shape or type is refused', async () => {
  const sdpa = await loadVariant();
  assertThrows(
    () => sdpa.attention(q, k, v, { out: sdpa.tensor([1, 2, 5, 5]) }),
    'shape',
    /out shape is \[1, 2, 5, 5\] but the result's shape is \[1, 2, 5, 4\]/,
  );
  assertThrows(() => sdpa.attention(q, k, v, { out: sdpa.tensor([2, 5, 4]) }), 'shape', /out shape/);
  assertThrows(() => sdpa.attention(q, k, v, { out: sdpa.tensor([1, 2, 5, 4], 'float16') }), 'type', /float32/);
  assertThrows(() => sdpa.attention(q, k, v, { out: sdpa.tensor([1, 2, 5, 4], 'bool') }), 'type', /out/);
});

test('a boolean tensor is no query and a float tensor no mask', async () => {
  const sdpa = await loadVariant();
  assertThrows(() => sdpa.attention(sdpa.tensor(q.shape, 'bool'), k, v), 'type', /query/);
  assertThrows(() => sdpa.attention(q, k, v, { mask: sdpa.tensor([5, 7]) }), 'type', /mask must be boolean/);
  assertThrows(() => sdpa.attention(q, k, v, { bias: sdpa.tensor([5, 7], 'bool') }), 'type', /option 'mask'/);
});

test('shapes and types of new tensors are checked', async () => {
  const sdpa = /** @type {any} */ (await loadVariant());
  assertThrows(() => sdpa.tensor([2, -1]), 'shape', /tensor shape\[1\]/);
  assertThrows(() => sdpa.tensor(5), 'type', /tensor needs a shape/);
  assertThrows(() => sdpa.tensor([2 ** 30, 2 ** 30]), 'shape', /2\^53/);
  assertThrows(() => sdpa.tensor([2 ** 40]), 'out-of-memory', /a float32 tensor of shape \[1099511627776\] needs/);
  assertThrows(
    () => sdpa.tensor([2], 'int8'),
    'option',
    /dtype must be 'float32', 'float16', 'bfloat16', 'bool', got "int8"/,
  );
  assertThrows(() => sdpa.tensor([2], 4), 'type', /dtype must be/);
  assertThrows(() => sdpa.tensor([2], 'toString'), 'option', /dtype must be/);
});

test('an empty tensor is one', async () => {
  const sdpa = await loadVariant();
  const none = sdpa.tensor([1, 2, 0, 8]);
  assert.equal(none.data.length, 0);
  const { out } = sdpa.attention(none, k, v, { out: sdpa.tensor([1, 2, 0, 4]) });
  assert.equal(out.data.length, 0);
  const noKey = sdpa.tensor([1, 2, 5, 4]);
  noKey.data.fill(9);
  sdpa.attention(q, sdpa.tensor([1, 2, 0, 8]), sdpa.tensor([1, 2, 0, 4]), { out: noKey });
  assert.ok(noKey.data.every((/** @type {number} */ x) => x === 0));
});

test('a shape is copied: changing the array changes nothing', async () => {
  const sdpa = await loadVariant();
  const shape = [2, 3];
  const tensor = sdpa.tensor(shape);
  shape[0] = 100;
  assert.deepEqual(tensor.shape, [2, 3]);
  assert.throws(() => Object.assign(tensor.shape, { 0: 5 }), TypeError);
});
