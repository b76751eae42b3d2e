// A loaded instance: the object that load() resolves to.

import { alibiSlopes } from './alibi.js';
import { attention } from './attention.js';
import { attentionAsync } from './attention-async.js';
import { disposeSymbol } from './dispose.js';
import { rangeError, show, typeError } from './errors.js';
import { dtypeBytes } from './frame.js';
import { masks } from './masks/index.js';
import { merge } from './merge.js';
import { Pool } from './pool/pool.js';
import { rope } from './rope.js';
import { sinusoidal } from './sinusoidal.js';
import { product, readShape, SdpaTensor } from './tensor.js';
import { version } from './version.js';

/**
 * @typedef {import('./tensor.js').TensorLike} TensorLike
 * @typedef {import('./options.js').AttentionOptions} AttentionOptions
 * @typedef {import('./attention-async.js').AttentionAsyncOptions} AttentionAsyncOptions
 */

/** One wasm module with its memory. Made by load(); independent of every other. */
export class Sdpa {
  /** @type {import('./runtime.js').Runtime} */
  #runtime;
  /** @type {Pool} */
  #pool;
  #program;
  #threads;
  #methods;
  /** Of sharded caches, from the first one on. @type {import('./pool/keepers.js').Keepers | undefined} */
  #keepers;

  /**
   * @param {import('./runtime.js').Runtime} runtime
   * @param {import('./pool/station.js').Program} program what workers start from
   * @param {number | 'auto'} threads most workers
   * @param {import('./combine-parts.js').Methods} methods of the parts
   * @internal
   */
  constructor(runtime, program, threads, methods) {
    this.#runtime = runtime;
    this.#program = program;
    this.#threads = threads;
    this.#methods = methods;
    this.#pool = new Pool(runtime, program, threads);
    /** The build in use. */
    this.variant = runtime.variant;
    /** The package's version. */
    this.version = version;
  }

  /**
   * Workers that run now: none before the first asynchronous call, which starts as many as it can use, and none where the host allows
   * no worker. Those that keep caches are not counted.
   */
  get threads() {
    return this.#pool.threads;
  }

