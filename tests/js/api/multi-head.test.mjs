// multiHeadAttention() against its definition in float64: layouts of weights, heads that share keys, context, options, positions, memory.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSafetensors, writeSafetensors } from 'sdpa/io';
import { largestError, random16, randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { assertBits, layouts, plainWeights, referenceLayer, sizesOf } from './multi-head-reference.mjs';
import { valuesOf } from './rope-reference.mjs';

const sdpa = await loadVariant();
const tolerance = 2e-6;

const llama = layouts[2].make;

/** @param {Partial<import('./multi-head-reference.mjs').Sizes>} [given] @param {number} [seed] */
function problem(given, seed = 1) {
  const sizes = sizesOf(given);
  return { sizes, plain: plainWeights(sizes, seed), random: randomSource(seed + 100) };
}

/** @param {any} got @param {any} want */
function assertClose(got, want) {
  const worst = largestError(got.out.data, want.out);
  assert.ok(worst <= tolerance, `out differs by ${worst}`);
  if (got.lse) assert.ok(largestError(got.lse.data, want.lse) <= tolerance, 'lse differs');
}

for (const { title, fused, make } of layouts) {
  test(`weights as ${title} keeps them give the layer, with and without biases`, () => {
    const { sizes, plain, random } = problem(title === 'PyTorch with kdim and vdim' ? { Ek: 7, Ev: 9 } : {});
    const x = random.tensor(2, 11, sizes.E);
    const context =
      fused || sizes.Ek === sizes.E ? null : { key: random.tensor(2, 6, 7), value: random.tensor(2, 6, 9) };
    const weights = make(plain, sizes);
    const layer = sdpa.multiHeadAttention({ numHeads: 4, weights });
    assert.deepEqual([...layer.weightNames].sort(), Object.keys(weights).sort());
    const got = layer.forward(x, context, { returnLse: true });
    assert.deepEqual(got.out.shape, [2, 11, sizes.Eo]);
    assert.deepEqual(got.lse.shape, [2, 4, 11]);
    assertClose(got, referenceLayer(plain, sizes, x, context));

    const bare = Object.fromEntries(Object.entries(weights).filter(([name]) => !name.includes('bias')));
    const without = plainWeights(sizes, 1, false);
    const plainBare = Object.fromEntries(
      Object.entries(plain).map(([role, linear]) => [role, { ...linear, b: without[/** @type {'out'} */ (role)].b }]),
    );
    const bareLayer = sdpa.multiHeadAttention({ numHeads: 4, weights: bare });
    assertClose(bareLayer.forward(x, context), referenceLayer(/** @type {any} */ (plainBare), sizes, x, context));
    layer.dispose();
    bareLayer.dispose();
  });
}

test('every layout gives the same bits', () => {
  const { sizes, plain, random } = problem();
  const x = random.tensor(1, 9, sizes.E);
  const outs = layouts.map(({ make }) => {
    const layer = sdpa.multiHeadAttention({ numHeads: 4, weights: make(plain, sizes) });
    return layer.forward(x).out.data;
  });
  for (const out of outs) assertBits(out, outs[0]);
});

for (const { title, make } of layouts) {
  test(`${title}: heads of key and value that query heads share`, () => {
    const { sizes, plain, random } = problem({ Hq: 6, Hkv: 2, D: 4, E: 10 });
    const x = random.tensor(2, 7, sizes.E);
    const layer = sdpa.multiHeadAttention({ numHeads: 6, numKvHeads: 2, weights: make(plain, sizes) });
    assert.deepEqual([layer.numHeads, layer.numKvHeads, layer.headDim, layer.headDimV], [6, 2, 4, 4]);
    assertClose(layer.forward(x), referenceLayer(plain, sizes, x));
  });
}

test('the number of key heads and both head sizes come out of the weights where they are not given', () => {
  const { sizes, plain, random } = problem({ Hq: 6, Hkv: 3, D: 4, Dv: 7, E: 13, Eo: 8 });
  const x = random.tensor(1, 5, sizes.E);
  for (const make of [llama, layouts[16].make]) {
    const layer = sdpa.multiHeadAttention({ numHeads: 6, weights: make(plain, sizes) });
    assert.deepEqual([layer.numKvHeads, layer.headDim, layer.headDimV], [3, 4, 7]);
    assertClose(layer.forward(x), referenceLayer(plain, sizes, x));
  }
});

test('larger sizes than a tile, a panel and a piece of the products', () => {
  const { sizes, plain, random } = problem({ Hq: 5, Hkv: 1, D: 33, Dv: 34, E: 300, Eo: 67 });
  const x = random.tensor(2, 61, sizes.E);
  const layer = sdpa.multiHeadAttention({ numHeads: 5, weights: llama(plain, sizes) });
  assertClose(layer.forward(x), referenceLayer(plain, sizes, x));
});

test('cross attention: keys and values are made from the context, or from one tensor each', () => {
  const { sizes, plain, random } = problem({ Ek: 6 });
  const x = random.tensor(2, 4, sizes.E);
  const context = random.tensor(2, 9, 6);
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights: llama(plain, sizes) });
  assertClose(layer.forward(x, context, { returnLse: true }), referenceLayer(plain, sizes, x, context));
  const pair = { key: context, value: random.tensor(2, 9, 6) };
  assertClose(layer.forward(x, pair), referenceLayer(plain, sizes, x, pair));
  assertBits(layer.forward(x, { key: context, value: context }).out.data, layer.forward(x, context).out.data);
});

