// Gradients of multiHeadAttention() against the chain rule in float64, which is compared with differences of the layer first.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertThrows } from '../helpers/errors.mjs';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import {
  added,
  assertBits,
  layouts,
  plainWeights,
  referenceLayer,
  referenceLayerGradients,
  sizesOf,
} from './multi-head-reference.mjs';

const sdpa = await loadVariant();

/**
 * As shares of the largest gradient of the tensor.
 * @param {string} name
 * @param {ArrayLike<number>} got
 * @param {ArrayLike<number>} want
 * @param {number} [tolerance]
 */
function assertNear(name, got, want, tolerance = 4e-6) {
  assert.equal(got.length, want.length, name);
  const largest = Array.from(want).reduce((most, g) => Math.max(most, Math.abs(g)), 0);
  for (let n = 0; n < got.length; n++) {
    const error = Math.abs(got[n] - want[n]);
    assert.ok(error <= tolerance * largest, `${name}[${n}] is ${got[n]}, not ${want[n]} (largest ${largest})`);
  }
}

/** @param {Partial<import('./multi-head-reference.mjs').Sizes>} [given] */
function problem(given, B = 2, L = 6) {
  const sizes = sizesOf(given);
  const random = randomSource(8);
  return {
    sizes,
    plain: plainWeights(sizes, 3),
    random,
    x: random.tensor(B, L, sizes.E),
    dOut: random.tensor(B, L, sizes.Eo),
  };
}

/** Every gradient of the layer. @param {any} got @param {any} want @param {any} make @param {any} sizes @param {any} context */
function assertAll(got, want, make, sizes, context) {
  const { query, key, value } = want.dInput;
  const expected = make(want.dPlain, sizes);
  assert.deepEqual(Object.keys(got.dWeights).sort(), Object.keys(expected).sort());
  for (const [name, { data, shape }] of Object.entries(expected)) {
    assert.deepEqual(got.dWeights[name].shape, shape);
    assert.equal(got.dWeights[name].dtype, 'float32');
    // Of a key's bias: it adds the same to every score of a row, so the gradient is 0 but for rounding.
    const size = Math.max(...data.map(Math.abs));
    if (size > 1e-9) assertNear(name, got.dWeights[name].data, data);
  }
  if (!context) {
    assert.equal('dContext' in got, false);
    assertNear('dX', got.dX.data, added(query, key, value));
    return;
  }
  assertNear('dX', got.dX.data, query);
  if (context.key) {
    assertNear('dContext.key', got.dContext.key.data, key);
    assertNear('dContext.value', got.dContext.value.data, value);
    assert.deepEqual(got.dContext.key.shape, context.key.shape);
    assert.deepEqual(got.dContext.value.shape, context.value.shape);
  } else {
    assertNear('dContext', got.dContext.data, added(key, value));
    assert.deepEqual(got.dContext.shape, context.shape);
  }
}

test('the reference has the slopes of the layer, by central differences', () => {
  const { sizes, plain, x, dOut, random } = problem({ Hq: 2, Hkv: 1, D: 4, E: 5, Eo: 3 }, 1, 4);
  const options = { causal: true, softcap: 2, bias: random.tensor(4, 4) };
  const rope = { base: 50, amplitude: 1.3 };
  const wide = { data: Float64Array.from(x.data), shape: x.shape };
  const exact = referenceLayerGradients(plain, sizes, wide, null, dOut.data, options, rope);
  const loss = () =>
    referenceLayer(plain, sizes, wide, null, options, rope).out.reduce((sum, y, n) => sum + y * dOut.data[n], 0);
  const differences = (/** @type {Float64Array} */ values) =>
    values.map((_, n) => {
      const [start, h] = [values[n], 1e-5];
      const at = (/** @type {number} */ v) => {
        values[n] = v;
        return loss();
      };
      const slope = (at(start + h) - at(start - h)) / (2 * h);
      values[n] = start;
      return slope;
    });
  const { query, key, value } = exact.dInput;
  assertNear('dX', differences(wide.data), added(query, key, value), 1e-8);
  for (const role of /** @type {const} */ (['query', 'key', 'value', 'out'])) {
    assertNear(`${role} weight`, differences(plain[role].w), exact.dPlain[role].w, 1e-8);
    // That of the key's bias is 0 without rope, but with it positions differ.
    assertNear(`${role} bias`, differences(plain[role].b), exact.dPlain[role].b, 1e-7);
  }
});