  /**
   * Exact attention, softmax(mask(softcap(scale·QKᵀ) + bias))·V, in memory that grows with L, not with L×S. Runs on the
   * caller's thread until it is done.
   * @template {AttentionOptions} [O={}]
   * @param {TensorLike | SdpaTensor} query (B, Hq, L, D), (Hq, L, D) or (L, D)
   * @param {TensorLike | SdpaTensor} key (B, Hkv, S, D), with Hq a multiple of Hkv
   * @param {TensorLike | SdpaTensor} value (B, Hkv, S, Dv)
   * @param {O} [options]
   * @returns {import('./attention.js').AttentionResult<O>} `out` (B, Hq, L, Dv), `lse` and `scores` as asked for, all float32
   *   and the caller's own; a query that may attend to no key gives a row of zeros with lse -Infinity
   * @throws TypeError or RangeError with a `code`, before anything is changed
   */
  attention(query, key, value, options) {
    return /** @type {any} */ (attention(this.#runtime, query, key, value, options));
  }

  /**
   * attention() on workers, or where there are none in slices on the caller's thread with rests in between: the same bits. The inputs
   * are copied before it returns. Calls begin in the order in which they are made.
   * @template {AttentionAsyncOptions} [O=AttentionAsyncOptions]
   * @param {TensorLike | SdpaTensor} query
   * @param {TensorLike | SdpaTensor} key
   * @param {TensorLike | SdpaTensor} value
   * @param {O} [options] those of attention(), `signal` and `onProgress`. `out` is written while the call runs, so that after a
   *   rejection it may hold part of the result
   * @returns {Promise<import('./attention.js').AttentionResult<O>>} rejects with the errors of attention(), with the signal's reason, or
   *   with what onProgress throws; the instance stays usable. `disposed` where it is disposed of meanwhile
   */
  attentionAsync(query, key, value, options) {
    return /** @type {any} */ (attentionAsync(this.#runtime, this.#pool, this, query, key, value, options));
  }

  /**
   * Exact weights P = exp(s - lse) of attention(), s its scores after softcap, bias and masks, without their L×S matrix: chosen rows or
   * columns, and summaries. P is 0 where a key takes no part; rows sum to 1, with `sinks` to less. Memory for the results and the inputs
   * only. A row of NaN gives NaN where it sees keys, and the key -1.
   * @template {import('./weights/weights.js').WeightsOptions} O
   * @param {TensorLike | SdpaTensor} query (B, Hq, L, D), (Hq, L, D) or (L, D)
   * @param {TensorLike | SdpaTensor} key (B, Hkv, S, D), with Hq a multiple of Hkv
   * @param {O} options those of attention() that say what the scores are, `lse`, and one or more of `rows`, `columns`, `columnSums`,
   *   `topK`, `stats` and `pool`
   * @returns {import('./weights/weights.js').WeightsResultOf<O>} what was asked for, under the same names, the caller's own
   * @throws TypeError or RangeError with a `code`, before anything is changed
   */
  attentionWeights(query, key, options) {
    return /** @type {any} */ (this.#methods.attentionWeights(this.#runtime, query, key, options));
  }

  /**
   * attentionWeights() on workers, as attentionAsync() is attention(): the same bits.
   * @template {import('./weights/weights-async.js').WeightsAsyncOptions} O
   * @param {TensorLike | SdpaTensor} query
   * @param {TensorLike | SdpaTensor} key
   * @param {O} options those of attentionWeights(), `signal` and `onProgress`, which counts the rows of each result
   * @returns {Promise<import('./weights/weights.js').WeightsResultOf<O>>} rejects as attentionAsync() does
   */
  attentionWeightsAsync(query, key, options) {
    return /** @type {any} */ (
      this.#methods.attentionWeightsAsync(this.#runtime, this.#pool, this, query, key, options)
    );
  }

  /**
   * Gradients of a loss with respect to the inputs of attention(), from those with respect to `out` and `lse`: exact, with the weights
   * computed again from lse, in memory that grows with L and S, not with L×S. Rows that see nothing and keys that nobody sees have
   * gradients of exactly 0. Sums run in a fixed order.
   * @template {import('./gradients.js').BackwardOptions} [O={}]
   * @param {TensorLike | SdpaTensor} query as in the forward call
   * @param {TensorLike | SdpaTensor} key
   * @param {TensorLike | SdpaTensor} value
   * @param {import('./gradients.js').BackwardGiven} given `out`, `lse`, `dOut` and, where the loss depends on lse, `dLse`
   * @param {O} [options] those of the forward call, `out` and `scores` apart
   * @returns {import('./gradients.js').BackwardResult<O>} `dQuery`, `dKey`, `dValue`, float32, in the shapes of the inputs; `dBias` (summed
   *   over the dimensions in which the bias repeats), `dSinks` and `dAlibiSlopes` where these were given; `dScale`, a number
   * @throws TypeError or RangeError with a `code`, before anything is changed
   */
  attentionBackward(query, key, value, given, options) {
    return /** @type {any} */ (this.#methods.attentionBackward(this.#runtime, query, key, value, given, options));
  }

  /**
   * attentionBackward() on workers, one key head of a batch entry (with the query heads that share it) at a time, or where there are none
   * on the caller's thread, with rests in between: the same bits. The inputs are copied before it returns.
   * @template {import('./gradients/async.js').BackwardAsyncOptions} [O=import('./gradients/async.js').BackwardAsyncOptions]
   * @param {TensorLike | SdpaTensor} query
   * @param {TensorLike | SdpaTensor} key
   * @param {TensorLike | SdpaTensor} value
   * @param {import('./gradients.js').BackwardGiven} given
   * @param {O} [options] those of attentionBackward(), `signal` and `onProgress`
   * @returns {Promise<import('./gradients.js').BackwardResult<O>>} rejects as that of attentionAsync() does
   */
  attentionBackwardAsync(query, key, value, given, options) {
    return /** @type {any} */ (
      this.#methods.attentionBackwardAsync(this.#runtime, this.#pool, this, query, key, value, given, options)
    );
  }

  /**
   * Compares attentionBackward() with central differences of the definition of attention, computed in float64 by a few plain loops, on a
   * random loss Σ out·R and a sample of elements. Slow: for small tensors, for teaching, and for doubt.
   * @param {TensorLike | SdpaTensor} query
   * @param {TensorLike | SdpaTensor} key
   * @param {TensorLike | SdpaTensor} value
   * @param {import('./gradient-check.js').CheckOptions} [options] those of attention(), `samples` and `seed`
   * @returns {import('./gradient-check.js').GradientCheck} the errors of each tensor, and `passed`: all of them are at most 0.001 of the
   *   tensor's largest gradient (float32 leaves about 0.000001)
   * @throws TypeError or RangeError with a `code`
   */
  gradientCheck(query, key, value, options) {
    return this.#methods.gradientCheck(this.#runtime, query, key, value, options);
  }

  /**
   * Results over parts of the keys, put together to the result over all of them: exp(lse) of each part is the weight of its out. Any
   * number of parts, in any order, each made with `returnLse: true` over keys of its own. A part with lse -Infinity changes nothing;
   * `sinks` and `smoothSoftmax` belong to exactly one part.
   * @param {readonly import('./merge.js').MergePart[]} parts of one shape, float32
   * @param {{ layout?: 'bhld' | 'blhd' }} [options] the layout that the parts were made with
   * @returns {{ out: import('./tensor.js').Tensor, lse: import('./tensor.js').Tensor }} in the shapes of the parts; computed in float64
   *   and rounded once
   * @throws TypeError or RangeError with a `code`
   */
  merge(parts, options) {
    return merge(this.#runtime, parts, options);
  }

  /**
   * Keys and values of the tokens so far, kept in wasm memory and read where they lie.
   * @param {import('./kv-cache/cache-options.js').KVCacheOptions} options
   * @returns {import('./kv-cache/kv-cache.js').KVCache}
   * @throws TypeError or RangeError with a `code`, before anything is allocated; RangeError `out-of-memory`
   */
  createKVCache(options) {
    return this.#methods.createKVCache(this.#runtime, options);
  }

  /**
   * Rotary position embedding: each pair of a row's first rotaryDim columns turned by its position times the pair's frequency, with angles
   * and rotation in float64, rounded once.
   * @template {import('./rope.js').RopeOptions} [O={}]
   * @param {TensorLike | SdpaTensor} x (B, H, L, D), (H, L, D) or (L, D)
   * @param {O} [options]
   * @returns {O extends { out: SdpaTensor } ? SdpaTensor : import('./rope.js').RopeResult} in x's shape and type
   * @throws TypeError or RangeError with a `code`, before anything is changed
   */
  rope(x, options) {
    return /** @type {any} */ (rope(this.#runtime, x, options));
  }

  /**
   * The fixed position embedding of sines and cosines of pos/base^(2i/dim).
   * @param {number} length rows
   * @param {number} dim columns
   * @param {import('./sinusoidal.js').SinusoidalOptions} [options]
   * @returns {import('./tensor.js').Tensor} of shape [length, dim]
   * @throws TypeError or RangeError with a `code`
   */
  sinusoidal(length, dim, options) {
    return sinusoidal(length, dim, options);
  }

  /**
   * The usual slopes for the option `alibiSlopes`: 2^(-8(h + 1)/H) where H is a power of two.
   * @param {number} numHeads H, 1 or more
   * @returns {Float32Array} (H)
   * @throws TypeError or RangeError with a `code`
   */
  alibiSlopes(numHeads) {
    return alibiSlopes(numHeads);
  }

  /**
   * A layer of attention with its projections, whose weights are copied into wasm memory. With weights out of a .safetensors file:
   *
   *     const weights = readSafetensors(await readFile('model.safetensors')); // of sdpa/io
   *     const layer = sdpa.multiHeadAttention({ numHeads: 12, weights, prefix: 'encoder.layer.0.attention' });
   *     const { out } = layer.forward(x, null, { keyPadding });
   *
   * @param {import('./layers/multi-head-attention.js').MultiHeadAttentionOptions} options
   * @returns {import('./layers/multi-head-attention.js').MultiHeadAttention}
   * @throws TypeError or RangeError with a `code`, before anything is allocated: `option`, with the names that were found, where the weights
   *   have no layer of a known layout; `shape` where they do not fit one another or the heads; `unsupported` where the layer has more
   *   than projections (normalised queries, …); RangeError `out-of-memory`
   */
  multiHeadAttention(options) {
    return this.#methods.multiHeadAttention(this.#runtime, options);
  }

  /**
   * Attention within the windows of an image, as in Swin Transformer: tokens see those of their window, and with `shift` those of it that
   * were neighbours before the shift. Padding and what came round the border are not masked but left out, so that they take no time and
   * cannot reach the result.
   * @template {import('./layers/window-call.js').WindowAttention2dOptions} O
   * @param {TensorLike | SdpaTensor} query (B, Hq, height·width, D), (Hq, height·width, D) or (height·width, D); with `layout: 'blhd'`
   *   (B, height·width, Hq, D): an image (B, height, width, C) as it lies
   * @param {TensorLike | SdpaTensor} key with Hkv heads, which Hq is a multiple of
   * @param {TensorLike | SdpaTensor} value
   * @param {O} options
   * @returns {import('./layers/window-attention-2d.js').WindowAttention2dResult<O>} `out` and, as asked for, `lse`, in the order of the
   *   query's tokens
   * @throws TypeError or RangeError with a `code`, before anything is changed
   */
  windowAttention2d(query, key, value, options) {
    return /** @type {any} */ (this.#methods.windowAttention2d(this.#runtime, query, key, value, options));
  }

  /**
   * windowAttention2d() on workers, as attentionAsync() is attention(): the same bits.
   * @template {import('./layers/window-async.js').WindowAttention2dAsyncOptions} O
   * @param {TensorLike | SdpaTensor} query
   * @param {TensorLike | SdpaTensor} key
   * @param {TensorLike | SdpaTensor} value
   * @param {O} options those of windowAttention2d(), `signal` and `onProgress`
   * @returns {Promise<import('./layers/window-attention-2d.js').WindowAttention2dResult<O>>} rejects as attentionAsync() does
   */
  windowAttention2dAsync(query, key, value, options) {
    return /** @type {any} */ (
      this.#methods.windowAttention2dAsync(this.#runtime, this.#pool, this, query, key, value, options)
    );
  }

  /**
   * Linear attention (Katharopoulos et al. 2020), phi(x) = elu(x) + 1: O_i = phi(q_i)·Σ phi(k_j)v_jᵀ / (phi(q_i)·Σ phi(k_j)) over all keys, or
   * with `causal` over those up to i. Another function than attention(), not an approximation of it; its time grows with L.
   * @template {import('./linear/linear-attention.js').LinearAttentionOptions} [O={}]
   * @param {TensorLike | SdpaTensor} query (B, Hq, L, D), (Hq, L, D) or (L, D)
   * @param {TensorLike | SdpaTensor} key (B, Hkv, S, D), with Hq a multiple of Hkv
   * @param {TensorLike | SdpaTensor} value (B, Hkv, S, Dv)
   * @param {O} [options]
   * @returns {import('./linear/linear-attention.js').LinearResult<O>} `out` (B, Hq, L, Dv), zeros where a query sees no key, and on request
   *   `state`, with which a later call goes on: the same bits as one call
   * @throws TypeError or RangeError with a `code`, before anything is changed
   */
  linearAttention(query, key, value, options) {
    return /** @type {any} */ (this.#methods.linearAttention(this.#runtime, query, key, value, options));
  }

  /**
   * Linear attention with a state S (D, Dv) that decays and corrects itself, by the recurrences of ONNX LinearAttention (opset 27), causal:
   * linear S ← S + k⊗v; gated S ← e^g·S + k⊗v; delta S ← S + β·k⊗(v − Sᵀk); gated-delta first the decay, then delta; o = scale·qᵀS.
   * @template {import('./linear/gated.js').GatedLinearAttentionOptions} [O={}]
   * @param {TensorLike | SdpaTensor} query (B, Hq, L, D), (Hq, L, D) or (L, D)
   * @param {TensorLike | SdpaTensor} key (B, Hkv, L, D), with Hq a multiple of Hkv
   * @param {TensorLike | SdpaTensor} value (B, Hkv, L, Dv)
   * @param {O} [options]
   * @returns {import('./linear/linear-attention.js').LinearResult<O>} `out` (B, Hq, L, Dv), and on request `state`, with which a later call
   *   goes on: the same bits as one call
   * @throws TypeError or RangeError with a `code`, before anything is changed
   */
  gatedLinearAttention(query, key, value, options) {
    return /** @type {any} */ (this.#methods.gatedLinearAttention(this.#runtime, query, key, value, options));
  }

  /**
   * The state space layer of Mamba-2 (Dao & Gu 2024), between its projections: h_t = exp(Δ_t·A)·h_{t−1} + Δ_t·B_t⊗x_t, y_t = C_tᵀh_t + D·x_t.
   * Heads share the B and C of their group. Δ is taken as it is given: bias and softplus are the caller's.
   * @template {import('./linear/ssd.js').SsdOptions} [O={}]
   * @param {TensorLike | SdpaTensor} x (B, H, L, P), (H, L, P) or (L, P)
   * @param {TensorLike | SdpaTensor} dt Δ: (B, H, L)
   * @param {import('./options.js').PerHeadLike} a A of each head, usually below 0: (H)
   * @param {TensorLike | SdpaTensor} b (B, G, L, N), with H a multiple of G
   * @param {TensorLike | SdpaTensor} c (B, G, L, N)
   * @param {O} [options]
   * @returns {import('./linear/linear-attention.js').LinearResult<O>} `out` (B, H, L, P), and on request `state` (B, H, N, P), with which a
   *   later call goes on: the same bits as one call
   * @throws TypeError or RangeError with a `code`, before anything is changed
   */
  ssd(x, dt, a, b, c, options) {
    return /** @type {any} */ (this.#methods.ssd(this.#runtime, x, dt, a, b, c, options));
  }

  /**
   * Gradients of a loss with respect to the inputs of linearAttention(), from those with respect to `out` and, where the loss depends on
   * it, the `state` that it returned. Time grows with L. Memory beside the inputs and gradients does not, but for two numbers for each
   * query of one key head.
   * @template {import('./linear/backward.js').ForBackward<import('./linear/linear-attention.js').LinearAttentionOptions>} [O={}]
   * @param {TensorLike | SdpaTensor} query as in the forward call
   * @param {TensorLike | SdpaTensor} key
   * @param {TensorLike | SdpaTensor} value
   * @param {import('./linear/backward.js').LinearGiven} given `dOut` and, where the loss depends on the state, `dState`
   * @param {O} [options] those of the forward call without `returnState`
   * @returns {import('./linear/backward.js').LinearGradients<O>} float32, in the shapes of the inputs; `dState` where the call went on from
   *   a `state`; 0 for keys that take no part
   * @throws TypeError or RangeError with a `code`, before anything is changed
   */
  linearAttentionBackward(query, key, value, given, options) {
    return /** @type {any} */ (this.#methods.linearAttentionBackward(this.#runtime, query, key, value, given, options));
  }

  /**
   * Gradients of gatedLinearAttention() by the rules 'linear' and 'gated', as linearAttentionBackward() gives them, and `dDecay`.
   * @template {import('./linear/backward.js').ForBackward<import('./linear/gated.js').GatedLinearAttentionOptions>} [O={}]
   * @param {TensorLike | SdpaTensor} query as in the forward call
   * @param {TensorLike | SdpaTensor} key
   * @param {TensorLike | SdpaTensor} value
   * @param {import('./linear/backward.js').LinearGiven} given `dOut` and, where the loss depends on the state, `dState`
   * @param {O} [options] those of the forward call without `returnState`
   * @returns {import('./linear/backward.js').LinearGradients<O>} float32, in the shapes of the inputs
   * @throws TypeError or RangeError with a `code`, before anything is changed; `unsupported` for the delta rules
   */
  gatedLinearAttentionBackward(query, key, value, given, options) {
    return /** @type {any} */ (
      this.#methods.gatedLinearAttentionBackward(this.#runtime, query, key, value, given, options)
    );
  }

  /**
   * Gradients of ssd().
   * @template {import('./linear/backward.js').ForBackward<import('./linear/ssd.js').SsdOptions>} [O={}]
   * @param {TensorLike | SdpaTensor} x as in the forward call
   * @param {TensorLike | SdpaTensor} dt
   * @param {import('./options.js').PerHeadLike} a
   * @param {TensorLike | SdpaTensor} b
   * @param {TensorLike | SdpaTensor} c
   * @param {import('./linear/backward.js').LinearGiven} given `dOut` and, where the loss depends on the state, `dState`
   * @param {O} [options] those of the forward call without `returnState`
   * @returns {import('./linear/backward.js').SsdGradients<O>} float32, in the shapes of the inputs; those of b and c summed over the heads of
   *   a group; `dD` and `dState` where the call had `d` and `state`
   * @throws TypeError or RangeError with a `code`, before anything is changed
   */
  ssdBackward(x, dt, a, b, c, given, options) {
    return /** @type {any} */ (this.#methods.ssdBackward(this.#runtime, { x, dt, a, b, c }, given, options));
  }

  /**
   * Makers of masks for the option `blockMask`, and what can be done with masks: the package's `masks`.
   * @returns {typeof import('./masks/index.js').masks}
   */
  get masks() {
    return masks;
  }

  /**
   * A tensor of zeros that lives in wasm memory: passing it to a call copies nothing. Write it through `tensor.data`.
   * @param {readonly number[]} shape
   * @param {import('./tensor.js').DType} [dtype] 'float32' where absent
   * @returns {SdpaTensor}
   * @throws RangeError `out-of-memory`
   */
  tensor(shape, dtype = 'float32') {
    const sizes = readShape('tensor', shape);
    if (typeof dtype !== 'string' || !Object.hasOwn(dtypeBytes, dtype)) {
      const message = `dtype must be '${Object.keys(dtypeBytes).join("', '")}', got ${show(dtype)}`;
      throw typeof dtype === 'string' ? rangeError('option', message) : typeError('type', message);
    }
    product('tensor', sizes);
    return new SdpaTensor(this.#runtime, sizes, dtype);
  }

  /**
   * @returns {{ held: number, peak: number, wasm: number }} bytes of this thread's module: allocated now, their maximum since load,
   *   size of the wasm memory. Each worker has a memory of its own besides, and as much of it as maxMemory allows
   */
  memory() {
    return this.#runtime.memory();
  }

  /**
   * Lets go of the module and its memory, and ends the workers; calls that run reject with the error `disposed`. Calling it again does
   * nothing; calling anything else is an error, `disposed`.
   */
  dispose() {
    const error = rangeError('disposed', 'this sdpa instance has been disposed of while the call ran');
    this.#pool.close(error);
    this.#keepers?.close(error);
    this.#runtime.dispose();
  }

  /** dispose(), for `using`. */
  [disposeSymbol]() {
    this.dispose();
  }

  /**
   * A cache like those of createKVCache(), whose heads are kept by workers: each has some of them in a memory of its own, and computes
   * attention over them there, so that the caller's thread stays free and the heads are computed at the same time. The same bits, for any
   * number of workers; where there are none, everything is done on the caller's thread, with rests in between.
   *
   *     using cache = sdpa.createShardedKVCache({ batch: 1, numKvHeads: 8, headDim: 128 });
   *     await cache.append(key, value);
   *     const { out } = await cache.attend(query);
   *
   * @param {import('./kv-cache/cache-options.js').KVCacheOptions} options those of createKVCache()
   * @returns {import('./kv-cache/sharded-cache.js').ShardedKVCache} at once; its `ready` says when the memory has been taken, or why it
   *   could not be
   * @throws TypeError or RangeError with a `code`, before anything is started
   */
  createShardedKVCache(options) {
    const { createShardedKVCache, makeKeepers } = this.#methods; // the one throws where the other is missing
    this.#keepers ??= makeKeepers?.(this.#runtime, this.#program, this.#threads);
    return createShardedKVCache(this.#runtime, this.#keepers, this, options);
  }
}
