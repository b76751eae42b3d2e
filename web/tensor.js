// Tensors at the border: what callers hand over, read once and checked; and tensors that live in wasm memory.

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

/** @typedef {'float32' | 'float16' | 'bfloat16' | 'bool'} DType */

/** An ordinary float32 tensor, as results are. @typedef {{ data: Float32Array, shape: number[], dtype: 'float32' }} Tensor */

// %TypedArray%.prototype[Symbol.toStringTag] reads the array's internal type: it knows arrays of other realms and cannot be fooled.
const tagGetter = /** @type {(this: unknown) => string | undefined} */ (
  /* @__PURE__ */ Object.getOwnPropertyDescriptor(
    /* @__PURE__ */ Object.getPrototypeOf(Uint8Array.prototype),
    Symbol.toStringTag,
  )?.get
);

/**
 * @param {unknown} value
 * @returns {string | undefined} 'Float32Array' and so on; undefined for anything but a typed array
 */
export const arrayKind = (value) => tagGetter.call(value);

/** One input of a call, checked. */
export class Operand {
  /**
   * @param {any} data what to copy in, or null where it lies in wasm memory
   * @param {DType} dtype
   * @param {number[]} shape
   * @param {number} count elements
   * @param {number} pointer where it lies in wasm memory; 0 where it has to be copied in
   */
  constructor(data, dtype, shape, count, pointer) {
    this.data = data;
    this.dtype = dtype;
    this.shape = shape;
    this.count = count;
    this.bytes = count * dtypeBytes[dtype];
    this.pointer = pointer;
  }
}

/** @type {(tensor: SdpaTensor, runtime: import('./runtime.js').Runtime) => number} */
let pointerIn;

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

/**
 * Number of elements.
 * @param {string} name
 * @param {ArrayLike<number>} shape
 */
export function product(name, shape) {
  let count = 1;
  for (let i = 0; i < shape.length; i++) {
    if (shape[i] === 0) return 0;
    count *= shape[i];
  }
  if (!(count <= Number.MAX_SAFE_INTEGER)) {
    throw rangeError('shape', `${name} shape [${Array.from(shape).join(', ')}] has more than 2^53 elements`);
  }
  return count;
}

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

/**
 * @param {string} name
 * @param {string} kind of the typed array
 * @param {unknown} declared the tensor's `dtype` or `type`
 * @returns {DType}
 */
function floatDtype(name, kind, declared) {
  if (kind === 'Float32Array' && (declared === undefined || declared === 'float32')) return 'float32';
  if (kind === 'Float16Array' && (declared === undefined || declared === 'float16')) return 'float16';
  if (kind === 'Uint16Array') {
    if (declared === 'float16' || declared === 'bfloat16') return declared;
    const got = declared === undefined ? 'none' : show(declared);
    throw typeError('type', `${name} is a Uint16Array and needs dtype 'float16' or 'bfloat16', got ${got}`);
  }
  if (kind === 'Float32Array' || kind === 'Float16Array') {
    throw typeError('type', `${name} has dtype ${show(declared)} but its data is a ${kind}`);
  }
  const hint = name === 'bias' && kind === 'Uint8Array' ? "; booleans go into the option 'mask'" : '';
  throw typeError(
    'type',
    `${name} data must be a Float32Array, Float16Array or Uint16Array, got ${show2(kind)}${hint}`,
  );
}

/** @param {string} kind */
const show2 = (kind) => (kind === 'Array' ? 'an array' : `a ${kind}`);

/**
 * @param {string} name
 * @param {string} kind of the array
 * @param {unknown} declared the tensor's `dtype` or `type`
 * @returns {DType}
 */
