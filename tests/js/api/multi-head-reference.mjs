// A multi-head layer by its definition in float64, its gradients by the chain rule, and its weights as libraries name and shape them.

import assert from 'node:assert/strict';
import { randomSource, referenceAttention } from '../helpers/reference.mjs';
import { referenceGradients } from './gradients-reference.mjs';
import { referenceRope, valuesOf } from './rope-reference.mjs';

/**
 * @typedef {object} Sizes
 * @property {number} Hq
 * @property {number} Hkv
 * @property {number} D
 * @property {number} Dv
 * @property {number} E numbers of a token of x
 * @property {number} Ek of what keys are made from
 * @property {number} Ev of what values are made from
 * @property {number} Eo of the output
 */

/** y = x·W + b, W (inputs, outputs) row by row. @typedef {{ w: Float64Array, b: Float64Array, inputs: number, outputs: number }} Linear */

/** @typedef {{ query: Linear, key: Linear, value: Linear, out: Linear }} Plain */

/** @param {Partial<Sizes>} [given] @returns {Sizes} */
export const sizesOf = ({ Hq = 4, Hkv = Hq, D = 5, Dv = D, E = Hq * D, Ek = E, Ev = Ek, Eo = E } = {}) => ({
  Hq,
  Hkv,
  D,
  Dv,
  E,
  Ek,
  Ev,
  Eo,
});

/**
 * Weights of float32 numbers.
 * @param {Sizes} sizes
 * @param {number} [seed]
 * @param {boolean} [biased]
 * @returns {Plain}
 */
export function plainWeights({ Hq, Hkv, D, Dv, E, Ek, Ev, Eo }, seed = 1, biased = true) {
  const { normal } = randomSource(seed);
  const linear = (/** @type {number} */ inputs, /** @type {number} */ outputs) => ({
    w: Float64Array.from({ length: inputs * outputs }, () => Math.fround(normal() / Math.sqrt(inputs))),
    b: Float64Array.from({ length: outputs }, () => (biased ? Math.fround(normal() / 2) : 0)),
    inputs,
    outputs,
  });
  return {
    query: linear(E, Hq * D),
    key: linear(Ek, Hkv * D),
    value: linear(Ev, Hkv * Dv),
    out: linear(Hq * Dv, Eo),
  };
}

const float = (/** @type {ArrayLike<number>} */ data, /** @type {number[]} */ shape) => ({
  data: Float32Array.from(data),
  shape,
});

/** (outputs, inputs). @param {Linear} linear */
function transposed({ w, inputs, outputs }) {
  return Float64Array.from({ length: w.length }, (_, n) => w[(n % inputs) * outputs + Math.floor(n / inputs)]);
}

/** Rows one below the other. @param {Float64Array[]} blocks */
const joined = (blocks) => Float64Array.from(blocks.flatMap((block) => [...block]));

/** Columns one beside the other. @param {Linear[]} linears */
function beside(linears) {
  const { inputs } = linears[0];
  const all = [];
  for (let r = 0; r < inputs; r++) {
    for (const { w, outputs } of linears) all.push(...w.subarray(r * outputs, (r + 1) * outputs));
  }
  return Float64Array.from(all);
}

/** @param {[string, string, string, string]} names @param {string} weight @param {string} bias */
const linears =
  ([q, k, v, o], weight = '.weight', bias = '.bias') =>
  (/** @type {Plain} */ plain) =>
    Object.fromEntries(
      [
        [q, plain.query],
        [k, plain.key],
        [v, plain.value],
        [o, plain.out],
      ].flatMap(([name, linear]) => {
        const { inputs, outputs, b } = /** @type {Linear} */ (linear);
        return [
          [name + weight, float(transposed(/** @type {Linear} */ (linear)), [outputs, inputs])],
          [name + bias, float(b, [outputs])],
        ];
      }),
    );

/**
 * @param {string} fused
 * @param {string} out
 * @param {string} [weight]
 * @param {string} [bias]
 */
