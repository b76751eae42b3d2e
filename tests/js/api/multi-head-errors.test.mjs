// What multiHeadAttention() says to weights, contexts and options that do not fit.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertThrows } from '../helpers/errors.mjs';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { layouts, plainWeights, sizesOf } from './multi-head-reference.mjs';

const sdpa = await loadVariant();
const sizes = sizesOf();
const plain = plainWeights(sizes);
const weights = layouts[2].make(plain, sizes);
const x = randomSource(1).tensor(2, 3, sizes.E);

/** @param {any} options */
const make = (options) => () => sdpa.multiHeadAttention(options);

test('options of the layer', () => {
  assertThrows(make(undefined), 'type', /needs the option numHeads/);
  assertThrows(make({ numHeads: 4 }), 'type', /needs the option weights/);
  assertThrows(make({ numHeads: 4, weights, heads: 2 }), 'unknown-option', /no option 'heads'/);
  assertThrows(make({ num_heads: 4, weights }), 'unknown-option', /did you mean 'numHeads'/);
  assertThrows(make({ numHeads: '4', weights }), 'type', /numHeads must be a number/);
  assertThrows(make({ numHeads: 0, weights }), 'option', /numHeads/);
  assertThrows(make({ numHeads: 4, numKvHeads: 1.5, weights }), 'option', /numKvHeads/);
  assertThrows(make({ numHeads: 4, weights: [] }), 'type', /weights must be an object/);
  assertThrows(make({ numHeads: 4, weights, prefix: 3 }), 'type', /prefix must be a text/);
  assertThrows(make({ numHeads: 4, weights, rope: { bass: 3 } }), 'unknown-option', /bass/);
  assertThrows(make({ numHeads: 4, weights, rope: { rotaryDim: 6 } }), 'option', /rotaryDim/);
});

test('names: none that are known, some of a layer, several layers', () => {
  const names = (/** @type {string[]} */ ...all) => Object.fromEntries(all.map((name) => [name, x]));
  assertThrows(make({ numHeads: 4, weights: {} }), 'option', /no attention layer .* The names are: none/);
  assertThrows(
    make({ numHeads: 4, weights: names('conv.weight', 'fc1.bias') }),
    'option',
    /PyTorch .* Hugging Face .* Keras .* The names are: conv\.weight, fc1\.bias$/,
  );
  const { 'v_proj.weight': lost, ...rest } = weights;
  assert.ok(lost);
  assertThrows(make({ numHeads: 4, weights: rest }), 'option', /q_proj\.weight is there but not v_proj\.weight/);
  const { 'o_proj.weight': out, ...without } = weights;
  assert.ok(out);
  assertThrows(
    make({ numHeads: 4, weights: without }),
    'option',
    /but not o_proj\.weight or out_proj\.weight or dense\.weight/,
  );
  const many = Object.fromEntries(
    [0, 1].flatMap((n) => Object.entries(weights).map(([name, tensor]) => [`layers.${n}.attn.${name}`, tensor])),
  );
  assertThrows(
    make({ numHeads: 4, weights: many }),
    'option',
    /2 attention layers: .*'layers\.0\.attn', 'layers\.1\.attn'/,
  );
  assertThrows(
    make({ numHeads: 4, weights: many, prefix: 'layers' }),
    'option',
    /2 attention layers with the prefix 'layers'/,
  );
  assertThrows(
    make({ numHeads: 4, weights: many, prefix: 'layers.2' }),
    'option',
    /prefix 'layers\.2' .* layers\.0\.attn\.q_proj/,
  );
  // 'layers.1' is no prefix of layers.10.
  const ten = Object.fromEntries(Object.entries(weights).map(([name, tensor]) => [`layers.10.attn.${name}`, tensor]));
  assertThrows(make({ numHeads: 4, weights: ten, prefix: 'layers.1' }), 'option', /no attention layer/);
  const long = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`a${n}`, x]));
  assertThrows(make({ numHeads: 4, weights: long }), 'option', /a15 and 24 more$/);
  assertThrows(make({ numHeads: 4, weights: { ...weights, 'q_proj/weight': x } }), 'option', /which are one name/);
});