function boolDtype(name, kind, declared) {
  if (
    (kind === 'Uint8Array' || kind === 'Array') &&
    (declared === undefined || declared === 'bool' || declared === 'uint8')
  ) {
    return 'bool';
  }
  const got = kind === 'Uint8Array' || kind === 'Array' ? `dtype ${show(declared)}` : show2(kind);
  throw typeError(
    'type',
    `${name} must be boolean, a Uint8Array or boolean[] with non-zero = attend, got ${got}; numbers to add to the scores go into the option 'bias'`,
  );
}

/**
 * Reads one tensor of a call: each property once, everything checked, nothing allocated in wasm memory.
 * @param {string} name how messages call it
 * @param {any} tensor
 * @param {boolean} boolean whether it is a mask
 * @param {import('./runtime.js').Runtime} runtime
 * @returns {Operand}
 */
export function readOperand(name, tensor, boolean, runtime) {
  if (tensor instanceof SdpaTensor) {
    const pointer = pointerIn(tensor, runtime);
    if (pointer !== 0) {
      const { dtype } = tensor;
      if ((dtype === 'bool') !== boolean)
        boolean ? boolDtype(name, `${dtype} tensor`, dtype) : floatDtype(name, 'Uint8Array', dtype);
      const shape = /** @type {number[]} */ (tensor.shape);
      return new Operand(null, dtype, shape, product(name, shape), pointer);
    }
  }
  if (typeof tensor !== 'object' || tensor === null || arrayKind(tensor) !== undefined || Array.isArray(tensor)) {
    throw typeError('type', `${name} must be a tensor { data, shape }, got ${show(tensor)}`);
  }
  const { data } = tensor;
  const shape = readShape(name, tensor.shape ?? tensor.dims);
  const declared = tensor.dtype ?? tensor.type;
  const kind = arrayKind(data) ?? (Array.isArray(data) ? 'Array' : undefined);
  if (kind === undefined) throw typeError('type', `${name} data must be a typed array, got ${show(data)}`);
  const dtype = boolean ? boolDtype(name, kind, declared) : floatDtype(name, kind, declared);
  const count = product(name, shape);
  if (data.length !== count) throw wrongLength(name, data, shape, count);
  if (kind === 'Array') checkBooleans(name, data);
  // A view of wasm memory itself (a tensor's `.data`) would be empty after growth: it is used where it lies.
  const pointer = kind !== 'Array' && count > 0 && data.buffer === runtime.buffer ? data.byteOffset : 0;
  return new Operand(data, dtype, shape, count, pointer);
}

/**
 * @param {string} name
 * @param {any} data
 * @param {number[]} shape
 * @param {number} count
 */
function wrongLength(name, data, shape, count) {
  if (data.length === 0 && isDetached(data.buffer)) {
    return typeError('type', `${name} data is empty because its buffer is detached: it has been transferred elsewhere`);
  }
  return rangeError(
    'shape',
    `${name} data has ${data.length} elements but its shape [${shape.join(', ')}] needs ${count}`,
  );
}

/** @param {any} buffer */
function isDetached(buffer) {
  if (!buffer) return false;
  try {
    new Uint8Array(buffer);
    return false;
  } catch {
    return true;
  }
}

/**
 * @param {string} name
 * @param {unknown[]} data
 */
function checkBooleans(name, data) {
  for (let i = 0; i < data.length; i++) {
    if (typeof data[i] !== 'boolean') {
      throw typeError('type', `${name} data[${i}] must be true or false, got ${show(data[i])}`);
    }
  }
}

/**
 * Copies an operand's elements to its place.
 * @param {import('./runtime.js').Runtime} runtime
 * @param {Operand} operand
 * @param {number} pointer
 */
export function copyIn(runtime, operand, pointer) {
  const { data, dtype, count } = operand;
  if (dtype === 'float32') runtime.floats.set(data, pointer / 4);
  else if (dtype === 'bool') runtime.bytes.set(data, pointer);
  else if (arrayKind(data) === 'Uint16Array') runtime.halves.set(data, pointer / 2);
  else runtime.halves.set(new Uint16Array(data.buffer, data.byteOffset, count), pointer / 2);
}
