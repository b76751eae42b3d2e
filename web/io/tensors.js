// Element types, shapes and raw bytes: what the three file formats share.
//
// A tensor is { data, shape, dtype }. float16 and bfloat16 are always a Uint16Array of their bit patterns (Float16Array is missing in
// many engines), bool is a Uint8Array, 64-bit integers are BigInt64Array and BigUint64Array; every other dtype is the typed array of its name.

import { show } from '../errors.js';
import { failMemory, failOption, failShape, failType, failUnknownOption } from './fail.js';

/**
 * @typedef {object} DataOfDtype which array holds which dtype
 * @property {Float64Array} float64
 * @property {Float32Array} float32
 * @property {Uint16Array} float16
 * @property {Uint16Array} bfloat16
 * @property {BigInt64Array} int64
 * @property {Int32Array} int32
 * @property {Int16Array} int16
 * @property {Int8Array} int8
 * @property {BigUint64Array} uint64
 * @property {Uint32Array} uint32
 * @property {Uint16Array} uint16
 * @property {Uint8Array} uint8
 * @property {Uint8Array} bool
 *
 * @typedef {keyof DataOfDtype} FileDtype types of elements in files
 * @typedef {DataOfDtype[FileDtype]} FileData
 * @typedef {{ [D in FileDtype]: { data: DataOfDtype[D], shape: number[], dtype: D } }[FileDtype]} FileTensor
 *   What the readers return: `data` in C order (last dimension fastest), as many elements as the product of `shape`. Looking at
 *   `dtype` tells TypeScript which array `data` is.
 * @typedef {{ data: ArrayLike<unknown> | ArrayBufferView, shape?: ArrayLike<number>, dims?: ArrayLike<number>, dtype?: string }} WritableTensor
 *   What the writers take: a typed array (or an array of booleans) with its `shape` or `dims`. `dtype` is needed where the
 *   array does not tell: 'float16' or 'bfloat16' for a Uint16Array, 'bool' for a Uint8Array.
 */

/** @type {Record<FileDtype, { bytes: number, array: new (buffer: ArrayBufferLike, offset: number, length: number) => FileData }>} */
const kDtypes = {
  float64: { bytes: 8, array: Float64Array },
  float32: { bytes: 4, array: Float32Array },
  float16: { bytes: 2, array: Uint16Array },
  bfloat16: { bytes: 2, array: Uint16Array },
  int64: { bytes: 8, array: BigInt64Array },
  int32: { bytes: 4, array: Int32Array },
  int16: { bytes: 2, array: Int16Array },
  int8: { bytes: 1, array: Int8Array },
  uint64: { bytes: 8, array: BigUint64Array },
  uint32: { bytes: 4, array: Uint32Array },
  uint16: { bytes: 2, array: Uint16Array },
  uint8: { bytes: 1, array: Uint8Array },
  bool: { bytes: 1, array: Uint8Array },
};

/** More dimensions than any of the formats' own libraries accept. */
const kMaxRank = 64;

/** dtypes that a typed array may be declared as besides its own name. */
/** @type {Record<string, readonly string[]>} */
const kDeclarable = { Uint16Array: ['float16', 'bfloat16'], Uint8Array: ['bool'] };

/**
 * @param {FileDtype} dtype
 * @returns {number} size of one element in bytes
 */
export function elementBytes(dtype) {
  return kDtypes[dtype].bytes;
}

/**
 * @param {unknown} value Uint8Array (a Node Buffer is one) or ArrayBuffer, of this or another realm
 * @param {string} what how messages name it
 * @returns {Uint8Array} a view of the same bytes
 */
export function toBytes(value, what) {
  if (ArrayBuffer.isView(value) && Object.prototype.toString.call(value) === '[object Uint8Array]') {
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  }
  const tag = Object.prototype.toString.call(value);
  if (tag === '[object ArrayBuffer]' || tag === '[object SharedArrayBuffer]') {
    return new Uint8Array(/** @type {ArrayBuffer} */ (value));
  }
  return failType(`${what} takes the bytes of a file as Uint8Array or ArrayBuffer, but got ${show(value)}`);
}

/**
 * Product of a shape, checked: each dimension a non-negative integer, the whole countable as bytes.
 * @param {ArrayLike<number>} shape
 * @param {number} bytesPerElement
 * @param {string} what how messages name the tensor
 * @returns {number} elements
 */
export function elementCount(shape, bytesPerElement, what) {
  if (shape.length > kMaxRank) failShape(`${what} has ${shape.length} dimensions; at most ${kMaxRank} are read`);
  let count = 1;
  let empty = false;
  for (let i = 0; i < shape.length; i++) {
    const size = shape[i];
    if (!Number.isSafeInteger(size) || size < 0) {
      failShape(`${what} has shape [${printShape(shape)}]; each dimension must be an integer from 0 to 2^53 - 1`);
    }
    if (size === 0) empty = true;
    count *= size;
  }
  if (empty) return 0;
  if (!Number.isSafeInteger(count * bytesPerElement)) {
    failShape(`${what} has shape [${printShape(shape)}], more elements than can be addressed`);
  }
  return count;
}

/**
 * @param {ArrayLike<number>} shape
 * @returns {string}
 */
