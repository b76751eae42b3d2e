// gatedLinearAttention() against its recurrence in float64: every rule, sizes around vectors, stripes and chunks, states carried on.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { largestError, random16, randomSource, widen } from '../helpers/reference.mjs';
import { loadVariant, resident } from '../helpers/sdpa.mjs';
import { gatedReference } from './linear-reference.mjs';
import { cut, errorBesideLargest, filled, shapes } from './linear-tensors.mjs';

const sdpa = await loadVariant();
after(() => sdpa.dispose());

/** Of the largest number that is wanted: what is read are sums of the state's numbers, which cancel. */
const tolerance = 2e-6;

const rules = /** @type {const} */ (['linear', 'gated', 'delta', 'gated-delta']);

/**
 * Inputs that keep the delta rule stable: keys of length about 1, betas between 0 and 1.
 * @param {number} seed
 * @param {{ rank?: 2 | 3 | 4, B?: number, H?: number, Hkv?: number, L?: number, D?: number, Dv?: number, layout?: 'bhld' | 'blhd' }} [sizes]
 */
function inputs(seed, { rank = 4, B = 2, H = 4, Hkv = 2, L = 37, D = 5, Dv = 7, layout = 'bhld' } = {}) {
  const { tensor, uniform } = randomSource(seed);
  const sized = shapes(layout, B, L, rank);
  const key = tensor(...sized(Hkv, D));
  key.data.forEach((x, i) => (key.data[i] = x / Math.sqrt(D)));
  const decays = () => -0.6 * uniform() ** 2;
  return {
    query: tensor(...sized(H, D)),
    key,
    value: tensor(...sized(Hkv, Dv)),
    decay: filled(sized(Hkv, D), decays),
    headDecay: filled(sized(Hkv), decays),
    beta: filled(sized(Hkv), uniform),
    sharedBeta: filled(sized(1), uniform),
    state: tensor(...[B, Hkv, D, Dv].slice(4 - rank)),
  };
}

/** @param {(typeof rules)[number]} rule @param {ReturnType<typeof inputs>} all */
const gates = (rule, { decay, beta }) => ({
  ...(rule.startsWith('gated') && { decay }),
  ...(rule.endsWith('delta') && { beta }),
});

/** @param {ReturnType<typeof inputs>} all @param {any} options */
function check({ query, key, value }, options) {
  const want = gatedReference(query, key, value, options);
  const got = sdpa.gatedLinearAttention(query, key, value, { ...options, returnState: true });
  assert.deepEqual(got.out.shape, [...query.shape.slice(0, -1), value.shape.at(-1)]);
  const worst = Math.max(errorBesideLargest(got.out.data, want.out), errorBesideLargest(got.state.data, want.state));
  assert.ok(worst <= tolerance, `differs by ${worst}`);
  return got;
}

