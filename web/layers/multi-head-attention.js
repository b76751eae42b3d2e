// multiHeadAttention(): a layer of attention with its projections, Y = concat_h(head_h)·Wo + bo, heads = attention(x·Wq + bq, c·Wk + bk,
// c·Wv + bv) with c the context, or x itself (Vaswani et al. 2017, section 3.2.2).

import { disposeSymbol } from '../dispose.js';
import { disposedError, rangeError, show, typeError } from '../errors.js';
import { readNamed } from '../named-options.js';
import { settle } from '../operand.js';
import { whole } from '../option-values.js';
import { makeRope } from '../rope.js';
import { backward } from './backward.js';
import { forward } from './forward.js';
import { PackedWeights } from './packed-weights.js';
import { findLayer } from './weight-names.js';
import { readParts } from './weight-parts.js';

/**
 * @typedef {import('../options.js').AttentionOptions} AttentionOptions
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('../tensor.js').SdpaTensor} SdpaTensor
 * @typedef {import('../tensor.js').Tensor} Tensor
 * @typedef {import('../tensor.js').TensorLike} TensorLike
 * @typedef {import('./layer-input.js').ContextLike} ContextLike
 */

/** A tensor of weights, float32, float16 or bfloat16. @typedef {{ readonly data: any, readonly dtype?: string, readonly shape: ArrayLike<number> } | { readonly data: any, readonly type?: string, readonly dims: ArrayLike<number> } | SdpaTensor} WeightLike */

/**
 * Options of multiHeadAttention().
 * @typedef {object} MultiHeadAttentionOptions
 * @property {number} numHeads query heads, Hq
 * @property {number} [numKvHeads] heads of key and value, Hkv, which Hq is a multiple of; where absent, as many as the weights have
 * @property {Readonly<Record<string, WeightLike>>} weights tensors by name, as readSafetensors() gives them, of PyTorch (`in_proj_weight`,
 *   `out_proj.weight`; `q_proj_weight`, …), Hugging Face (`q_proj.weight`, `o_proj.weight`; `query.weight`, `dense.weight`; `c_attn.weight`;
 *   …) or Keras and Flax (`query/kernel`, `attention_output/kernel`). Others may be among them. A bias that is not there is 0
 * @property {string} [prefix] what stands before the layer's names, 'encoder.layer.0.attention'; needed where there are several layers
 * @property {import('../rope.js').RopeAngles} [rope] turns queries and keys by their positions
 */

/**
 * Options of forward() besides those of attention(). L tokens of x, S of the context (of x, without one), all those of the cache.
 * @typedef {object} LayerOptions
 * @property {import('../tensor.js').MaskLike | SdpaTensor} [keyPadding] boolean, (B, S): non-zero = there, as in `mask`, which may be given,
 *   too (PyTorch's key_padding_mask says the opposite)
 * @property {import('../kv-cache/kv-cache.js').KVCache} [cache] the keys and values of x are appended to it, and x attends to all that it
 *   has, each token to those before it and itself, unless `causal: false`. With `queryLengths` each row appends so many
 * @property {Int32Array | { readonly data: Int32Array, readonly shape: ArrayLike<number> }} [positions] of the tokens, for rope: (L), or (B, L)
 * @property {number | Int32Array} [offset] position of the first token, the others follow: one number, or (B). Where neither is given it is
 *   0, or how many tokens the cache has
 * @property {Float32Array | SdpaTensor} [out] receives the result
 */

/** Options of a layer's forward(). @typedef {import('../options.js').Without<AttentionOptions, 'layout'> & LayerOptions} ForwardOptions */
/** Options of a layer's backward(). @typedef {import('../options.js').Without<AttentionOptions, 'layout' | 'out' | 'scores'> & import('../options.js').Without<LayerOptions, 'cache' | 'out'>} LayerBackwardOptions */

/**
 * What a layer's forward() gives, float32.
 * @template {ForwardOptions} [O={}]
 * @typedef {import('../attention.js').AttentionResult<O>} ForwardResult
 */

const names = ['numHeads', 'numKvHeads', 'weights', 'prefix', 'rope'];

/** A layer whose weights lie in wasm memory. Made by `sdpa.multiHeadAttention()`. */
export class MultiHeadAttention {
  #runtime;
  #weights;
  #sizes;
  #rope;
  /** Shapes of the weights, by name. @type {Map<string, number[]>} */
  #shapes;
  #prefix;
  #numKvHeads;

  /**
   * @param {Runtime} runtime
   * @param {unknown} options
   * @internal
   */
  constructor(runtime, options) {
    const given = readNamed('multiHeadAttention', options, names);
    for (const name of ['numHeads', 'weights']) {
      if (given[name] === undefined) throw typeError('type', `multiHeadAttention needs the option ${name}`);
    }
    const { numHeads, numKvHeads, weights, prefix, rope } = given;
    whole('numHeads', numHeads, 1);
    if (numKvHeads !== undefined) whole('numKvHeads', numKvHeads, 1);
    const layer = readWeights(runtime, weights, prefix, numHeads, numKvHeads);
    this.#rope = rope === undefined ? null : makeRope(rope, layer.sizes.headDim);
    this.#runtime = runtime;
    this.#sizes = Object.freeze(layer.sizes);
    this.#shapes = new Map([...layer.operands].map(([name, { shape }]) => [name, Array.from(shape)]));
    this.#prefix = prefix;
    this.#numKvHeads = numKvHeads;
    this.#weights = new PackedWeights(runtime, layer);
  }