test('x without a batch gives results without one', () => {
  const { sizes, plain, random } = problem();
  const x = random.tensor(5, sizes.E);
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights: llama(plain, sizes) });
  const got = layer.forward(x, null, { returnLse: true, scores: 'weights' });
  assert.deepEqual(got.out.shape, [5, sizes.Eo]);
  assert.deepEqual(got.lse.shape, [4, 5]);
  assert.deepEqual(got.scores.shape, [4, 5, 5]);
  const want = referenceLayer(plain, sizes, x);
  assertClose(got, want);
  assert.ok(largestError(got.scores.data, want.scores.weights) <= tolerance);
  const context = random.tensor(3, sizes.E);
  assertClose(layer.forward(x, context), referenceLayer(plain, sizes, x, context));
});

test('no tokens, no batch, no context tokens', () => {
  const { sizes, plain, random } = problem();
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights: llama(plain, sizes) });
  for (const shape of [
    [2, 0, sizes.E],
    [0, 3, sizes.E],
  ]) {
    const { out } = layer.forward({ data: new Float32Array(0), shape });
    assert.deepEqual(out.shape, [...shape.slice(0, 2), sizes.Eo]);
    assert.equal(out.data.length, 0);
  }
  // A token that sees nothing has heads of zeros: what is left is the bias.
  const { out } = layer.forward(random.tensor(1, 3, sizes.E), { data: new Float32Array(0), shape: [1, 0, sizes.E] });
  for (let i = 0; i < 3; i++) {
    assert.deepEqual([...out.data.subarray(i * sizes.Eo, (i + 1) * sizes.Eo)], [...plain.out.b]);
  }
});

const L = 8;
const bool = (/** @type {number[]} */ ...shape) => {
  const { uniform } = randomSource(77);
  return {
    data: Uint8Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => (uniform() < 0.7 ? 1 : 0)),
    shape,
  };
};

/** @type {[string, any][]} */
const passed = [
  ['causal', { causal: true }],
  ['scale', { scale: 0.7 }],
  ['softcap', { softcap: 1.5 }],
  ['window', { window: [2, 1] }],
  ['mask', { mask: bool(2, 1, L, L) }],
  ['bias', { bias: randomSource(5).tensor(4, L, L) }],
  ['alibiSlopes', { alibiSlopes: [0.5, 0.25, 0.1, 0.05], causal: true }],
  ['sinks', { sinks: [1, -1, 0.5, 2] }],
  ['smoothSoftmax', { smoothSoftmax: true }],
  ['queryLengths and kvLengths', { queryLengths: Int32Array.of(8, 3), kvLengths: Int32Array.of(5, 8) }],
  [
    'segmentIds',
    { segmentIds: { query: Int32Array.of(1, 1, 1, 2, 2, 3, 3, 3), key: Int32Array.of(1, 1, 2, 2, 2, 3, 3, 3) } },
  ],
  ['dropout', { dropout: { p: 0.3, seed: 9 } }],
];
for (const [name, options] of passed) {
  test(`options of attention pass through: ${name}`, () => {
    const { sizes, plain, random } = problem();
    const x = random.tensor(2, L, sizes.E);
    const layer = sdpa.multiHeadAttention({ numHeads: 4, weights: llama(plain, sizes) });
    const got = layer.forward(x, null, { ...options, returnLse: true });
    assertClose(got, referenceLayer(plain, sizes, x, null, options));
    assert.ok(largestError(got.out.data, layer.forward(x).out.data) > 1e-3, 'the option does nothing');
  });
}