for (const rule of rules) {
  test(`${rule}: equals the recurrence for sizes around vectors, stripes and chunks`, () => {
    let seed = 1;
    for (const [D, Dv] of [
      [1, 1],
      [3, 4],
      [4, 5],
      [8, 15],
      [15, 16],
      [16, 17],
      [5, 31],
      [33, 64],
      [64, 65],
    ]) {
      for (const L of [1, 2, 31, 32, 33, 70]) {
        const all = inputs(seed++, { B: 1, H: 2, Hkv: 1, L, D, Dv });
        check(all, { rule, ...gates(rule, all) });
      }
    }
  });

  test(`${rule}: heads, layouts, ranks and a state at the start`, () => {
    for (const layout of /** @type {const} */ (['bhld', 'blhd'])) {
      for (const rank of /** @type {const} */ ([2, 3, 4])) {
        for (const [H, Hkv] of rank === 2
          ? [[1, 1]]
          : [
              [1, 1],
              [3, 3],
              [6, 2],
              [4, 1],
            ]) {
          const all = inputs(100 * rank + H, { rank, H, Hkv, layout });
          const got = check(all, { ...gates(rule, all), state: all.state, layout });
          assert.deepEqual(got.state.shape, all.state.shape);
          check(all, { ...gates(rule, all), layout });
        }
      }
    }
  });

  test(`${rule}: calls that hand the state on give what one call gives, bit by bit`, () => {
    for (const cuts of [
      [0, 1, 40],
      [0, 17, 17, 40],
      [0, 32, 39, 40],
    ]) {
      const all = inputs(7, { B: 1, H: 4, Hkv: 2, L: 40, layout: 'blhd' });
      const whole = check(all, { ...gates(rule, all), layout: 'blhd', state: all.state });
      /** @type {any} */
      let state = all.state;
      const outs = [];
      for (let n = 1; n < cuts.length; n++) {
        const piece = (/** @type {any} */ tensor) => cut(tensor, cuts[n - 1], cuts[n]);
        const options = Object.fromEntries(Object.entries(gates(rule, all)).map(([name, gate]) => [name, piece(gate)]));
        const part = sdpa.gatedLinearAttention(piece(all.query), piece(all.key), piece(all.value), {
          ...options,
          layout: 'blhd',
          state,
          returnState: true,
        });
        state = part.state;
        outs.push(...part.out.data);
      }
      assert.deepEqual(Float32Array.from(outs), whole.out.data);
      assert.deepEqual(state.data, whole.state.data);
    }
  });

  test(`${rule}: no token leaves the state as it was`, () => {
    const all = inputs(3, { L: 0 });
    const { out, state } = check(all, { ...gates(rule, all), state: all.state });
    assert.equal(out.data.length, 0);
    assert.deepEqual(state.data, all.state.data);
    assert.ok(
      sdpa.gatedLinearAttention(all.query, all.key, all.value, { returnState: true }).state.data.every((x) => x === 0),
    );
  });
}

test('a decay for each head, and a beta for all heads', () => {
  for (const layout of /** @type {const} */ (['bhld', 'blhd'])) {
    const all = inputs(11, { layout });
    check(all, { decay: all.headDecay, layout });
    check(all, { decay: all.headDecay, beta: all.sharedBeta, rule: 'gated-delta', layout });
    check(all, { beta: all.sharedBeta, layout });
  }
});

test('each option matters', () => {
  const all = inputs(12);
  const { query, key, value, decay, headDecay, beta, sharedBeta, state } = all;
  const plain = sdpa.gatedLinearAttention(query, key, value).out.data;
  const others = [
    { decay },
    { decay: headDecay },
    { beta },
    { beta: sharedBeta },
    { scale: 1 },
    { state },
    { decay, beta },
  ];
  const seen = [plain];
  for (const options of others) {
    const { data } = sdpa.gatedLinearAttention(query, key, value, options).out;
    for (const other of seen) assert.ok(largestError(data, other) > 1e-3);
    seen.push(data);
  }
  assert.equal(sdpa.gatedLinearAttention(query, key, value).state, undefined);
});

test('any finite scale', () => {
  const all = inputs(13);
  for (const scale of [0, -2, 1, 1 / 3]) check(all, { scale, decay: all.decay });
});

test('decays that leave nothing, that leave all, and that grow', () => {
  const all = inputs(14, { L: 70 });
  for (const g of [-Infinity, -1e30, -100, -69, -20, -0.35, -0.34, 0, 0.01]) {
    check(all, { decay: { data: all.decay.data.map(() => g), shape: all.decay.shape } });
    check(all, { decay: { data: all.headDecay.data.map((_, i) => (i % 3 ? -0.1 : g)), shape: all.headDecay.shape } });
  }
});

test('slow decays over thousands of tokens, where a factor rounded to float32 would show', () => {
  for (const g of [-1e-4, -1e-3, -1e-2, -0.3]) {
    const all = inputs(15, { B: 1, H: 1, Hkv: 1, L: 4000, D: 4, Dv: 4 });
    for (const like of [all.headDecay, all.decay]) {
      const decay = { data: like.data.map(() => g), shape: like.shape };
      const rounded = {
        data: Float64Array.from(decay.data, (x) => Math.log(Math.fround(Math.exp(x)))),
        shape: like.shape,
      };
      const { out } = check(all, { decay });
      if (g === -1e-4) {
        const other = gatedReference(all.query, all.key, all.value, { decay: rounded }).out;
        assert.ok(errorBesideLargest(out.data, other) > 5 * tolerance);
      }
    }
  }
});