const fusedLinear =
  (fused, out, weight = '.weight', bias = '.bias') =>
  (/** @type {Plain} */ { query, key, value, out: o }) => {
    const three = [query, key, value];
    const outputs = three.reduce((sum, linear) => sum + linear.outputs, 0);
    return {
      [fused + weight]: float(joined(three.map(transposed)), [outputs, query.inputs]),
      [fused + bias]: float(joined(three.map(({ b }) => b)), [outputs]),
      [`${out}.weight`]: float(transposed(o), [o.outputs, o.inputs]),
      [`${out}.bias`]: float(o.b, [o.outputs]),
    };
  };

/**
 * @param {string} out
 * @param {string} between
 * @param {string} end
 */
const keras =
  (out, between, end) =>
  (/** @type {Plain} */ plain, /** @type {Sizes} */ { Hq, Hkv, D, Dv, E, Ek, Ev, Eo }) =>
    Object.fromEntries(
      /** @type {[string, Linear, number[], number[]][]} */ ([
        ['query', plain.query, [E, Hq, D], [Hq, D]],
        ['key', plain.key, [Ek, Hkv, D], [Hkv, D]],
        ['value', plain.value, [Ev, Hkv, Dv], [Hkv, Dv]],
        [out, plain.out, [Hq, Dv, Eo], [Eo]],
      ]).flatMap(([name, { w, b }, shape, biasShape]) => [
        [`${name}${between}kernel${end}`, float(w, shape)],
        [`${name}${between}bias${end}`, float(b, biasShape)],
      ]),
    );

/**
 * How libraries keep the weights of a layer. `fused`: query, key and value in one tensor.
 * @type {{ title: string, fused?: boolean, make: (plain: Plain, sizes: Sizes) => Record<string, { data: Float32Array, shape: number[] }> }[]}
 */
export const layouts = [
  { title: 'PyTorch', fused: true, make: fusedLinear('in_proj', 'out_proj', '_weight', '_bias') },
  {
    title: 'PyTorch with kdim and vdim',
    make: (plain) => {
      const { query, key, value } = plain;
      const separate = linears(['q_proj', 'k_proj', 'v_proj', 'out_proj'], '_weight', '_bias')(plain);
      const { 'out_proj.weight': weight, 'out_proj.bias': bias } = fusedLinear('', 'out_proj')(plain);
      return {
        q_proj_weight: separate.q_proj_weight,
        k_proj_weight: separate.k_proj_weight,
        v_proj_weight: separate.v_proj_weight,
        in_proj_bias: float(joined([query.b, key.b, value.b]), [query.outputs + key.outputs + value.outputs]),
        'out_proj.weight': weight,
        'out_proj.bias': bias,
      };
    },
  },
  { title: 'Llama', make: linears(['q_proj', 'k_proj', 'v_proj', 'o_proj']) },
  { title: 'OPT', make: linears(['q_proj', 'k_proj', 'v_proj', 'out_proj']) },
  { title: 'Phi', make: linears(['q_proj', 'k_proj', 'v_proj', 'dense']) },
  { title: 'BERT', make: linears(['self.query', 'self.key', 'self.value', 'output.dense']) },
  {
    title: 'ViT',
    make: linears(['attention.query', 'attention.key', 'attention.value', 'output.dense']),
  },
  { title: 'query, key, value, dense', make: linears(['query', 'key', 'value', 'dense']) },
  { title: 'DistilBERT', make: linears(['q_lin', 'k_lin', 'v_lin', 'out_lin']) },
  { title: 'T5', make: linears(['q', 'k', 'v', 'o']) },
  { title: 'diffusers', make: linears(['to_q', 'to_k', 'to_v', 'to_out.0']) },
  { title: "Llama's own", make: linears(['wq', 'wk', 'wv', 'wo']) },
  { title: 'Phi-3', fused: true, make: fusedLinear('qkv_proj', 'o_proj') },
  { title: 'timm', fused: true, make: fusedLinear('qkv', 'proj') },
  { title: 'flash-attention', fused: true, make: fusedLinear('Wqkv', 'out_proj') },
  {
    title: 'GPT-2',
    fused: true,
    make: ({ query, key, value, out }) => {
      const three = [query, key, value];
      const outputs = three.reduce((sum, linear) => sum + linear.outputs, 0);
      return {
        'c_attn.weight': float(beside(three), [query.inputs, outputs]),
        'c_attn.bias': float(joined(three.map(({ b }) => b)), [outputs]),
        'c_proj.weight': float(out.w, [out.inputs, out.outputs]),
        'c_proj.bias': float(out.b, [out.outputs]),
      };
    },
  },
  { title: 'Keras', make: keras('attention_output', '/', '') },
  { title: 'Keras of TensorFlow', make: keras('attention_output', '/', ':0') },
  { title: 'Flax', make: keras('out', '.', '') },
];

