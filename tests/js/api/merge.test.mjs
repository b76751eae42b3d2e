// merge(): results over parts of the keys, put together.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertThrows } from '../helpers/errors.mjs';
import { largestError, randomSource, referenceAttention } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';

const sdpa = await loadVariant();
const random = randomSource(32);

/**
 * Keys from … to - 1 of a tensor (batch, heads, keys, width).
 * @param {any} tensor
 * @param {number} from
 * @param {number} to
 */
function keysOf({ data, shape: [batch, heads, keys, width] }, from, to) {
  const part = new Float32Array(batch * heads * (to - from) * width);
  for (let plane = 0; plane < batch * heads; plane++) {
    const first = plane * keys;
    part.set(data.subarray((first + from) * width, (first + to) * width), plane * (to - from) * width);
  }
  return { data: part, shape: [batch, heads, to - from, width] };
}

test('parts of the keys merge to the result over all, in any number and order', () => {
  const q = random.tensor(2, 4, 9, 16);
  const k = random.tensor(2, 2, 200, 16);
  const v = random.tensor(2, 2, 200, 24);
  const want = referenceAttention(q, k, v);
  for (const ends of [
    [0, 200],
    [0, 1, 200],
    [0, 50, 60, 199, 200],
    [0, 64, 128, 192, 200],
    Array.from({ length: 134 }, (_, i) => Math.round((i * 200) / 133)),
  ]) {
    const parts = ends
      .slice(1)
      .map((to, i) => sdpa.attention(q, keysOf(k, ends[i], to), keysOf(v, ends[i], to), { returnLse: true }));
    for (const list of [parts, parts.toReversed?.() ?? [...parts].reverse()]) {
      const { out, lse } = sdpa.merge(list);
      assert.deepEqual([out.shape, out.dtype, lse.shape, lse.dtype], [[2, 4, 9, 24], 'float32', [2, 4, 9], 'float32']);
      assert.ok(largestError(out.data, want.out) <= 2e-6);
      assert.ok(largestError(lse.data, want.lse) <= 2e-6);
    }
    if (parts.length === 1) assert.deepEqual(sdpa.merge(parts), parts[0]);
  }
});

test('a sink belongs to one part', () => {
  const q = random.tensor(3, 5, 8);
  const k = random.tensor(3, 40, 8);
  const sinks = [0.5, -1, 2];
  const [a, b] = [
    [0, 15],
    [15, 40],
  ].map(([from, to]) => {
    const part = keysOf({ data: k.data, shape: [1, 3, 40, 8] }, from, to);
    return { data: part.data, shape: [3, to - from, 8] };
  });
  const merged = sdpa.merge([
    sdpa.attention(q, a, a, { returnLse: true, sinks }),
    sdpa.attention(q, b, b, { returnLse: true }),
  ]);
  const want = referenceAttention(q, k, k, { sinks });
  assert.ok(largestError(merged.out.data, want.out) <= 2e-6);
  assert.ok(largestError(merged.lse.data, want.lse) <= 2e-6);
});

test('a part with lse -Infinity changes nothing, whatever its out; nothing but such parts is zeros', () => {
  const one = {
    out: { data: Float32Array.of(1, 2, 3, 4), shape: [2, 2] },
    lse: { data: Float32Array.of(0.5, -Infinity), shape: [2] },
  };
  const none = {
    out: { data: Float32Array.of(NaN, Infinity, NaN, 7), shape: [2, 2] },
    lse: { data: Float32Array.of(-Infinity, -Infinity), shape: [2] },
  };
  for (const parts of [
    [one, none],
    [none, one, none],
  ]) {
    const { out, lse } = sdpa.merge(parts);
    assert.deepEqual([...out.data], [1, 2, 0, 0]);
    assert.deepEqual([...lse.data], [0.5, -Infinity]);
  }
});

