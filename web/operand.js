// Inputs of a call: what callers hand over, read once, checked, and copied to its place.

import { rangeError, show, typeError } from './errors.js';
import { dtypeBytes } from './frame.js';
import {
  arrayBuffer,
  arrayKind,
  arrayLength,
  arrayOffset,
  pointerIn,
  product,
  readShape,
  SdpaTensor,
} from './tensor.js';

/** @typedef {import('./tensor.js').DType} DType */

/** One input of a call, checked. */
export class Operand {
  /**
   * @param {any} data what to copy in, or null where it lies in wasm memory
   * @param {DType} dtype
   * @param {number[]} shape
   * @param {number} count elements
   * @param {number} pointer where it lies in wasm memory; 0 where it has to be copied in
   * @param {SdpaTensor | null} [tensor] the resident tensor that it is
   */
  constructor(data, dtype, shape, count, pointer, tensor = null) {
    this.data = data;
    this.dtype = dtype;
    this.shape = shape;
    /** Dimensions that it was given with; `shape` of a mask or bias is padded. */
    this.rank = shape.length;
    this.count = count;
    this.bytes = count * dtypeBytes[dtype];
    this.pointer = pointer;
    this.tensor = tensor;
  }
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
      return new Operand(null, dtype, shape, product(name, shape), pointer, tensor);
    }
  }
  if (tensor instanceof Operand) return tensor; // of our own making: callers have none
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
  if (kind === 'Array') return new Operand(readBooleans(name, data, shape, count), dtype, shape, count, 0);
  if (arrayLength(data) !== count) throw wrongLength(name, data, shape, count);
  // A view of wasm memory itself (a tensor's `.data`) would be empty after growth: it is used where it lies.
  const pointer = count > 0 && arrayBuffer(data) === runtime.buffer ? arrayOffset(data) : 0;
  return new Operand(data, dtype, shape, count, pointer);
}

/**
 * Once more, after the last property of the call has been read: a getter of the caller's may have disposed of a tensor or
 * changed an array's length since it was checked. From here on no code of the caller's runs.
 * @param {import('./runtime.js').Runtime} runtime
 * @param {import('./options.js').AttentionCall} call
 */
export function settleAll(runtime, call) {
  settle('query', call.query, runtime);
  settle('key', call.key, runtime);
  settle('value', call.value, runtime);
  settle('mask', call.mask, runtime);
  settle('bias', call.bias, runtime);
}

/**
 * One operand of settleAll().
 * @param {string} name
 * @param {Operand | null} operand
 * @param {import('./runtime.js').Runtime} runtime
 */
export function settle(name, operand, runtime) {
  if (!operand) return;
  if (operand.tensor) operand.pointer = pointerIn(operand.tensor, runtime);
  else if (operand.data && arrayLength(operand.data) !== operand.count) {
    throw wrongLength(name, operand.data, operand.shape, operand.count);
  }
}

/**
 * @param {string} name
 * @param {any} data
 * @param {number[]} shape
 * @param {number} count
 */
function wrongLength(name, data, shape, count) {
  if (arrayLength(data) === 0 && isDetached(arrayBuffer(data))) {
    return typeError('type', `${name} data is empty because its buffer is detached: it has been transferred elsewhere`);
  }
  return wrongCount(name, arrayLength(data), shape, count);
}

/**
 * @param {string} name
 * @param {number} length
 * @param {number[]} shape
 * @param {number} count
 */
const wrongCount = (name, length, shape, count) =>
  rangeError('shape', `${name} data has ${length} elements but its shape [${shape.join(', ')}] needs ${count}`);

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
 * Reads a boolean[] once: the kernel gets what was checked.
 * @param {string} name
 * @param {unknown[]} data
 * @param {number[]} shape
 * @param {number} count
 */
function readBooleans(name, data, shape, count) {
  const { length } = data;
  if (length !== count) throw wrongCount(name, length, shape, count);
  const bytes = new Uint8Array(count);
  for (let i = 0; i < count; i++) {
    const element = data[i];
    if (typeof element !== 'boolean') {
      throw typeError('type', `${name} data[${i}] must be true or false, got ${show(element)}`);
    }
    bytes[i] = element ? 1 : 0;
  }
  return bytes;
}

/**
 * The memory of `runtime` as elements of a type: 16-bit floats as raw bits, booleans as bytes.
 * @param {import('./runtime.js').Runtime} runtime
 * @param {DType} dtype
 */
const memoryOf = (runtime, dtype) =>
  dtype === 'float32' ? runtime.floats : dtype === 'bool' ? runtime.bytes : runtime.halves;

/**
 * Copies an operand's elements, which lie outside of wasm memory.
 * @param {import('./runtime.js').Runtime} runtime
 * @param {Operand} operand
 * @param {number} pointer
 */
export function copyIn(runtime, operand, pointer) {
  memoryOf(runtime, operand.dtype).set(elementsOf(operand), pointer / dtypeBytes[operand.dtype]);
}

/**
 * The elements of an operand outside of wasm memory, of the type that memoryOf() has them in. Their number cannot change: another
 * thread may grow a shared buffer while it is copied.
 * @param {Operand} operand
 * @returns {any} a typed array
 */
export function elementsOf({ data, dtype, count }) {
  const buffer = /** @type {any} */ (arrayBuffer(data));
  if (dtype !== 'float32' && dtype !== 'bool' && arrayKind(data) !== 'Uint16Array') {
    return new Uint16Array(buffer, arrayOffset(data), count);
  }
  if (!buffer.growable && !buffer.resizable) return data;
  const Kind = arrayKinds[/** @type {keyof typeof arrayKinds} */ (arrayKind(data))];
  return new Kind(buffer, arrayOffset(data), count);
}

const arrayKinds = { Float32Array, Uint16Array, Uint8Array };

/**
 * An operand's elements wherever they lie, as elementsOf() has them: a view of our own, good until the next allocation.
 * @param {import('./runtime.js').Runtime} runtime
 * @param {Operand} operand
 * @returns {any} a typed array
 */
export function viewOf(runtime, { data, dtype, count, pointer }) {
  if (pointer !== 0) {
    const at = pointer / dtypeBytes[dtype];
    return memoryOf(runtime, dtype).subarray(at, at + count);
  }
  const Kind = dtype === 'float32' ? Float32Array : dtype === 'bool' ? Uint8Array : Uint16Array;
  if (count === 0) return new Kind(0); // whose buffer may have been transferred elsewhere
  return new Kind(/** @type {ArrayBuffer} */ (arrayBuffer(data)), arrayOffset(data), count);
}