  #live() {
    if (this.disposed) throw disposedError('this layer', this.#runtime.disposed);
  }

  /** @returns {import('./layer-call.js').LayerState} */
  get #state() {
    this.#live();
    return {
      runtime: this.#runtime,
      weights: this.#weights,
      sizes: this.#sizes,
      rope: this.#rope,
      checkLive: () => this.#live(),
    };
  }

  /**
   * The layer's output for x. Options of attention() pass through; where it is positional, token i of x stands at position i.
   * @template {ForwardOptions} [O={}]
   * @param {TensorLike | SdpaTensor} x (B, L, size), or (L, size)
   * @param {ContextLike | null} [context] (B, S, size): what keys and values are made from, or { key, value } where these are two tensors;
   *   x itself where absent
   * @param {O} [options]
   * @returns {ForwardResult<O>} `out` (B, L, size of the output projection), and `lse` (B, Hq, L) and `scores` (B, Hq, L, S) as asked for
   * @throws TypeError or RangeError with a `code`, before anything is changed
   */
  forward(x, context, options) {
    return /** @type {any} */ (forward(this.#state, x, context, options));
  }

  /**
   * Gradients of a loss with respect to x, the context and every weight and bias, from that with respect to the layer's output. What
   * forward() computed is computed again.
   * @param {TensorLike | SdpaTensor} x as in the forward call
   * @param {ContextLike | null | undefined} context
   * @param {import('./backward.js').LayerGiven} given `dOut`
   * @param {LayerBackwardOptions} [options] those of the forward call
   * @returns {import('./backward.js').LayerGradients} `dX`, `dContext`, `dWeights` by the names and in the shapes of the weights, and those
   *   that attentionBackward() gives of the options; all float32
   * @throws TypeError or RangeError with a `code`, before anything is changed
   */
  backward(x, context, given, options) {
    return backward(this.#state, this.#shapes, x, context, given, options);
  }

  /**
   * Takes other weights, as after a step of training.
   * @param {Readonly<Record<string, WeightLike>>} weights of the same names and shapes
   * @throws TypeError or RangeError with a `code`, before anything is changed
   */
  setWeights(weights) {
    this.#live();
    const { operands } = readWeights(this.#runtime, weights, this.#prefix, this.#sizes.numHeads, this.#numKvHeads);
    for (const [name, shape] of this.#shapes) {
      const got = operands.get(name)?.shape;
      if (!got || got.length !== shape.length || got.some((size, i) => size !== shape[i])) {
        throw rangeError('shape', `weights['${name}'] must have shape ${show(shape)}, got ${got ? show(got) : 'none'}`);
      }
    }
    for (const name of operands.keys()) {
      if (!this.#shapes.has(name))
        throw rangeError('shape', `weights['${name}'] is new: the layer has none of this name`);
    }
    this.#live();
    this.#weights.fill(operands);
  }

  /** Query heads. */
  get numHeads() {
    return this.#sizes.numHeads;
  }

  /** Heads of key and value. */
  get numKvHeads() {
    return this.#sizes.numKvHeads;
  }

  /** Numbers of a head of query and key: what createKVCache() needs, beside the next. */
  get headDim() {
    return this.#sizes.headDim;
  }

  /** Numbers of a head of value. */
  get headDimV() {
    return this.#sizes.headDimV;
  }

  /** Names of the layer's tensors among the weights. */
  get weightNames() {
    return [...this.#shapes.keys()];
  }

  /** Bytes of wasm memory for the weights. */
  get byteLength() {
    return this.#weights.bytes;
  }

  /** Whether dispose() has been called. */
  get disposed() {
    return this.#weights.released || this.#runtime.disposed;
  }

  /** Frees the memory. Calling it again does nothing. */
  dispose() {
    this.#weights.release();
  }

  /** dispose(), for `using`. */
  [disposeSymbol]() {
    this.dispose();
  }
}

/**
 * Reads every property of the caller's objects once; from here on no code of the caller's runs.
 * @param {Runtime} runtime
 * @param {any} weights
 * @param {unknown} prefix
 * @param {number} numHeads
 * @param {number | undefined} numKvHeads
 */
function readWeights(runtime, weights, prefix, numHeads, numKvHeads) {
  if (typeof weights !== 'object' || weights === null || Array.isArray(weights)) {
    throw typeError('type', `weights must be an object with tensors by name, got ${show(weights)}`);
  }
  const found = findLayer(Object.keys(weights), prefix);
  const layer = readParts(runtime, found, (name) => weights[name], numHeads, numKvHeads);
  for (const [name, operand] of layer.operands) settle(`weights['${name}']`, operand, runtime);
  return layer;
}

/**
 * @param {Runtime} runtime
 * @param {unknown} options see MultiHeadAttentionOptions
 * @returns {MultiHeadAttention}
 */
export function multiHeadAttention(runtime, options) {
  void runtime.exports; // throws once the instance is disposed of
  return new MultiHeadAttention(runtime, options);
}