for (const { title, make } of layouts) {
  test(`gradients in the layout of ${title}: of every weight and bias, in its shape`, () => {
    const { sizes, plain, x, dOut } = problem({ Hq: 4, Hkv: 2, D: 5, E: 12 });
    const layer = sdpa.multiHeadAttention({ numHeads: 4, numKvHeads: 2, weights: make(plain, sizes) });
    const got = layer.backward(x, null, { dOut }, { causal: true });
    const want = referenceLayerGradients(plain, sizes, x, null, dOut.data, { causal: true });
    assert.deepEqual(Object.keys(got), ['dX', 'dWeights', 'dScale']);
    assert.deepEqual(got.dX.shape, x.shape);
    assertAll(got, want, make, sizes, null);
    assertNear('dScale', [got.dScale], want.attention.dScale, 2e-5);
    layer.dispose();
  });
}

const llama = layouts[2].make;

test('cross attention, and keys and values of a tensor each', () => {
  const { sizes, plain, x, dOut, random } = problem({ Dv: 3, Ek: 7, Eo: 4 });
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights: llama(plain, sizes) });
  const one = random.tensor(2, 9, 7);
  for (const context of [one, { key: one, value: random.tensor(2, 9, 7) }]) {
    const got = layer.backward(x, context, { dOut });
    assertAll(got, referenceLayerGradients(plain, sizes, x, context, dOut.data), llama, sizes, context);
  }
  layer.dispose();
});

test('rope: gradients turn back, with the factor of YaRN', () => {
  const { sizes, plain, x, dOut } = problem({ D: 8 });
  const scaling = { type: /** @type {const} */ ('linear'), factor: 2 };
  for (const [rope, reference] of /** @type {[any, any][]} */ ([
    [{ base: 100 }, { base: 100 }],
    [
      { base: 100, pairing: 'interleaved', rotaryDim: 4 },
      { base: 100, pairing: 'interleaved', rotaryDim: 4 },
    ],
    [{ base: 100, scaling }, { frequency: (/** @type {number} */ k) => 100 ** ((-2 * k) / 8) / 2 }],
  ])) {
    const layer = sdpa.multiHeadAttention({ numHeads: 4, weights: llama(plain, sizes), rope });
    const got = layer.backward(x, null, { dOut }, { offset: 5 });
    const want = referenceLayerGradients(plain, sizes, x, null, dOut.data, {}, { ...reference, offset: 5 });
    assertAll(got, want, llama, sizes, null);
    layer.dispose();
  }
  // YaRN's factor comes out of the slopes of the layer itself: <dX, v> against differences along v.
  const yarn = { type: /** @type {const} */ ('yarn'), factor: 4, originalMaxPosition: 32 };
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights: llama(plain, sizes), rope: { scaling: yarn } });
  const { dX } = layer.backward(x, null, { dOut });
  const v = randomSource(90).tensor(...x.shape).data;
  const along = (/** @type {number} */ h) => {
    const moved = { data: x.data.map((value, n) => value + h * v[n]), shape: x.shape };
    return layer.forward(moved).out.data.reduce((sum, y, n) => sum + y * dOut.data[n], 0);
  };
  const slope = (8 * (along(0.02) - along(-0.02)) - (along(0.04) - along(-0.04))) / 0.24;
  const product = dX.data.reduce((sum, g, n) => sum + g * v[n], 0);
  assert.ok(Math.abs(slope - product) <= 2e-3 * Math.abs(slope), `${product} beside ${slope}`);
  layer.dispose();
});

test('options of attention, their gradients, and keyPadding', () => {
  const { sizes, plain, x, dOut, random } = problem();
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights: llama(plain, sizes) });
  const keyPadding = { data: Uint8Array.from([1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0]), shape: [2, 6] };
  const options = {
    bias: random.tensor(4, 6, 6),
    sinks: [0.5, -1, 2, 0],
    alibiSlopes: [0.5, 0.2, 0.1, 0.3],
    softcap: 3,
    dropout: { p: 0.2, seed: 4 },
  };
  const got = layer.backward(x, null, { dOut }, { ...options, keyPadding });
  const mask = { data: keyPadding.data, shape: [2, 1, 1, 6] };
  const want = referenceLayerGradients(plain, sizes, x, null, dOut.data, { ...options, mask });
  assertAll(got, want, llama, sizes, null);
  assertNear('dBias', got.dBias?.data ?? [], want.attention.dBias ?? []);
  assertNear('dSinks', got.dSinks?.data ?? [], want.attention.dSinks ?? []);
  assertNear('dAlibiSlopes', got.dAlibiSlopes?.data ?? [], want.attention.dAlibiSlopes ?? []);
  assert.deepEqual(Object.keys(got), ['dX', 'dWeights', 'dBias', 'dSinks', 'dAlibiSlopes', 'dScale']);
  layer.dispose();
});

