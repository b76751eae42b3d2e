// linearAttention() against its definition in float64.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { largestError, randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { linearReference, phi, rowsOf } from './linear-reference.mjs';
import { cut, shapes } from './linear-tensors.mjs';

const sdpa = await loadVariant();
after(() => sdpa.dispose());

const tolerance = 2e-6;

/**
 * @param {number} seed
 * @param {{ rank?: number, B?: number, H?: number, Hkv?: number, L?: number, S?: number, D?: number, Dv?: number, layout?: string }} [sizes]
 */
function inputs(seed, { rank = 4, B = 2, H = 4, Hkv = 2, L = 37, S = L, D = 5, Dv = 7, layout = 'bhld' } = {}) {
  const { tensor } = randomSource(seed);
  const [ofQueries, ofKeys] = [shapes(layout, B, L, rank), shapes(layout, B, S, rank)];
  return [tensor(...ofQueries(H, D)), tensor(...ofKeys(Hkv, D)), tensor(...ofKeys(Hkv, Dv))];
}

/** @param {any[]} tensors @param {any} [options] */
function check([query, key, value], options = {}) {
  const want = linearReference(query, key, value, options);
  const got = sdpa.linearAttention(query, key, value, { ...options, returnState: true });
  assert.deepEqual(got.out.shape, [...query.shape.slice(0, -1), value.shape.at(-1)]);
  const worst = largestError(got.out.data, want.out);
  assert.ok(worst <= tolerance, `differs by ${worst}`);
  return got;
}

for (const causal of [false, true]) {
  const kind = causal ? 'causal' : 'over all keys';

  test(`${kind}: equals the definition for sizes around vectors, stripes and chunks`, () => {
    let seed = 1;
    for (const [D, Dv] of [
      [1, 1],
      [3, 3],
      [4, 4],
      [5, 15],
      [8, 16],
      [16, 17],
      [64, 64],
      [33, 65],
    ]) {
      for (const L of [1, 2, 31, 32, 33, 70]) check(inputs(seed++, { B: 1, H: 2, Hkv: 1, L, D, Dv }), { causal });
    }
  });

  test(`${kind}: heads, layouts and ranks`, () => {
    for (const layout of ['bhld', 'blhd']) {
      for (const rank of [2, 3, 4]) {
        for (const [H, Hkv] of rank === 2
          ? [[1, 1]]
          : [
              [1, 1],
              [3, 3],
              [6, 2],
            ]) {
          check(inputs(10 * rank + H, { rank, H, Hkv, layout }), { causal, layout });
        }
      }
    }
  });

  test(`${kind}: eps, key lengths and a key mask`, () => {
    const tensors = inputs(3, { B: 3 });
    const kvLengths = Int32Array.of(0, 37, 11);
    const { uniform } = randomSource(4);
    const keyMask = { data: Uint8Array.from({ length: 3 * 37 }, () => Number(uniform() < 0.6)), shape: [3, 37] };
    const each = [
      { eps: 0.5 },
      { kvLengths },
      { keyMask },
      { keyMask: { data: keyMask.data.slice(0, 37), shape: [37] } },
    ];
    const plain = sdpa.linearAttention(...tensors, { causal }).out.data;
    for (const options of [...each, { keyMask, kvLengths, eps: 1e-3 }]) {
      const { out } = check(tensors, { causal, ...options });
      assert.ok(largestError(out.data, plain) > 1e-3, `${Object.keys(options)} changes nothing`);
    }
    const { out } = check(tensors, { causal, kvLengths });
    assert.ok(
      out.data.subarray(0, 4 * 37 * 7).every((x) => x === 0),
      'without keys a row is zeros',
    );
  });

  test(`${kind}: what stands behind masked keys cannot get out`, () => {
    const [query, key, value] = inputs(5, { B: 1, H: 2, Hkv: 2 });
    const keyMask = { data: Uint8Array.from({ length: 37 }, (_, j) => Number(j % 3 > 0)), shape: [37] };
    const clean = sdpa.linearAttention(query, key, value, { causal, keyMask, returnState: true });
    for (const tensor of [key, value]) {
      const { at, D } = rowsOf(tensor);
      for (let h = 0; h < 2; h++)
        for (let j = 0; j < 37; j += 3) tensor.data.fill(j % 2 ? NaN : Infinity, at(0, h, j), at(0, h, j) + D);
    }
    assert.deepEqual(sdpa.linearAttention(query, key, value, { causal, keyMask, returnState: true }), clean);
  });

  test(`${kind}: extreme numbers`, () => {
    const [query, key, value] = inputs(6, { B: 1, H: 1, Hkv: 1, L: 5, D: 4, Dv: 4 });
    key.data.set([-1e30, 1e15, -50, 3]);
    query.data.set([-Infinity, 1e10, -60, 0]);
    check([query, key, value], { causal });
    // Every phi(q) vanishes: no key is seen.
    query.data.fill(-200, 4, 8);
    const { data } = sdpa.linearAttention(query, key, value, { causal }).out;
    assert.deepEqual([...data.subarray(4, 8)], [0, 0, 0, 0]);
  });
}