test('tensors that would change what the layer computes are not passed over', () => {
  for (const [name, message] of /** @type {[string, RegExp][]} */ ([
    ['bias_k', /keys that are added/],
    ['q_norm.weight', /normalised queries/],
    ['sinks', /option 'sinks'/],
    ['relative_attention_bias.weight', /option 'bias'/],
  ])) {
    assertThrows(make({ numHeads: 4, weights: { ...weights, [name]: x } }), 'unsupported', message);
    const layer = sdpa.multiHeadAttention({ numHeads: 4, weights: { ...weights, [`elsewhere.${name}`]: x } });
    layer.dispose();
  }
});

test('shapes of weights', () => {
  const w = (/** @type {string} */ name, /** @type {number[]} */ ...shape) => ({
    ...weights,
    [name]: { data: new Float32Array(shape.reduce((a, b) => a * b, 1)), shape },
  });
  const of = (/** @type {any} */ changed, more = {}) => make({ numHeads: 4, weights: changed, ...more });
  assertThrows(
    of(w('q_proj.weight', 20)),
    'shape',
    /'q_proj\.weight'\] must have dimensions \(outputs, inputs\), got shape \[20\]/,
  );
  assertThrows(of(w('q_proj.weight', 4, 5, 20)), 'shape', /\(outputs, inputs\)/);
  assertThrows(of(w('q_proj.weight', 0, 20)), 'shape', /is empty/);
  assertThrows(of(w('q_proj.weight', 22, 20)), 'shape', /gives 22 numbers, which 4 query heads do not share evenly/);
  assertThrows(of(w('k_proj.weight', 12, 20)), 'shape', /gives 12 numbers, not a multiple of the head size 5/);
  assertThrows(of(w('k_proj.weight', 15, 20)), 'shape', /numHeads is 4, which is not a multiple of the 3 heads/);
  assertThrows(of(weights, { numKvHeads: 2 }), 'shape', /gives 20 numbers, not 2 key heads of 5/);
  assertThrows(of(w('v_proj.weight', 18, 20)), 'shape', /gives 18 numbers, which 4 value heads/);
  assertThrows(of(w('o_proj.weight', 20, 15)), 'shape', /takes 15 numbers but 4 heads of 5 give 20 .*\[20, 15\]/);
  assertThrows(of(w('q_proj.bias', 19)), 'shape', /'q_proj\.bias'\] has shape \[19\] but 20 numbers/);
  assertThrows(of(w('o_proj.bias', 21)), 'shape', /'o_proj\.bias'\] has shape \[21\] but 20 numbers/);
  assertThrows(of({ ...weights, 'q_proj.weight': [1] }), 'type', /weights\['q_proj\.weight'\] must be a tensor/);
  const doubles = { data: new Float64Array(400), shape: [20, 20] };
  assertThrows(
    of({ ...weights, 'q_proj.weight': doubles }),
    'type',
    /weights\['q_proj\.weight'\] data must be a Float32Array/,
  );

  const fused = layouts[0].make(plain, sizes);
  assertThrows(
    make({ numHeads: 7, weights: fused }),
    'shape',
    /gives 60 numbers, which 7 query, 7 key and 7 value heads/,
  );
  assertThrows(make({ numHeads: 4, numKvHeads: 3, weights: fused }), 'shape', /not a multiple of the 3 heads/);
  const short = { ...fused, in_proj_bias: { data: new Float32Array(59), shape: [59] } };
  assertThrows(make({ numHeads: 4, weights: short }), 'shape', /'in_proj_bias'\] has shape \[59\] but 60 numbers/);
  const keras = layouts[16].make(plain, sizes);
  assertThrows(make({ numHeads: 2, weights: keras }), 'shape', /'query\/kernel'\] has 4 heads but 2 are wanted/);
});

