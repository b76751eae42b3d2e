// ssd() against the recurrence of Mamba-2 in float64.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { largestError, randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { ssdReference } from './linear-reference.mjs';
import { cut, filled, shapes } from './linear-tensors.mjs';

const sdpa = await loadVariant();
after(() => sdpa.dispose());

const tolerance = 3e-6;

/**
 * @param {number} seed
 * @param {{ rank?: number, B?: number, H?: number, G?: number, L?: number, P?: number, N?: number, layout?: 'bhld' | 'blhd' }} [sizes]
 */
function inputs(seed, { rank = 4, B = 2, H = 4, G = 2, L = 37, P = 7, N = 5, layout = 'bhld' } = {}) {
  const { tensor, uniform } = randomSource(seed);
  const sized = shapes(layout, B, L, rank);
  const dt = filled(sized(H), () => 0.5 * uniform());
  return {
    x: tensor(...sized(H, P)),
    dt,
    a: Float32Array.from({ length: H }, () => -2 * uniform()),
    b: tensor(...sized(G, N)),
    c: tensor(...sized(G, N)),
    d: tensor(H).data,
    state: tensor(...[B, H, N, P].slice(4 - rank)),
  };
}

/** @param {ReturnType<typeof inputs>} all @param {any} options */
function check({ x, dt, a, b, c }, options = {}) {
  const want = ssdReference(x, dt, a, b, c, options);
  const got = sdpa.ssd(x, dt, a, b, c, { ...options, returnState: true });
  assert.deepEqual(got.out.shape, x.shape);
  const worst = Math.max(largestError(got.out.data, want.out), largestError(got.state.data, want.state));
  assert.ok(worst <= tolerance, `differs by ${worst}`);
  return got;
}

test('equals the recurrence for sizes around vectors, stripes and chunks', () => {
  let seed = 1;
  for (const [P, N] of [
    [1, 1],
    [4, 3],
    [5, 8],
    [16, 15],
    [17, 16],
    [64, 33],
    [65, 4],
  ]) {
    for (const L of [0, 1, 2, 31, 32, 33, 70]) check(inputs(seed++, { B: 1, H: 2, G: 1, L, P, N }));
  }
});

test('groups, layouts, ranks, D and a state at the start', () => {
  for (const layout of /** @type {const} */ (['bhld', 'blhd'])) {
    for (const rank of [2, 3, 4]) {
      for (const [H, G] of rank === 2
        ? [[1, 1]]
        : [
            [1, 1],
            [3, 3],
            [6, 2],
            [4, 1],
          ]) {
        const all = inputs(10 * rank + H, { rank, H, G, layout });
        const plain = check(all, { layout });
        for (const options of [{ d: all.d }, { state: all.state }]) {
          const got = check(all, { layout, ...options });
          assert.ok(largestError(got.out.data, plain.out.data) > 1e-3, `${Object.keys(options)} changes nothing`);
          assert.deepEqual(got.state.shape, all.state.shape);
        }
        check(all, { layout, d: all.d, state: all.state });
      }
    }
  }
});

test('is what Mamba-2 calls it: x (B, L, H, P), one group, a recurrence by hand', () => {
  const x = { data: Float32Array.of(1, 2, 3), shape: [1, 3, 1, 1] };
  const dt = { data: Float32Array.of(0.5, 1, 0.25), shape: [1, 3, 1] };
  const [b, c] = [Float32Array.of(1, -1, 2), Float32Array.of(2, 3, -1)].map((data) => ({ data, shape: [1, 3, 1, 1] }));
  const { out, state } = sdpa.ssd(x, dt, [-1], b, c, { d: [10], layout: 'blhd', returnState: true });
  const h0 = 0.5;
  const h1 = Math.exp(-1) * h0 - 2;
  const h2 = Math.exp(-0.25) * h1 + 0.25 * 2 * 3;
  assert.ok(largestError(out.data, [2 * h0 + 10, 3 * h1 + 20, -h2 + 30]) <= 1e-6);
  assert.ok(largestError(state.data, [h2]) <= 1e-6);
});

test('calls that hand the state on give what one call gives, bit by bit', () => {
  const all = inputs(5, { B: 1, L: 80, layout: 'blhd' });
  const options = /** @type {const} */ ({ layout: 'blhd', returnState: true });
  const whole = sdpa.ssd(all.x, all.dt, all.a, all.b, all.c, { ...options, d: all.d });
  /** @type {any} */
  let state;
  const outs = [];
  for (const [from, to] of [
    [0, 33],
    [33, 34],
    [34, 80],
  ]) {
    const [x, dt, b, c] = [all.x, all.dt, all.b, all.c].map((tensor) => cut(tensor, from, to));
    const part = sdpa.ssd(x, dt, all.a, b, c, { ...options, d: all.d, state });
    state = part.state;
    outs.push(...part.out.data);
  }
  assert.deepEqual(Float32Array.from(outs), whole.out.data);
  assert.deepEqual(state.data, whole.state.data);
});

test('chunkSize changes no bit', () => {
  const all = inputs(6, { L: 100 });
  const want = sdpa.ssd(all.x, all.dt, all.a, all.b, all.c).out;
  for (const chunkSize of [1, 7, 1000]) {
    assert.deepEqual(sdpa.ssd(all.x, all.dt, all.a, all.b, all.c, { chunkSize }).out, want);
  }
});
