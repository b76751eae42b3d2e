// Gradients of linearAttention(), gatedLinearAttention() and ssd() against central differences of their definitions in float64, and against
// formulas over lengths where differences are too slow.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { assertThrows } from '../helpers/errors.mjs';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { differences, gatedFormulas, lossOf, wide } from './linear-gradients-reference.mjs';
import { gatedReference, linearReference, phi, rowsOf, ssdReference } from './linear-reference.mjs';
import { errorBesideLargest, filled, shapes } from './linear-tensors.mjs';

const sdpa = await loadVariant();
after(() => sdpa.dispose());

/** Of the tensor's largest gradient. */
const tolerance = 5e-6;

/** @param {string} what @param {any} got @param {ArrayLike<number>} want @param {readonly number[]} shape */
function close(what, got, want, shape) {
  assert.deepEqual(got.shape, shape, what);
  const worst = errorBesideLargest(got.data, want);
  assert.ok(worst <= tolerance, `${what} differs by ${worst}`);
}

test('gatedLinearAttentionBackward: central differences, with heads, layouts, states and a loss of the state', () => {
  let seed = 1;
  for (const layout of /** @type {const} */ (['bhld', 'blhd'])) {
    for (const kind of ['linear', 'head', 'columns']) {
      for (const withState of [false, true]) {
        const { tensor, uniform } = randomSource(seed++);
        const [B, H, Hkv, L, D, Dv] = [2, 4, 2, 7, 3, 5];
        const sized = shapes(layout, B, L);
        const [query, key, value] = [tensor(...sized(H, D)), tensor(...sized(Hkv, D)), tensor(...sized(Hkv, Dv))];
        const decays = () => -uniform();
        const decay = kind === 'linear' ? undefined : filled(sized(Hkv, ...(kind === 'head' ? [] : [D])), decays);
        const state = withState ? tensor(B, Hkv, D, Dv) : undefined;
        const dOut = tensor(...sized(H, Dv));
        const dState = withState ? tensor(B, Hkv, D, Dv) : undefined;
        const options = { layout, decay, state, scale: 0.7 };
        const got = sdpa.gatedLinearAttentionBackward(query, key, value, { dOut, dState }, options);
        const exact = { query: wide(query), key: wide(key), value: wide(value) };
        const gates = { ...options, decay: decay && wide(decay), state: state && wide(state) };
        const loss = () => lossOf(gatedReference(exact.query, exact.key, exact.value, gates), dOut, dState);
        close('dQuery', got.dQuery, differences(exact.query.data, loss), query.shape);
        close('dKey', got.dKey, differences(exact.key.data, loss), key.shape);
        close('dValue', got.dValue, differences(exact.value.data, loss), value.shape);
        if (decay) close('dDecay', got.dDecay, differences(/** @type {any} */ (gates.decay).data, loss), decay.shape);
        else assert.equal(got.dDecay, undefined);
        if (state) close('dState', got.dState, differences(/** @type {any} */ (gates.state).data, loss), state.shape);
        else assert.equal(got.dState, undefined);
      }
    }
  }
});

test('gatedLinearAttentionBackward: the formulas, for sizes around vectors, stripes and chunks', () => {
  let seed = 50;
  for (const [D, Dv] of [
    [1, 1],
    [4, 3],
    [5, 16],
    [16, 17],
    [17, 33],
  ]) {
    for (const L of [1, 31, 32, 33, 70]) {
      for (const columns of [false, true]) {
        const { tensor, uniform } = randomSource(seed++);
        const [query, key, value, dOut] = [tensor(L, D), tensor(L, D), tensor(L, Dv), tensor(L, Dv)];
        const decay = filled(columns ? [L, D] : [L], () => -0.7 * uniform() ** 2);
        const got = sdpa.gatedLinearAttentionBackward(query, key, value, { dOut }, { decay, scale: 0.5 });
        const want = gatedFormulas(query, key, value, decay, 0.5, dOut);
        for (const name of /** @type {const} */ (['dQuery', 'dKey', 'dValue', 'dDecay'])) {
          const like = { dQuery: query, dKey: key, dValue: value, dDecay: decay }[name];
          close(`${name} of ${[D, Dv, L]}`, got[name], want[name], like.shape);
        }
      }
    }
  }
});

