// Tensors: their types, shapes, and those that live in wasm memory.

import { disposeSymbol } from './dispose.js';
import { rangeError, show, typeError } from './errors.js';
import { dtypeBytes } from './frame.js';

/** A Float16Array, where the engine has one. @typedef {ArrayBufferView & { readonly length: number, readonly [Symbol.toStringTag]: 'Float16Array' }} Float16Data */

/** Sizes, the last dimension being the fastest. @typedef {{ readonly shape: ArrayLike<number> } | { readonly dims: ArrayLike<number> }} Shaped */

/**
 * A float tensor: `data`, and `shape` or `dims`. Uint16Array holds the raw 16 bits and needs `dtype` (or `type`), 'float16' or
 * 'bfloat16'. Only the elements of the view itself are read, and their number must be the product of the shape.
 * @typedef {{ readonly data: Float32Array | Uint16Array | Float16Data, readonly dtype?: string, readonly type?: string } & Shaped} TensorLike
 */

/**
 * A boolean tensor: non-zero (or true) = attend.
 * @typedef {{ readonly data: Uint8Array | readonly boolean[], readonly dtype?: string, readonly type?: string } & Shaped} MaskLike
 */

/** Storage types of a tensor in wasm memory. @typedef {'float32' | 'float16' | 'bfloat16' | 'bool'} DType */

/** An ordinary float32 tensor, as results are. @typedef {{ data: Float32Array, shape: number[], dtype: 'float32' }} Tensor */

// The getters of %TypedArray%.prototype read the array's internal slots: they know arrays of other realms and cannot be
// fooled by properties of the array's own.
const typedArray = /* @__PURE__ */ Object.getPrototypeOf(Uint8Array.prototype);

/** @param {string | symbol} name @returns {(this: unknown) => any} */
const getter = (name) => /** @type {(this: unknown) => any} */ (Object.getOwnPropertyDescriptor(typedArray, name)?.get);

const tagGetter = /* @__PURE__ */ getter(Symbol.toStringTag);
const lengthGetter = /* @__PURE__ */ getter('length');
const bufferGetter = /* @__PURE__ */ getter('buffer');
const offsetGetter = /* @__PURE__ */ getter('byteOffset');

/**
 * @param {unknown} value
 * @returns {string | undefined} 'Float32Array' and so on; undefined for anything but a typed array
 */
export const arrayKind = (value) => tagGetter.call(value);

/**
 * The elements that a typed array really has: a property of its own called `length` does not count.
 * @param {any} array a typed array, of any realm
 * @returns {number}
 */
export const arrayLength = (array) => lengthGetter.call(array);

/** @param {any} array a typed array @returns {ArrayBufferLike} */
export const arrayBuffer = (array) => bufferGetter.call(array);

/** @param {any} array a typed array @returns {number} bytes */
export const arrayOffset = (array) => offsetGetter.call(array);

/**
 * Where a tensor lies in the memory of `runtime`; 0 where it lies in another instance's.
 * @type {(tensor: SdpaTensor, runtime: import('./runtime.js').Runtime) => number}
 */
export let pointerIn;

/** A tensor that lives in wasm memory: a call reads and writes it where it lies. Made by `sdpa.tensor(shape, dtype)`. */
export class SdpaTensor {
  /** @type {import('./runtime.js').Runtime} */
  #runtime;
  /** @type {import('./runtime.js').Block | null} */
  #block;
  /** @type {number} */
  #count;