test('keyPadding hides tokens, alone and beside masks of every shape', () => {
  const { sizes, plain, random } = problem();
  const x = random.tensor(2, L, sizes.E);
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights: llama(plain, sizes) });
  for (const [paddingShape, padded] of /** @type {[number[], number[]][]} */ ([
    [
      [2, L],
      [2, 1, 1, L],
    ],
    [
      [1, L],
      [1, 1, 1, L],
    ],
    [[L], [1, 1, 1, L]],
  ])) {
    const keyPadding = bool(...paddingShape);
    keyPadding.data[0] = 1;
    const asMask = { data: keyPadding.data, shape: padded };
    const options = { causal: true, bias: randomSource(6).tensor(L, L) };
    assertClose(
      layer.forward(x, null, { ...options, keyPadding }),
      referenceLayer(plain, sizes, x, null, { ...options, mask: asMask }),
    );
    for (const shape of [
      [L, L],
      [1, L],
      [L, 1],
      [1],
      [2, 1, L, L],
      [4, L, L],
      [2, 4, L, L],
      [2, 1, 1, L],
      [1, 4, 1, 1],
    ]) {
      const mask = bool(...shape);
      const both = { data: new Uint8Array(2 * 4 * L * L), shape: [2, 4, L, L] };
      const at = (/** @type {any} */ { data, shape: of }, /** @type {number[]} */ index) => {
        const full = [1, 1, 1, 1].concat(of).slice(-4);
        return data[full.reduce((n, size, r) => n * size + (size === 1 ? 0 : index[r]), 0)];
      };
      for (let n = 0; n < both.data.length; n++) {
        const index = [Math.floor(n / (4 * L * L)), Math.floor(n / (L * L)) % 4, Math.floor(n / L) % L, n % L];
        both.data[n] = at(mask, index) && at(asMask, index);
      }
      const got = layer.forward(x, null, { keyPadding, mask, returnLse: true });
      assertClose(got, referenceLayer(plain, sizes, x, null, { mask: both }));
    }
  }
  const resident = sdpa.tensor([2, L], 'bool');
  resident.data.set(bool(2, L).data);
  const mask = sdpa.tensor([L, L], 'bool');
  mask.data.set(bool(L, L).data);
  assertBits(
    layer.forward(x, null, { keyPadding: resident, mask }).out.data,
    layer.forward(x, null, { keyPadding: bool(2, L), mask: bool(L, L) }).out.data,
  );
  resident.dispose();
  mask.dispose();
});

test('keyPadding is of the context where there is one', () => {
  const { sizes, plain, random } = problem();
  const [x, context] = [random.tensor(2, 3, sizes.E), random.tensor(2, 6, sizes.E)];
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights: llama(plain, sizes) });
  const keyPadding = bool(2, 6);
  const mask = { data: keyPadding.data, shape: [2, 1, 1, 6] };
  assertClose(layer.forward(x, context, { keyPadding }), referenceLayer(plain, sizes, x, context, { mask }));
});

test('rope turns queries and keys by their positions: counted, from an offset, or as given', () => {
  const { sizes, plain, random } = problem({ Hq: 4, Hkv: 2, D: 6, E: 9 });
  const x = random.tensor(2, 7, sizes.E);
  for (const rope of [{}, { base: 500, pairing: /** @type {const} */ ('interleaved'), rotaryDim: 4 }]) {
    const layer = sdpa.multiHeadAttention({ numHeads: 4, weights: llama(plain, sizes), rope });
    for (const where of [
      {},
      { offset: 1000 },
      { offset: Int32Array.of(3, 50) },
      { positions: Int32Array.of(0, 5, 2, 9, 1, 1, 40) },
      { positions: { data: Int32Array.from({ length: 14 }, (_, n) => (n * 7) % 11), shape: [2, 7] } },
    ]) {
      const got = layer.forward(x, null, { causal: true, ...where });
      assertClose(got, referenceLayer(plain, sizes, x, null, { causal: true }, { ...rope, ...where }));
    }
    const turned = layer.forward(x).out.data;
    const unturned = sdpa.multiHeadAttention({ numHeads: 4, weights: llama(plain, sizes) });
    assert.ok(largestError(turned, unturned.forward(x).out.data) > 1e-3);
  }
});

