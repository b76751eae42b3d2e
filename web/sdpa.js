// A loaded instance: the object that load() resolves to.

import { attention } from './attention.js';
import { disposeSymbol } from './dispose.js';
import { rangeError, show, typeError } from './errors.js';
import { dtypeBytes } from './frame.js';
import { product, readShape, SdpaTensor } from './tensor.js';
import { version } from './version.js';

/**
 * @typedef {import('./tensor.js').TensorLike} TensorLike
 * @typedef {import('./options.js').AttentionOptions} AttentionOptions
 */

/** One wasm module with its memory. Made by load(); independent of every other. */
export class Sdpa {
  /** @type {import('./runtime.js').Runtime} */
  #runtime;

  /**
   * @param {import('./runtime.js').Runtime} runtime
   * @internal
   */
  constructor(runtime) {
    this.#runtime = runtime;
    /** The build in use. */
    this.variant = runtime.variant;
    /** Workers in use; 0 = everything runs on the caller's thread. */
    this.threads = 0;
    /** The package's version. */
    this.version = version;
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
   * @returns {{ held: number, peak: number, wasm: number }} bytes: allocated now, their maximum since load, size of the
   *   wasm memory
   */
  memory() {
    return this.#runtime.memory();
  }

  /** Lets go of the module and its memory. Calling it again does nothing; calling anything else is an error, `disposed`. */
  dispose() {
    this.#runtime.dispose();
  }

  /** dispose(), for `using`. */
  [disposeSymbol]() {
    this.dispose();
  }
}