test('larger sizes than a tile, a panel and a piece of the products', () => {
  const { sizes, plain, x, dOut } = problem({ Hq: 3, Hkv: 1, D: 33, E: 270, Eo: 41 }, 1, 50);
  const layer = sdpa.multiHeadAttention({ numHeads: 3, weights: llama(plain, sizes) });
  assertAll(
    layer.backward(x, null, { dOut }),
    referenceLayerGradients(plain, sizes, x, null, dOut.data),
    llama,
    sizes,
    null,
  );
  layer.dispose();
});

test('without a batch, from resident tensors, and from nothing', () => {
  const { sizes, plain, random } = problem();
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights: llama(plain, sizes) });
  const x = random.tensor(5, sizes.E);
  const dOut = random.tensor(5, sizes.Eo);
  const { held } = sdpa.memory();
  const got = layer.backward(x, null, { dOut });
  assert.equal(sdpa.memory().held, held);
  assert.deepEqual(got.dX.shape, [5, sizes.E]);
  assertAll(got, referenceLayerGradients(plain, sizes, x, null, dOut.data), llama, sizes, null);
  const resident = [x, dOut].map(({ data, shape }) => {
    const tensor = sdpa.tensor(shape);
    tensor.data.set(data);
    return tensor;
  });
  const same = layer.backward(resident[0], null, { dOut: resident[1] });
  assertBits(same.dX.data, got.dX.data);
  for (const name of layer.weightNames) assertBits(same.dWeights[name].data, got.dWeights[name].data);
  for (const tensor of resident) tensor.dispose();

  const empty = { data: new Float32Array(0), shape: [1, 0, sizes.E] };
  const none = layer.backward(empty, null, { dOut: empty });
  assert.deepEqual(none.dX.shape, [1, 0, sizes.E]);
  for (const name of layer.weightNames) assert.ok(none.dWeights[name].data.every((g) => g === 0));
  // No key: x has no part in out, the bias of the output alone has.
  const unseen = layer.backward({ ...x, shape: [1, 5, sizes.E] }, empty, {
    dOut: { ...dOut, shape: [1, 5, sizes.Eo] },
  });
  assert.ok(unseen.dX.data.every((g) => g === 0));
  assert.ok(unseen.dWeights['o_proj.bias'].data.some((g) => g !== 0));
  assert.ok(unseen.dWeights['q_proj.weight'].data.every((g) => g === 0));
  layer.dispose();
});

test('a few steps against the gradient lower the loss', () => {
  const { sizes, plain, x } = problem();
  const weights = llama(plain, sizes);
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights });
  const target = randomSource(70).tensor(...x.shape).data;
  const losses = [];
  for (let step = 0; step < 12; step++) {
    const { out } = layer.forward(x, null, { causal: true });
    losses.push(out.data.reduce((sum, y, n) => sum + (y - target[n]) ** 2, 0) / target.length);
    const dOut = { data: out.data.map((y, n) => (2 * (y - target[n])) / target.length), shape: out.shape };
    const { dWeights } = layer.backward(x, null, { dOut }, { causal: true });
    for (const [name, { data }] of Object.entries(weights)) {
      dWeights[name].data.forEach((g, n) => (data[n] -= g));
    }
    layer.setWeights(weights);
  }
  for (let step = 1; step < losses.length; step++) assert.ok(losses[step] < losses[step - 1], losses.join(' '));
  layer.dispose();
});

test('what backward refuses', () => {
  const { sizes, plain, x, dOut } = problem();
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights: llama(plain, sizes) });
  const call = (/** @type {any} */ given, /** @type {any} */ options) => () => layer.backward(x, null, given, options);
  assertThrows(call(undefined), 'type', /needs an object \{ dOut \}/);
  assertThrows(call({}), 'type', /dOut/);
  assertThrows(call({ dOut, out: dOut }), 'unknown-option', /no 'out'/);
  assertThrows(
    call({ dOut: { data: new Uint16Array(dOut.data.length), shape: dOut.shape, dtype: 'float16' } }),
    'type',
    /float32/,
  );
  assertThrows(call({ dOut: { data: dOut.data, shape: [6, 2, sizes.Eo] } }), 'shape', /must have \[2, 6, 20\]/);
  assertThrows(call({ dOut }, { out: new Float32Array(1) }), 'option', /'out'/);
  assertThrows(call({ dOut }, { scores: 'weights' }), 'option', /'scores'/);
  assertThrows(call({ dOut }, { layout: 'bhld' }), 'option', /layout/);
  assertThrows(call({ dOut }, { casual: true }), 'unknown-option', /casual/);
  layer.dispose();
});