test('gatedLinearAttentionBackward: chunkSize changes no bit, and no token gives the gradient of the state back', () => {
  const { tensor } = randomSource(3);
  const [query, key, value, dOut] = [tensor(2, 80, 6), tensor(2, 80, 6), tensor(2, 80, 9), tensor(2, 80, 9)];
  const decay = filled([2, 80, 6], () => -0.1);
  const want = sdpa.gatedLinearAttentionBackward(query, key, value, { dOut }, { decay });
  for (const chunkSize of [1, 7, 100]) {
    assert.deepEqual(sdpa.gatedLinearAttentionBackward(query, key, value, { dOut }, { decay, chunkSize }), want);
  }
  const [none, state, dState] = [tensor(2, 0, 6), tensor(2, 6, 6), tensor(2, 6, 6)];
  const empty = sdpa.gatedLinearAttentionBackward(none, none, none, { dOut: none, dState }, { state });
  assert.deepEqual(empty.dState.data, dState.data);
});

test('linearAttentionBackward: central differences, causal and not, with masks, lengths, eps and layouts', () => {
  let seed = 100;
  for (const layout of /** @type {const} */ (['bhld', 'blhd'])) {
    for (const causal of [false, true]) {
      for (const extra of [
        {},
        { eps: 0.5 },
        { kvLengths: Int32Array.of(7, 4) },
        { keyMask: { data: Uint8Array.of(1, 1, 0, 1, 0, 1, 1), shape: [7] } },
      ]) {
        const { tensor } = randomSource(seed++);
        const [B, H, Hkv, L, D, Dv] = [2, 4, 2, causal ? 7 : 5, 3, 4];
        const query = tensor(...shapes(layout, B, L)(H, D));
        const key = tensor(...shapes(layout, B, 7)(Hkv, D));
        const value = tensor(...shapes(layout, B, 7)(Hkv, Dv));
        const dOut = tensor(...shapes(layout, B, L)(H, Dv));
        const options = { layout, causal, ...extra };
        const got = sdpa.linearAttentionBackward(query, key, value, { dOut }, options);
        const [q, k, v] = [query, key, value].map(wide);
        const loss = () => lossOf(linearReference(q, k, v, options), dOut);
        close('dQuery', got.dQuery, differences(q.data, loss), query.shape);
        close('dKey', got.dKey, differences(k.data, loss), key.shape);
        close('dValue', got.dValue, differences(v.data, loss), value.shape);
        assert.deepEqual(Object.keys(got), ['dQuery', 'dKey', 'dValue']);
      }
    }
  }
});

test('linearAttentionBackward: several chunks, a state at the start and a loss of the state', () => {
  for (const causal of [false, true]) {
    const { tensor, uniform } = randomSource(200);
    const [L, D, Dv] = [40, 5, 6];
    const [query, key, value, dOut] = [tensor(L, D), tensor(L, D), tensor(L, Dv), tensor(L, Dv)];
    const state = filled([D, Dv + 1], uniform);
    const dState = tensor(D, Dv + 1);
    const got = sdpa.linearAttentionBackward(query, key, value, { dOut, dState }, { causal, state });
    const [q, k, v, s] = [query, key, value, state].map(wide);
    // The recurrence, with the state written out.
    const loss = () => {
      const S = Float64Array.from(s.data);
      const out = new Float64Array(L * Dv);
      const write = (/** @type {number} */ t) => {
        for (let d = 0; d < D; d++) {
          for (let e = 0; e <= Dv; e++)
            S[d * (Dv + 1) + e] += phi(k.data[t * D + d]) * (e < Dv ? v.data[t * Dv + e] : 1);
        }
      };
      const read = (/** @type {number} */ t) => {
        const sums = new Float64Array(Dv + 1);
        for (let d = 0; d < D; d++)
          for (let e = 0; e <= Dv; e++) sums[e] += phi(q.data[t * D + d]) * S[d * (Dv + 1) + e];
        for (let e = 0; e < Dv; e++) out[t * Dv + e] = sums[e] / sums[Dv];
      };
      for (let t = 0; t < L; t++) {
        write(t);
        if (causal) read(t);
      }
      for (let t = 0; !causal && t < L; t++) read(t);
      return lossOf({ out, state: S }, dOut, dState);
    };
    close('dQuery', got.dQuery, differences(q.data, loss), query.shape);
    close('dKey', got.dKey, differences(k.data, loss), key.shape);
    close('dValue', got.dValue, differences(v.data, loss), value.shape);
    close('dState', got.dState, differences(s.data, loss), state.shape);
  }
});