/**
 * @param {Float64Array} x (rows, inputs)
 * @param {Linear} linear
 */
function apply(x, { w, b, inputs, outputs }) {
  const rows = x.length / inputs;
  const y = new Float64Array(rows * outputs);
  for (let r = 0; r < rows; r++) {
    for (let n = 0; n < outputs; n++) {
      let sum = b[n];
      for (let k = 0; k < inputs; k++) sum += x[r * inputs + k] * w[k * outputs + n];
      y[r * outputs + n] = sum;
    }
  }
  return y;
}

/** (B, L, H, D) as (B, H, L, D), or back. @param {Float64Array} data @param {number[]} shape its dimensions */
function swapped(data, [B, X, Y, D]) {
  const turned = new Float64Array(data.length);
  for (let b = 0; b < B; b++) {
    for (let x = 0; x < X; x++) {
      for (let y = 0; y < Y; y++) {
        const from = ((b * X + x) * Y + y) * D;
        turned.set(data.subarray(from, from + D), ((b * Y + y) * X + x) * D);
      }
    }
  }
  return turned;
}

/**
 * The layer's parts, in (B, H, L, D), for x (B, L, E) or (L, E).
 * @param {Plain} plain
 * @param {Sizes} sizes
 * @param {any} x
 * @param {any} context tensor, { key, value } or null
 * @param {any} rope what referenceRope() takes, or undefined
 */
function parts(plain, { Hq, Hkv, D, Dv }, x, context, rope) {
  const keyFrom = context?.key ?? context ?? x;
  const valueFrom = context?.value ?? context ?? x;
  const [B, L] = x.shape.length === 3 ? x.shape : [1, x.shape[0]];
  const S = keyFrom.shape[keyFrom.shape.length - 2];
  const inputs = { query: valuesOf(x), key: valuesOf(keyFrom), value: valuesOf(valueFrom) };
  const heads = (
    /** @type {'query' | 'key' | 'value'} */ role,
    /** @type {number} */ length,
    /** @type {number} */ H,
    /** @type {number} */ size,
  ) => {
    const data = swapped(apply(inputs[role], plain[role]), [B, length, H, size]);
    return { data, shape: [B, H, length, size] };
  };
  const turn = (/** @type {any} */ tensor, /** @type {any} */ more) =>
    rope ? { ...tensor, data: referenceRope(tensor, { ...rope, ...more }) } : tensor;
  return {
    B,
    L,
    S,
    inputs,
    turn,
    query: turn(heads('query', L, Hq, D)),
    key: turn(heads('key', S, Hkv, D)),
    value: heads('value', S, Hkv, Dv),
  };
}

/**
 * @param {Plain} plain
 * @param {Sizes} sizes
 * @param {any} x
 * @param {any} [context]
 * @param {any} [options] those of the reference of attention
 * @param {any} [rope]
 */