test('x and context', () => {
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights });
  const forward =
    (/** @type {any} */ ...given) =>
    () =>
      layer.forward(given[0], given[1], given[2]);
  const of = (/** @type {number[]} */ ...shape) => randomSource(2).tensor(...shape);
  assertThrows(forward(undefined), 'type', /x must be a tensor/);
  assertThrows(forward(of(20)), 'shape', /x must be \(batch, length, size\) or \(length, size\), got 1 dimensions/);
  assertThrows(forward(of(1, 2, 3, 20)), 'shape', /got 4 dimensions/);
  assertThrows(
    forward(of(2, 3, 19)),
    'shape',
    /x has 19 numbers a token \(shape \[2, 3, 19\]\) but the layer's weights take 20/,
  );
  assertThrows(forward(x, of(2, 5, 21)), 'shape', /context has 21 numbers/);
  assertThrows(forward(x, of(5, 20)), 'shape', /context has shape \[5, 20\] but x has shape \[2, 3, 20\]/);
  assertThrows(forward(x, of(3, 5, 20)), 'shape', /context has shape \[3, 5, 20\]/);
  assertThrows(
    forward(x, { key: of(2, 5, 20), value: of(2, 4, 20) }),
    'shape',
    /context\.value has shape \[2, 4, 20\] but context\.key/,
  );
  assertThrows(forward(x, { causal: true }), 'type', /context must be a tensor .* options are the argument behind it/);
  assertThrows(forward(x, { key: of(2, 5, 20), value: 3 }), 'type', /context\.value must be a tensor/);
  const other = sizesOf({ Ek: 7, Ev: 9 });
  const odd = sdpa.multiHeadAttention({ numHeads: 4, weights: layouts[2].make(plainWeights(other), other) });
  assertThrows(() => odd.forward(x), 'shape', /needs a context/);
  assertThrows(() => odd.forward(x, of(2, 5, 7)), 'shape', /context must be \{ key, value \}/);
  odd.dispose();
  layer.dispose();
});

test('options of forward', () => {
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights });
  const turning = sdpa.multiHeadAttention({ numHeads: 4, weights, rope: { rotaryDim: 4 } });
  const forward = (/** @type {any} */ options) => () => layer.forward(x, null, options);
  const { held } = sdpa.memory();
  assertThrows(forward([]), 'type', /options must be an object/);
  assertThrows(forward({ layout: 'blhd' }), 'option', /no option layout/);
  assertThrows(forward({ offset: 3 }), 'option', /offset says where .* made without rope/);
  assertThrows(forward({ positions: Int32Array.of(1, 2, 3) }), 'option', /positions says/);
  assertThrows(forward({ is_causal: true }), 'unknown-option', /is_causal/);
  assertThrows(forward({ out: new Float32Array(5) }), 'shape', /out has 5 elements/);
  const padding = (/** @type {number[]} */ ...shape) => ({
    data: new Uint8Array(shape.reduce((a, b) => a * b, 1)).fill(1),
    shape,
  });
  assertThrows(forward({ keyPadding: padding(2, 4) }), 'shape', /keyPadding has shape \[2, 4\] but must have \[2, 3\]/);
  assertThrows(forward({ keyPadding: padding(3, 3) }), 'shape', /keyPadding/);
  assertThrows(forward({ keyPadding: padding(2, 1, 3) }), 'shape', /keyPadding/);
  assertThrows(
    forward({ keyPadding: { data: new Float32Array(6), shape: [2, 3] } }),
    'type',
    /keyPadding must be boolean/,
  );
  const both = { keyPadding: padding(2, 3) };
  assertThrows(forward({ ...both, mask: padding(3, 5) }), 'shape', /mask shape \[3, 5\]/);
  assertThrows(forward({ ...both, mask: padding(3, 4, 3, 3) }), 'shape', /mask shape \[3, 4, 3, 3\]/);
  assertThrows(forward({ ...both, mask: padding(5, 3, 3) }), 'shape', /mask shape/);
  assertThrows(() => turning.forward(x, x), 'option', /rope, which turns x and its own keys: it takes no context/);
  assertThrows(() => turning.forward(x, null, { positions: Int32Array.of(1, 2) }), 'shape', /positions/);
  assertThrows(
    () => turning.forward(x, null, { positions: Int32Array.of(1, 2, 3), offset: 1 }),
    'option',
    /give one of them/,
  );
  assert.equal(sdpa.memory().held, held);
  layer.dispose();
  turning.dispose();
});

test('out that overlaps x, and x or weights that a getter disposes of meanwhile', () => {
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights });
  const resident = sdpa.tensor([2, 3, 20]);
  assertThrows(() => layer.forward(resident, null, { out: resident }), 'option', /out overlaps query/);
  const disposing = (/** @type {() => void} */ act) => ({
    mask: {
      get data() {
        act();
        return new Uint8Array(9).fill(1);
      },
      shape: [3, 3],
    },
  });
  assertThrows(
    () =>
      layer.forward(
        resident,
        null,
        disposing(() => resident.dispose()),
      ),
    'disposed',
    /tensor/,
  );
  assertThrows(
    () =>
      layer.forward(
        x,
        null,
        disposing(() => layer.dispose()),
      ),
    'disposed',
    /this layer/,
  );
});