test('linearAttentionBackward: what stands behind masked keys reaches no gradient, and they have none', () => {
  const { tensor } = randomSource(300);
  const [query, key, value, dOut] = [tensor(9, 3), tensor(9, 3), tensor(9, 4), tensor(9, 4)];
  const keyMask = { data: Uint8Array.from({ length: 9 }, (_, j) => Number(j % 4 > 0)), shape: [9] };
  for (const causal of [false, true]) {
    const [k, v] = [key, value].map(({ data, shape }) => ({ data: data.slice(), shape }));
    const clean = sdpa.linearAttentionBackward(query, k, v, { dOut }, { causal, keyMask });
    for (const rows of [k, v]) {
      const { at, D } = rowsOf(rows);
      for (const j of [0, 4, 8]) rows.data.fill(NaN, at(0, 0, j), at(0, 0, j) + D);
    }
    const got = sdpa.linearAttentionBackward(query, k, v, { dOut }, { causal, keyMask });
    assert.deepEqual(got, clean);
    for (const { data, shape } of [got.dKey, got.dValue]) {
      for (const j of [0, 4, 8]) assert.ok(data.subarray(j * shape[1], (j + 1) * shape[1]).every((x) => x === 0));
    }
  }
});

test('ssdBackward: central differences, with groups, layouts, D, states and a loss of the state', () => {
  let seed = 400;
  for (const layout of /** @type {const} */ (['bhld', 'blhd'])) {
    for (const [H, G] of [
      [4, 2],
      [3, 3],
      [2, 1],
    ]) {
      for (const full of [false, true]) {
        const { tensor, uniform } = randomSource(seed++);
        const [B, L, P, N] = [2, 6, 4, 3];
        const sized = shapes(layout, B, L);
        const inputs = {
          x: tensor(...sized(H, P)),
          dt: filled(sized(H), uniform),
          a: filled([H], () => -uniform()),
          b: tensor(...sized(G, N)),
          c: tensor(...sized(G, N)),
        };
        const d = full ? tensor(H) : undefined;
        const state = full ? tensor(B, H, N, P) : undefined;
        const dState = full ? tensor(B, H, N, P) : undefined;
        const dOut = tensor(...sized(H, P));
        const got = sdpa.ssdBackward(
          inputs.x,
          inputs.dt,
          inputs.a,
          inputs.b,
          inputs.c,
          { dOut, dState },
          { layout, d, state },
        );
        const [x, dt, a, b, c] = Object.values(inputs).map(wide);
        const [dWide, stateWide] = [d && wide(d), state && wide(state)];
        const options = { layout, d: dWide?.data, state: stateWide };
        const loss = () => lossOf(ssdReference(x, dt, a.data, b, c, options), dOut, dState);
        close('dX', got.dX, differences(x.data, loss), x.shape);
        close('dDt', got.dDt, differences(dt.data, loss), dt.shape);
        close('dA', got.dA, differences(a.data, loss), a.shape);
        close('dB', got.dB, differences(b.data, loss), b.shape);
        close('dC', got.dC, differences(c.data, loss), c.shape);
        if (dWide && stateWide) {
          close('dD', got.dD, differences(dWide.data, loss), dWide.shape);
          close('dState', got.dState, differences(stateWide.data, loss), stateWide.shape);
        } else {
          assert.deepEqual(Object.keys(got), ['dX', 'dDt', 'dA', 'dB', 'dC']);
        }
      }
    }
  }
});