export function referenceLayer(plain, sizes, x, context = null, options = {}, rope = undefined) {
  const { B, L, query, key, value } = parts(plain, sizes, x, context, rope);
  const attention = referenceAttention(query, key, value, options);
  const heads = swapped(attention.out, [B, sizes.Hq, L, sizes.Dv]);
  return { out: apply(heads, plain.out), lse: attention.lse, scores: attention.scores, heads };
}

/**
 * Gradients of Σ out·dOut.
 * @param {Plain} plain
 * @param {Sizes} sizes
 * @param {any} x
 * @param {any} context
 * @param {ArrayLike<number>} dOut
 * @param {any} [options]
 * @param {any} [rope] `amplitude` as referenceRope() has it
 */
export function referenceLayerGradients(plain, sizes, x, context, dOut, options = {}, rope = undefined) {
  const { Hq, Hkv, D, Dv } = sizes;
  const { B, L, S, inputs, query, key, value } = parts(plain, sizes, x, context, rope);
  const { heads } = referenceLayer(plain, sizes, x, context, options, rope);
  const upstream = Float64Array.from(dOut);
  const dHeads = through(upstream, plain.out);
  const { exact } = referenceGradients(
    query,
    key,
    value,
    { dOut: { data: swapped(dHeads, [B, L, Hq, Dv]), shape: [B, Hq, L, Dv] } },
    options,
  );
  // A rotation's transpose turns back; its factor stays.
  const { amplitude = 1 } = rope ?? {};
  const turnBack = (/** @type {Float64Array} */ data, /** @type {number[]} */ shape) =>
    rope ? referenceRope({ data, shape }, { ...rope, inverse: true, amplitude: 1 / amplitude }) : data;
  const dY = {
    query: swapped(turnBack(exact.dQuery, [B, Hq, L, D]), [B, Hq, L, D]),
    key: swapped(turnBack(exact.dKey, [B, Hkv, S, D]), [B, Hkv, S, D]),
    value: swapped(exact.dValue, [B, Hkv, S, Dv]),
    out: upstream,
  };
  const from = { ...inputs, out: heads };
  const roles = /** @type {const} */ (['query', 'key', 'value', 'out']);
  const dPlain = Object.fromEntries(roles.map((role) => [role, linearGradients(from[role], dY[role], plain[role])]));
  const dInput = {
    query: through(dY.query, plain.query),
    key: through(dY.key, plain.key),
    value: through(dY.value, plain.value),
  };
  return { dPlain: /** @type {any} */ (dPlain), dInput, attention: exact };
}

/** dy·Wᵀ. @param {Float64Array} dy @param {Linear} linear */
function through(dy, { w, inputs, outputs }) {
  const dx = new Float64Array((dy.length / outputs) * inputs);
  for (let n = 0; n < dx.length; n++) {
    const [r, k] = [Math.floor(n / inputs), n % inputs];
    for (let m = 0; m < outputs; m++) dx[n] += dy[r * outputs + m] * w[k * outputs + m];
  }
  return dx;
}

/** @param {Float64Array} x @param {Float64Array} dy @param {Linear} linear @returns {Linear} */
function linearGradients(x, dy, { inputs, outputs }) {
  const w = new Float64Array(inputs * outputs);
  const b = new Float64Array(outputs);
  for (let r = 0; r < dy.length / outputs; r++) {
    for (let m = 0; m < outputs; m++) {
      b[m] += dy[r * outputs + m];
      for (let k = 0; k < inputs; k++) w[k * outputs + m] += x[r * inputs + k] * dy[r * outputs + m];
    }
  }
  return { w, b, inputs, outputs };
}

/** Sums of several. @param {...Float64Array} arrays */
export const added = (...arrays) => arrays[0].map((_, n) => arrays.reduce((sum, array) => sum + array[n], 0));

/**
 * NaN and signs of zeros included.
 * @param {Float32Array} got
 * @param {Float32Array} want
 */
export function assertBits(got, want) {
  const bits = (/** @type {Float32Array} */ array) => new Uint32Array(array.buffer, array.byteOffset, array.length);
  assert.deepEqual(bits(got), bits(want));
}