test('views of wasm memory are read where they lie, though the call itself makes that grow', async () => {
  const fresh = await loadVariant();
  const [B, L] = [1, 700];
  const layer = fresh.multiHeadAttention({ numHeads: 4, weights });
  const random = randomSource(12);
  const long = random.tensor(B, L, sizes.E);
  const bias = random.tensor(L, L);
  const want = layer.forward(long, null, { bias }).out.data;
  const other = await loadVariant();
  const again = other.multiHeadAttention({ numHeads: 4, weights });
  const tensors = [long, bias].map(({ data, shape }) => {
    const tensor = other.tensor(shape);
    tensor.data.set(data);
    return tensor;
  });
  const { wasm, held } = other.memory();
  const filler = other.tensor([Math.floor((wasm - held - 100_000) / 4)]);
  const [xView, biasView] = tensors.map(({ data, shape }) => ({ data, shape }));
  const before = other.memory().wasm;
  const got = again.forward(xView, null, { bias: biasView }).out.data;
  assert.ok(other.memory().wasm > before, 'this data does not make the memory grow');
  assert.deepEqual(got, want);
  filler.dispose();
  fresh.dispose();
  other.dispose();
});

test('setWeights() refuses other shapes and names, and keeps what it had', () => {
  const layer = sdpa.multiHeadAttention({ numHeads: 4, weights });
  const want = layer.forward(x).out.data;
  const wide = sizesOf({ E: 24 });
  const set = (/** @type {any} */ other) => () => layer.setWeights(other);
  assertThrows(set(layouts[2].make(plainWeights(wide), wide)), 'shape', /must have shape \[20, 20\], got \[20, 24\]/);
  const { 'q_proj.bias': gone, ...less } = weights;
  assert.ok(gone);
  assertThrows(set(less), 'shape', /'q_proj\.bias'\] must have shape \[20\], got none/);
  assertThrows(set(layouts[0].make(plain, sizes)), 'shape', /'q_proj\.weight'\] must have shape .* got none/);
  const bare = Object.fromEntries(Object.entries(weights).filter(([name]) => !name.endsWith('bias')));
  const unbiased = sdpa.multiHeadAttention({ numHeads: 4, weights: bare });
  assertThrows(() => unbiased.setWeights(weights), 'shape', /is new/);
  assert.deepEqual(layer.forward(x).out.data, want);
  unbiased.dispose();
  layer.dispose();
});

test('after dispose(), of the layer or of the instance', async () => {
  const other = await loadVariant();
  const layer = other.multiHeadAttention({ numHeads: 4, weights });
  layer.dispose();
  assertThrows(() => layer.forward(x), 'disposed', /this layer has been disposed of/);
  assertThrows(() => layer.backward(x, null, { dOut: x }), 'disposed', /this layer/);
  assertThrows(() => layer.setWeights(weights), 'disposed', /this layer/);
  const last = other.multiHeadAttention({ numHeads: 4, weights });
  other.dispose();
  assert.equal(last.disposed, true);
  assertThrows(() => last.forward(x), 'disposed', /the sdpa instance of this layer/);
  assertThrows(() => other.multiHeadAttention({ numHeads: 4, weights }), 'disposed', /instance/);
  last.dispose();
});

test('too little memory: an error that leaves the layer usable', async () => {
  const small = await loadVariant({ maxMemory: 600_000 });
  const layer = small.multiHeadAttention({ numHeads: 4, weights });
  const { held } = small.memory();
  const long = { data: new Float32Array(4000 * 20), shape: [1, 4000, 20] };
  assertThrows(() => layer.forward(long), 'out-of-memory', /needs \d+ bytes/);
  assertThrows(() => layer.backward(long, null, { dOut: long }), 'out-of-memory', /needs \d+ bytes/);
  const wide = sizesOf({ E: 400 });
  assertThrows(
    () => small.multiHeadAttention({ numHeads: 4, weights: layouts[2].make(plainWeights(sizesOf({ D: 100 })), wide) }),
    'out-of-memory',
    /a layer's weights needs/,
  );
  assert.equal(small.memory().held, held);
  layer.forward(x);
  small.dispose();
});