test('chunkSize changes the memory that is taken, and no bit', () => {
  const all = inputs(16, { H: 2, L: 4096, D: 8, Dv: 8, B: 1, Hkv: 1 });
  const one = sdpa.gatedLinearAttention(all.query, all.key, all.value, { decay: all.decay, chunkSize: 1 });
  const before = sdpa.memory().peak;
  for (const chunkSize of [3, 64, 5000]) {
    const other = sdpa.gatedLinearAttention(all.query, all.key, all.value, { decay: all.decay, chunkSize });
    assert.deepEqual(other.out.data, one.out.data);
  }
  assert.ok(sdpa.memory().peak > before + 4096 * 8 * 4);
});

test('the workspace does not grow with the length', () => {
  const taken = (/** @type {number} */ L) => {
    const all = inputs(17, { B: 1, H: 2, Hkv: 1, L, D: 8, Dv: 8 });
    const elements = [all.query, all.key, all.value, all.decay, all.query].reduce(
      (sum, { data }) => sum + data.length,
      0,
    );
    const before = sdpa.memory();
    sdpa.gatedLinearAttention(all.query, all.key, all.value, { decay: all.decay });
    assert.equal(sdpa.memory().held, before.held);
    return sdpa.memory().peak - before.held - elements * 4;
  };
  taken(20000);
  const [long, longer] = [taken(40000), taken(80000)];
  assert.equal(longer, long);
});

test('16-bit inputs are widened', () => {
  const { uniform } = randomSource(18);
  const all = inputs(18, { L: 40, D: 6, Dv: 9 });
  for (const dtype of /** @type {const} */ (['float16', 'bfloat16'])) {
    const half = (/** @type {any} */ { data, shape }) => ({
      data: random16(data.length, dtype, uniform),
      shape,
      dtype,
    });
    const wide = (/** @type {any} */ { data, shape }) => ({
      data: Float32Array.from(data, (bits) => widen(bits, dtype)),
      shape,
    });
    const [query, key, value] = [all.query, all.key, all.value].map(half);
    const decay = {
      data: new Uint16Array(all.decay.data.length).fill(dtype === 'float16' ? 0xb400 : 0xbe80),
      shape: all.decay.shape,
      dtype,
    };
    const got = sdpa.gatedLinearAttention(query, key, value, { decay });
    const same = sdpa.gatedLinearAttention(wide(query), wide(key), wide(value), { decay: wide(decay) });
    assert.equal(wide(decay).data[0], -0.25);
    assert.deepEqual(got.out.data, same.out.data);
    assert.ok(
      largestError(got.out.data, gatedReference(wide(query), wide(key), wide(value), { decay: wide(decay) }).out) <=
        1e-5,
    );
  }
});

test('tensors in wasm memory are read where they lie', () => {
  const all = inputs(19, { layout: 'blhd' });
  const { query, key, value, decay, beta, state } = all;
  const options = { layout: /** @type {const} */ ('blhd'), returnState: true };
  const want = sdpa.gatedLinearAttention(query, key, value, { decay, beta, state, ...options });
  const [q, k, v, g, b, s] = [query, key, value, decay, beta, state].map((tensor) => resident(sdpa, tensor));
  const got = sdpa.gatedLinearAttention(q, k, v, { decay: g, beta: b, state: s, ...options });
  assert.deepEqual(got, want);
  assert.deepEqual(s.data, state.data, 'a state that is passed in is not written to');
  for (const tensor of [q, k, v, g, b, s]) tensor.dispose();
});

test('a NaN stays in the rows from its token on, of its head', () => {
  const all = inputs(20, { B: 2, H: 2, Hkv: 2, L: 40, D: 4, Dv: 4 });
  const clean = sdpa.gatedLinearAttention(all.query, all.key, all.value, { decay: all.decay }).out.data;
  all.value.data[(1 * 40 + 20) * 4 + 1] = NaN; // batch 0, head 1, token 20
  const { data } = sdpa.gatedLinearAttention(all.query, all.key, all.value, { decay: all.decay }).out;
  data.forEach((x, i) => {
    const [column, token, head] = [i % 4, Math.floor(i / 4) % 40, Math.floor(i / 160)];
    if (head === 1 && token >= 20 && column === 1) assert.ok(Number.isNaN(x));
    else assert.equal(x, clean[i]);
  });
});