test('more queries than keys, fewer, none of either', () => {
  for (const [L, S] of [
    [5, 70],
    [70, 5],
    [33, 32],
    [0, 9],
    [9, 0],
  ])
    check(inputs(L, { L, S }));
  assert.ok(sdpa.linearAttention(...inputs(1, { L: 9, S: 0 })).out.data.every((x) => x === 0));
  assert.equal(sdpa.linearAttention(...inputs(1, { B: 0 }), { causal: true }).out.data.length, 0);
});

test('the state holds Σ φ(k)vᵀ and, in its last column, Σ φ(k)', () => {
  const [query, key, value] = inputs(7, { B: 1, H: 1, Hkv: 1, L: 33, D: 3, Dv: 2 });
  const want = new Float64Array(9);
  for (let j = 0; j < 33; j++) {
    for (let d = 0; d < 3; d++) {
      const f = phi(key.data[j * 3 + d]);
      [value.data[j * 2], value.data[j * 2 + 1], 1].forEach((v, e) => (want[d * 3 + e] += f * v));
    }
  }
  for (const causal of [false, true]) {
    const { state } = sdpa.linearAttention(query, key, value, { causal, returnState: true });
    assert.deepEqual(state.shape, [1, 1, 3, 3]);
    assert.ok(largestError(state.data, want) <= tolerance);
  }
});

test('causal calls that hand the state on give what one call gives, bit by bit', () => {
  const [query, key, value] = inputs(8, { B: 1, L: 90, layout: 'blhd' });
  const options = /** @type {const} */ ({ causal: true, layout: 'blhd', returnState: true });
  const whole = sdpa.linearAttention(query, key, value, options);
  /** @type {any} */
  let state;
  const outs = [];
  for (const [from, to] of [
    [0, 1],
    [1, 34],
    [34, 34],
    [34, 90],
  ]) {
    const [q, k, v] = [query, key, value].map((tensor) => cut(tensor, from, to));
    const part = sdpa.linearAttention(q, k, v, { ...options, state });
    state = part.state;
    outs.push(...part.out.data);
  }
  assert.deepEqual(Float32Array.from(outs), whole.out.data);
  assert.deepEqual(state.data, whole.state.data);
});

test('over all keys, a state brings in keys from before', () => {
  const [query, key, value] = inputs(9, { B: 1, H: 1, Hkv: 1, L: 4, S: 50 });
  const part = (/** @type {any} */ { data, shape }, /** @type {number} */ from, /** @type {number} */ to) => ({
    data: data.slice(from * shape[3], to * shape[3]),
    shape: [1, 1, to - from, shape[3]],
  });
  const { state } = sdpa.linearAttention(query, part(key, 0, 20), part(value, 0, 20), { returnState: true });
  const { out } = sdpa.linearAttention(query, part(key, 20, 50), part(value, 20, 50), { state });
  assert.deepEqual(out, sdpa.linearAttention(query, key, value).out);
});

test('the bits of a row do not depend on other heads and batches', () => {
  const [query, key, value] = inputs(10, { B: 2, H: 4, Hkv: 2 });
  const { data } = sdpa.linearAttention(query, key, value, { causal: true }).out;
  const head = (/** @type {any} */ { data: all, shape }, /** @type {number} */ n) => {
    const size = shape[2] * shape[3];
    return { data: all.slice(n * size, (n + 1) * size), shape: shape.slice(2) };
  };
  for (let n = 0; n < 8; n++) {
    const alone = sdpa.linearAttention(head(query, n), head(key, n >> 1), head(value, n >> 1), { causal: true }).out;
    assert.deepEqual(alone.data, data.slice(n * 37 * 7, (n + 1) * 37 * 7));
  }
});
