// Inputs that are not what they say, and inputs that change while a call reads them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadVariant } from '../helpers/sdpa.mjs';

const sdpa = await loadVariant();
const shape = [1, 1, 4, 4];
const ones = () => ({ data: new Float32Array(16).fill(1), shape });

/** A 4 × 4 mask of true whose element 5 runs `hook` when it is read. */
function maskWith(hook) {
  const data = Array(16).fill(true);
  Object.defineProperty(data, 5, {
    get() {
      hook();
      return true;
    },
  });
  return { data, shape: [4, 4] };
}

test('a shared buffer that grows while the call reads its mask is refused or copied in its checked length', () => {
  const guards = Array.from({ length: 8 }, () => sdpa.tensor([64]));
  for (const guard of guards) guard.data.fill(7);
  const buffer = new SharedArrayBuffer(64, { maxByteLength: 1 << 20 });
  const query = { data: new Float32Array(buffer), shape };
  const call = () => sdpa.attention(query, ones(), ones(), { mask: maskWith(() => buffer.grow(1 << 20)) });
  assert.throws(call, { name: 'RangeError', code: 'shape' });
  for (const guard of guards) {
    assert.ok(guard.data.every((x) => x === 7));
    guard.dispose();
  }
  assert.deepEqual([...sdpa.attention(ones(), ones(), ones()).out.data], Array(16).fill(1));
});

test('a resizable buffer that shrinks while the call reads its mask is refused', () => {
  const buffer = new ArrayBuffer(64, { maxByteLength: 1024 });
  const query = { data: new Float32Array(buffer), shape };
  const call = () => sdpa.attention(query, ones(), ones(), { mask: maskWith(() => buffer.resize(8)) });
  assert.throws(call, { name: 'RangeError', code: 'shape' });
});

test('an input over a growable buffer that does not change is an input like any other', () => {
  const buffer = new SharedArrayBuffer(64, { maxByteLength: 128 });
  const data = new Float32Array(buffer, 0, 16).fill(1);
  assert.deepEqual([...sdpa.attention({ data, shape }, ones(), ones()).out.data], Array(16).fill(1));
});

test('a tensor that is disposed of while the call reads its mask is refused', () => {
  const query = sdpa.tensor(shape);
  const call = () => sdpa.attention(query, ones(), ones(), { mask: maskWith(() => query.dispose()) });
  assert.throws(call, { code: 'disposed' });
});

test('a mask is read once: what was checked is what counts', () => {
  let reads = 0;
  const mask = maskWith(() => reads++);
  sdpa.attention(ones(), ones(), ones(), { mask });
  assert.equal(reads, 1);
});

test('a typed array with a length of its own making is taken for what it holds', () => {
  const data = new Float32Array(3);
  Object.defineProperty(data, 'length', { value: 16 });
  assert.throws(() => sdpa.attention({ data, shape }, ones(), ones()), { name: 'RangeError', code: 'shape' });
  assert.throws(() => sdpa.attention(ones(), ones(), ones(), { out: data }), { name: 'RangeError', code: 'shape' });
});

test('an option counts wherever the object keeps it', () => {
  const value = { data: Float32Array.from({ length: 16 }, (_, i) => i), shape };
  const want = [...sdpa.attention(ones(), ones(), value, { causal: true }).out.data];
  class Options {
    get causal() {
      return true;
    }
  }
  const hidden = Object.defineProperty({}, 'causal', { value: true });
  for (const options of [new Options(), hidden, Object.create({ causal: true })]) {
    assert.deepEqual([...sdpa.attention(ones(), ones(), value, options).out.data], want);
  }
  for (const options of [[], new Map([['causal', true]]), new Date(), new Float32Array(2), () => {}]) {
    assert.throws(() => sdpa.attention(ones(), ones(), value, options), { name: 'TypeError', code: 'type' });
  }
});

test('any finite scale and softcap is honoured, also beyond float32', () => {
  const value = { data: Float32Array.of(1, 2), shape: [2, 1] };
  const run = (q, k, options) =>
    sdpa.attention(
      { data: Float32Array.of(q), shape: [1, 1] },
      { data: Float32Array.of(...k), shape: [2, 1] },
      value,
      options,
    ).out.data[0];
  assert.equal(run(1, [0, 0], { scale: 1e39 }), 1.5);
  assert.equal(run(1e-39, [1, 2], { scale: 1e39 }) > 1.7, true);
  assert.equal(run(1, [1, 2], { softcap: 1e-40 }), 1.5);
  assert.equal(run(1, [1, 2], { softcap: 1e-300 }), 1.5);
  assert.equal(run(1e30, [1e-30, 2e-30], { scale: 1e10 }), 2);
  assert.equal(run(3e38, [1, 0.5], { scale: 1 }), 1);
});

test('without queries no position has to be given', () => {
  const empty = { data: new Float32Array(0), shape: [1, 1, 0, 4] };
  assert.equal(sdpa.attention(empty, ones(), ones(), { causal: true }).out.data.length, 0);
});