  static {
    pointerIn = (tensor, runtime) => (tensor.#runtime === runtime ? tensor.#live().pointer : 0);
  }

  /**
   * @param {import('./runtime.js').Runtime} runtime
   * @param {number[]} shape
   * @param {DType} dtype
   * @internal
   */
  constructor(runtime, shape, dtype) {
    this.#runtime = runtime;
    /** Sizes, the last dimension being the fastest. @type {readonly number[]} */
    this.shape = Object.freeze(shape);
    /** Storage type of the elements. @type {DType} */
    this.dtype = dtype;
    this.#count = product('tensor', shape);
    const bytes = Math.max(1, this.#count) * dtypeBytes[dtype];
    this.#block = { pointer: runtime.allocate(bytes, `a ${dtype} tensor of shape [${shape.join(', ')}]`), bytes };
    runtime.bytes.fill(0, this.#block.pointer, this.#block.pointer + bytes);
    runtime.watch(this, this.#block);
  }

  #live() {
    if (!this.#block || this.#runtime.disposed) {
      const owner = this.#block
        ? 'the sdpa instance of this tensor'
        : `this tensor of shape [${this.shape.join(', ')}]`;
      throw rangeError('disposed', `${owner} has been disposed of`);
    }
    return this.#block;
  }

  /**
   * The elements, as a view derived at each access: keep the tensor, not the view, because the view is empty once the memory has grown.
   * float32: Float32Array; float16 and bfloat16: Uint16Array of the raw bits; bool: Uint8Array.
   * @returns {any}
   */
  get data() {
    const { pointer } = this.#live();
    const { buffer } = this.#runtime;
    if (this.dtype === 'float32') return new Float32Array(buffer, pointer, this.#count);
    if (this.dtype === 'bool') return new Uint8Array(buffer, pointer, this.#count);
    return new Uint16Array(buffer, pointer, this.#count);
  }

  /** Whether dispose() has been called. */
  get disposed() {
    return this.#block === null || this.#runtime.disposed;
  }

  /** Frees the memory. Calling it again does nothing. */
  dispose() {
    if (!this.#block) return;
    this.#runtime.unwatch(this.#block);
    this.#runtime.release(this.#block.pointer, this.#block.bytes);
    this.#block = null;
  }

  /** dispose(), for `using`. */
  [disposeSymbol]() {
    this.dispose();
  }
}

/** Largest size beside one of 0: no data bounds it, and lists and loops are as long as heads and rows are many. */
const mostBesideNone = 2 ** 24;

/**
 * Number of elements of a shape that nobody loops over.
 * @param {string} name
 * @param {ArrayLike<number>} shape
 */
export function countElements(name, shape) {
  let count = 1;
  for (let i = 0; i < shape.length; i++) count *= shape[i];
  if (!(count <= Number.MAX_SAFE_INTEGER)) {
    throw rangeError('shape', `${name} shape [${Array.from(shape).join(', ')}] has more than 2^53 elements`);
  }
  return count;
}

/**
 * Number of elements.
 * @param {string} name
 * @param {ArrayLike<number>} shape
 */
export function product(name, shape) {
  const count = countElements(name, shape);
  if (count !== 0) return count;
  let most = 0;
  for (let i = 0; i < shape.length; i++) if (shape[i] > most) most = shape[i];
  if (most > mostBesideNone) {
    const sizes = Array.from(shape).join(', ');
    throw rangeError(
      'shape',
      `${name} shape [${sizes}] has no element, and then no size may be beyond ${mostBesideNone}`,
    );
  }
  return count;
}

/** More than any tensor has; keeps a stray array that was given for a shape from being read to its end. */
const mostDimensions = 32;

/**
 * A shape read once into an array of our own.
 * @param {string} name
 * @param {any} shape
 * @returns {number[]}
 */
export function readShape(name, shape) {
  const length = shape?.length;
  if (typeof shape !== 'object' || shape === null || typeof length !== 'number') {
    throw typeError('type', `${name} needs a shape, an array of sizes, got ${show(shape)}`);
  }
  if (length > mostDimensions) {
    throw rangeError('shape', `${name} shape has ${length} dimensions; at most ${mostDimensions} are read`);
  }
  /** @type {number[]} */
  const sizes = [];
  for (let i = 0; i < length; i++) {
    const size = shape[i];
    if (typeof size !== 'number') throw typeError('type', `${name} shape[${i}] must be a number, got ${show(size)}`);
    if (!Number.isSafeInteger(size) || size < 0) {
      throw rangeError('shape', `${name} shape[${i}] must be a whole number, 0 or more, got ${size}`);
    }
    sizes.push(size);
  }
  return sizes;
}