test('large and distant logarithms neither overflow nor vanish, and NaN stays in its row', () => {
  const part = (/** @type {number} */ x, /** @type {number[]} */ ...lse) => ({
    out: { data: new Float32Array(lse.length).fill(x), shape: [lse.length, 1] },
    lse: { data: Float32Array.from(lse), shape: [lse.length] },
  });
  const { out, lse } = sdpa.merge([part(1, 3e38, -3e38, 0, NaN), part(3, 3e38, 3e38, Math.log(3), 0)]);
  assert.deepEqual([...out.data], [2, 3, 2.5, NaN]);
  assert.deepEqual(
    [...lse.data].map((x, i) => (i === 2 ? Math.abs(x - Math.log(4)) < 1e-6 : x)),
    [Math.fround(3e38), Math.fround(3e38), true, NaN],
  );
});

test('with layout blhd, lse is (B, H, L) still', () => {
  const q = random.tensor(2, 5, 3, 8);
  const k = random.tensor(2, 30, 3, 8);
  const layout = /** @type {const} */ ('blhd');
  const kvLengths = Int32Array.of(12, 30);
  const short = sdpa.attention(q, k, k, { layout, returnLse: true, kvLengths });
  const mask = { data: Uint8Array.from({ length: 60 }, (_, x) => Number(x < 30 && x >= 12)), shape: [2, 1, 1, 30] };
  const rest = sdpa.attention(q, k, k, { layout, returnLse: true, mask });
  const { out, lse } = sdpa.merge([short, rest], { layout });
  const want = referenceAttention(q, k, k, { layout });
  assert.ok(largestError(out.data, want.out) <= 2e-6);
  assert.ok(largestError(lse.data, want.lse) <= 2e-6);
  assertThrows(
    () => sdpa.merge([short, rest]),
    'shape',
    /merge part 0 lse has shape \[2, 3, 5\] but with layout 'bhld' that of its out is \[2, 5, 3\]/,
  );
});

test('tensors in wasm memory are read where they lie', () => {
  const x = random.tensor(1, 2, 4, 8);
  const part = sdpa.attention(x, x, x, { returnLse: true });
  const out = sdpa.tensor([1, 2, 4, 8]);
  out.data.set(part.out.data);
  const merged = sdpa.merge([{ out, lse: part.lse }, part]);
  assert.ok(largestError(merged.out.data, part.out.data) <= 1e-7);
  assert.ok(merged.lse.data.every((y, i) => Math.abs(y - part.lse.data[i] - Math.log(2)) < 1e-6));
  out.dispose();
});

test('bad parts are refused by name', () => {
  const x = random.tensor(1, 2, 4, 8);
  const part = sdpa.attention(x, x, x, { returnLse: true });
  const merge = (/** @type {any} */ parts, /** @type {any} */ options) => () => sdpa.merge(parts, options);
  const other = random.tensor(1, 2, 3, 8);
  const short = sdpa.attention(other, x, x, { returnLse: true });
  assertThrows(merge([]), 'shape', /at least one part/);
  assertThrows(merge(part), 'type', /merge needs an array of \{ out, lse \}/);
  assertThrows(merge([part, null]), 'type', /merge part 1 must be \{ out, lse \}, got null/);
  assertThrows(merge([sdpa.attention(x, x, x)]), 'type', /merge part 0 has no lse: compute it with returnLse: true/);
  assertThrows(
    merge([part, short]),
    'shape',
    /merge part 1 out has shape \[1, 2, 3, 8\] but that of part 0 is \[1, 2, 4, 8\]/,
  );
  assertThrows(merge([part, { out: part.out, lse: short.lse }]), 'shape', /merge part 1 lse has shape \[1, 2, 3\]/);
  assertThrows(merge([{ out: part.out, lse: part.out }]), 'shape', /merge part 0 lse has shape/);
  const half = { data: new Uint16Array(64), shape: [1, 2, 4, 8], dtype: 'float16' };
  assertThrows(merge([{ out: half, lse: part.lse }]), 'type', /merge part 0 out must be float32/);
  assertThrows(merge([part], { order: 1 }), 'unknown-option', /merge has no option 'order'/);
  assertThrows(merge([part], { layout: 'lbhd' }), 'option', /layout must be 'bhld' or 'blhd'/);
  assertThrows(merge([part], 5), 'type', /options must be an object, got 5/);
});