export function printShape(shape) {
  return Array.from(shape).join(', ');
}

/**
 * The elements at the start of `bytes` as a typed array: a view of the same memory where the machine can read them in place,
 * otherwise a copy (unaligned start, or the other byte order).
 * @param {Uint8Array} bytes exactly count elements
 * @param {FileDtype} dtype
 * @param {boolean} littleEndian byte order of the file
 * @returns {FileData}
 */
export function decode(bytes, dtype, littleEndian) {
  const { bytes: size, array } = kDtypes[dtype];
  const swap = size > 1 && littleEndian !== hostIsLittleEndian();
  let source = bytes;
  if (swap || bytes.byteOffset % size !== 0) source = allocate(bytes.byteLength, `a tensor of dtype ${dtype}`, bytes);
  if (swap) reverseBytes(source, size);
  return new array(source.buffer, source.byteOffset, source.byteLength / size);
}

/**
 * @param {number} length bytes
 * @param {string} what how the message names it
 * @param {Uint8Array} [content] copied in
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function allocate(length, what, content) {
  try {
    const bytes = new Uint8Array(length);
    if (content) bytes.set(content);
    return bytes;
  } catch {
    return failMemory(`${what} needs ${length} bytes, which this engine refuses to allocate`, length);
  }
}

/**
 * @param {unknown} tensor a WritableTensor
 * @param {string} what how messages name it
 * @returns {{ dtype: FileDtype, shape: number[], bytes: Uint8Array }} its little-endian bytes, a view of the tensor's memory where possible
 */
export function encode(tensor, what) {
  const { data, shape: givenShape, dims, dtype: declared } = /** @type {WritableTensor} */ (tensor ?? {});
  const shape = givenShape ?? dims;
  if (!data || typeof shape?.length !== 'number') {
    return failType(`${what} must be a tensor { data, shape }, but got ${show(tensor)}`);
  }
  const { dtype, array } = dtypeOf(data, declared, what);
  const size = elementBytes(dtype);
  const count = elementCount(shape, size, what);
  if (count * size !== array.byteLength) {
    failShape(
      `${what} has shape [${printShape(shape)}] = ${count} elements, but its data has ${array.byteLength / size}`,
    );
  }
  let bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  if (size > 1 && !hostIsLittleEndian()) {
    bytes = allocate(bytes.byteLength, what, bytes);
    reverseBytes(bytes, size);
  }
  return { dtype, shape: Array.from(shape), bytes };
}

/**
 * @param {ArrayLike<unknown> | ArrayBufferView} data
 * @param {string | undefined} declared
 * @param {string} what
 * @returns {{ dtype: FileDtype, array: ArrayBufferView }}
 */
function dtypeOf(data, declared, what) {
  if (Array.isArray(data)) {
    if (!data.every((x) => typeof x === 'boolean') || (declared !== undefined && declared !== 'bool')) {
      failType(`${what}: data must be a typed array (only booleans may come as a plain array)`);
    }
    return { dtype: 'bool', array: Uint8Array.from(data, Number) };
  }
  const kind = Object.prototype.toString.call(data).slice(8, -1);
  if (!ArrayBuffer.isView(data) || !kind.endsWith('Array')) {
    return failType(`${what}: data must be a typed array, but is ${show(data)}`);
  }
  // BigInt64Array -> int64, Uint8ClampedArray -> uint8, Float16Array -> float16
  const own = kind.replace('Big', '').replace('Clamped', '').replace('Array', '').toLowerCase();
  const dtype = declared ?? own;
  if (!Object.hasOwn(kDtypes, dtype) || (dtype !== own && !kDeclarable[kind]?.includes(dtype))) {
    return failType(`${what}: dtype '${dtype}' does not fit its data, a ${kind}`);
  }
  return { dtype: /** @type {FileDtype} */ (dtype), array: data };
}

/**
 * @param {unknown} maxBytes the option as given
 * @param {number} fallback
 * @returns {number}
 */
export function checkMaxBytes(maxBytes, fallback) {
  if (maxBytes === undefined) return fallback;
  if (typeof maxBytes !== 'number') return failType(`maxBytes must be a number, but is ${show(maxBytes)}`);
  if (!(maxBytes >= 0)) return failOption(`maxBytes must be 0 or more, but is ${maxBytes}`);
  return maxBytes;
}

/**
 * @param {object | undefined} options as given by the caller
 * @param {readonly string[]} known
 * @param {string} what the function's name
 */
export function checkOptionNames(options, known, what) {
  if (options === undefined) return;
  if (typeof options !== 'object' || options === null)
    failType(`${what}: options must be an object, but is ${show(options)}`);
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) failUnknownOption(name, known, what);
  }
}

/**
 * @param {Uint8Array} bytes whole elements, changed in place
 * @param {number} size bytes per element
 */
function reverseBytes(bytes, size) {
  for (let at = 0; at < bytes.length; at += size) {
    for (let low = at, high = at + size - 1; low < high; low++, high--) {
      const byte = bytes[low];
      bytes[low] = bytes[high];
      bytes[high] = byte;
    }
  }
}

function hostIsLittleEndian() {
  return new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;
}