test('16-bit and resident inputs and weights', () => {
  const { sizes, plain, random } = problem();
  const { uniform } = randomSource(3);
  for (const dtype of /** @type {const} */ (['float16', 'bfloat16'])) {
    const x = { data: random16(2 * 5 * sizes.E, dtype, uniform), shape: [2, 5, sizes.E], dtype };
    const weights = Object.fromEntries(
      Object.entries(llama(plain, sizes)).map(([name, { data, shape }]) => [
        name,
        { data: random16(data.length, dtype, uniform), shape, dtype },
      ]),
    );
    const wide = Object.fromEntries(
      Object.entries(weights).map(([name, tensor]) => [
        name,
        { data: new Float32Array(valuesOf(tensor)), shape: tensor.shape },
      ]),
    );
    const layer = sdpa.multiHeadAttention({ numHeads: 4, weights });
    const same = sdpa.multiHeadAttention({ numHeads: 4, weights: wide });
    const got = layer.forward(x).out.data;
    assertBits(got, same.forward({ data: new Float32Array(valuesOf(x)), shape: x.shape }).out.data);
  }
  const x = random.tensor(2, 5, sizes.E);
  const resident = sdpa.tensor(x.shape);
  resident.data.set(x.data);
  const weights = Object.fromEntries(
    Object.entries(llama(plain, sizes)).map(([name, { data, shape }]) => {
      const tensor = sdpa.tensor(shape);
      tensor.data.set(data);
      return [name, tensor];
    }),
  );
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights });
  for (const tensor of Object.values(weights)) tensor.dispose();
  const want = layer.forward(x).out.data;
  assertClose({ out: { data: want } }, referenceLayer(plain, sizes, x));
  assertBits(layer.forward(resident).out.data, want);
  assertBits(layer.forward(x, resident).out.data, want);
  resident.dispose();
});

test('out receives the result: an array, or a tensor in wasm memory', () => {
  const { sizes, plain, random } = problem();
  const x = random.tensor(1, 5, sizes.E);
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights: llama(plain, sizes) });
  const want = layer.forward(x).out.data;
  const array = new Float32Array(want.length).fill(NaN);
  assert.equal(layer.forward(x, null, { out: array }).out.data, array);
  assertBits(array, want);
  const tensor = sdpa.tensor([1, 5, sizes.Eo]);
  assert.equal(layer.forward(x, null, { out: tensor }).out, tensor);
  assertBits(tensor.data, want);
  tensor.dispose();
});

test('a call gives back what memory it takes, and dispose() that of the weights', () => {
  const { sizes, plain, random } = problem();
  const before = sdpa.memory().held;
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights: llama(plain, sizes) });
  const held = sdpa.memory().held;
  assert.equal(held - before, layer.byteLength);
  assert.ok(layer.byteLength >= 4 * sizes.E * sizes.E * 4);
  layer.forward(random.tensor(2, 50, sizes.E), null, { causal: true, returnLse: true });
  assert.throws(() => layer.forward(random.tensor(2, 50, sizes.E), null, { mask: bool(3, 3) }));
  assert.equal(sdpa.memory().held, held);
  layer.dispose();
  layer.dispose();
  assert.equal(layer.byteLength, 0);
  assert.equal(layer.disposed, true);
  assert.equal(sdpa.memory().held, before);
});

test('setWeights() takes other weights of the same shapes', () => {
  const { sizes, plain, random } = problem();
  const other = plainWeights(sizes, 50);
  const x = random.tensor(1, 6, sizes.E);
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights: llama(plain, sizes) });
  const { held } = sdpa.memory();
  layer.setWeights(llama(other, sizes));
  assert.equal(sdpa.memory().held, held);
  assertClose(layer.forward(x), referenceLayer(other, sizes, x));
});

test('one layer out of a .safetensors file with many tensors', () => {
  const { sizes, plain, random } = problem();
  const bert = layouts[5].make;
  /** @type {Record<string, any>} */
  const tensors = { 'embeddings.word_embeddings.weight': random.tensor(3, sizes.E) };
  for (const n of [0, 1, 11]) {
    for (const [name, tensor] of Object.entries(bert(n === 1 ? plain : plainWeights(sizes, n + 60), sizes))) {
      tensors[`encoder.layer.${n}.attention.${name}`] = tensor;
    }
    tensors[`encoder.layer.${n}.attention.output.LayerNorm.weight`] = random.tensor(sizes.E);
  }
  const file = writeSafetensors(tensors);
  const x = random.tensor(1, 6, sizes.E);

  const weights = readSafetensors(file);
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights, prefix: 'encoder.layer.1.attention' });
  const { out } = layer.forward(x);
  assertClose({ out }, referenceLayer(plain, sizes, x));
  layer.dispose();

  for (const prefix of ['encoder.layer.1', 'encoder.layer.1.', 'encoder/layer/1/attention/']) {
    const same = sdpa.multiHeadAttention({ numHeads: 4, weights, prefix });
    assertBits(same.forward(x).out.data, out.data);
  }
});