test('steps of 0 have gradients too', () => {
  const { tensor } = randomSource(500);
  const [x, b, c, dOut] = [tensor(9, 4), tensor(9, 3), tensor(9, 3), tensor(9, 4)];
  const dt = { data: Float32Array.from({ length: 9 }, (_, t) => (t % 2 ? 0 : 0.5)), shape: [9] };
  const { dDt } = sdpa.ssdBackward(x, dt, [-1], b, c, { dOut });
  const step = wide(dt);
  const [xs, bs, cs] = [x, b, c].map(wide);
  close(
    'dDt',
    dDt,
    differences(step.data, () => lossOf(ssdReference(xs, step, [-1], bs, cs), dOut)),
    [9],
  );
});

const t = (/** @type {number[]} */ ...shape) => filled(shape, () => 0.5);
const [q, k, v] = [t(2, 4, 6, 3), t(2, 2, 6, 3), t(2, 2, 6, 5)];
const dOut = t(2, 4, 6, 5);
// prettier-ignore
const faults = /** @type {[string, any, any, string, RegExp][]} */ ([
  ['nothing given', undefined, {}, 'type', /needs an object \{ dOut \}/],
  ['no dOut', {}, {}, 'type', /needs dOut/],
  ['an unknown name', { dOut, dLse: dOut }, {}, 'unknown-option', /knows no 'dLse'.*it takes dOut and dState/],
  ['a dOut of another shape', { dOut: q }, {}, 'shape', /dOut shape is \[2, 4, 6, 3\] but must be \[2, 4, 6, 5\]/],
  ['a dOut in float16', { dOut: { data: new Uint16Array(240), shape: dOut.shape, dtype: 'float16' } }, {}, 'type', /dOut must be float32/],
  ['a dState of another shape', { dOut, dState: t(2, 4, 3, 5) }, {}, 'shape', /dState shape is \[2, 4, 3, 5\]/],
  ['returnState', { dOut }, { returnState: true }, 'unknown-option', /Backward has no option 'returnState'/],
  ['a faulty option', { dOut }, { layout: 'x' }, 'option', /layout/],
]);
for (const name of /** @type {const} */ (['linearAttentionBackward', 'gatedLinearAttentionBackward'])) {
  for (const [fault, given, options, code, message] of faults) {
    test(`${name}, ${fault}: code ${code}`, () => {
      const before = sdpa.memory();
      assertThrows(() => sdpa[name](q, k, v, given, options), code, message);
      assert.deepEqual(sdpa.memory(), before);
    });
  }
}

test('the delta rules have no gradients, and say so', () => {
  const options = { beta: t(2, 2, 6) };
  assertThrows(
    () => sdpa.gatedLinearAttentionBackward(q, k, v, { dOut }, options),
    'unsupported',
    /no gradients of the delta rules/,
  );
});

test('ssdBackward names faults as ssd does', () => {
  const [x, dt, b] = [t(2, 4, 6, 5), t(2, 4, 6), t(2, 2, 6, 3)];
  const a = new Float32Array(4);
  assertThrows(() => sdpa.ssdBackward(x, dt, a, b, b, /** @type {any} */ ({})), 'type', /ssdBackward needs dOut/);
  assertThrows(() => sdpa.ssdBackward(x, b, a, b, b, { dOut: x }), 'shape', /dt shape/);
  assertThrows(() => sdpa.ssdBackward(x, dt, a, b, b, { dOut: b }), 'shape', /dOut shape/);
});

test('memory: what a backward call takes beside inputs and gradients does not grow with the length', async () => {
  const other = await loadVariant();
  const taken = (/** @type {number} */ L) => {
    const [long, decay] = [t(1, 1, L, 4), filled([1, 1, L], () => -0.1)];
    const before = other.memory();
    other.gatedLinearAttentionBackward(long, long, long, { dOut: long }, { decay });
    assert.equal(other.memory().held, before.held);
    // Four inputs and three gradients, a decay and its gradient.
    return other.memory().peak - before.held - (7 * 4 + 2) * L * 4;
  };
  taken(20000);
  assert.equal(taken(80000), taken(160000));
  other.dispose();
});
