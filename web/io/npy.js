// The .npy format, versions 1.0, 2.0 and 3.0:
//   "\x93NUMPY", major, minor, header length (2 bytes; 4 from version 2 on), header (npy-header.js), the elements.
// Source: numpy/lib/format.py, "NPY format" in the NumPy manual.

import { failOption, failShape, failUnsupported } from './fail.js';
import { parseHeader } from './npy-header.js';
import {
  allocate,
  checkMaxBytes,
  checkOptionNames,
  decode,
  elementBytes,
  elementCount,
  encode,
  printShape,
  toBytes,
} from './tensors.js';

/** @import { FileDtype, FileTensor, WritableTensor } from './tensors.js' */

const kMagic = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];
/** A header of one plain array takes about a hundred bytes; anything far beyond that is not one. */
const kMaxHeaderBytes = 65536;
/** NumPy starts the elements at a multiple of this. */
const kAlignment = 64;

/** @type {Record<string, FileDtype>} type code and size of NumPy's array protocol, without the byte order */
const kDtypeOfCode = {
  f8: 'float64',
  f4: 'float32',
  f2: 'float16',
  i8: 'int64',
  i4: 'int32',
  i2: 'int16',
  i1: 'int8',
  u8: 'uint64',
  u4: 'uint32',
  u2: 'uint16',
  u1: 'uint8',
  b1: 'bool',
};

/**
 * Reads one .npy file. Arrays in Fortran order come out in C order; big-endian ones in the machine's order.
 *
 * `data` is a view of `bytes` where the machine can read the elements in place (C order, little-endian, aligned: NumPy's own files as a
 * rule), a copy otherwise. float16 comes as Uint16Array with dtype 'float16', bool as Uint8Array with dtype 'bool', 64-bit integers as
 * BigInt64Array or BigUint64Array.
 *
 * @param {Uint8Array | ArrayBuffer} bytes the whole file and nothing after it
 * @param {{ maxBytes?: number }} [options] maxBytes: largest size of the elements in bytes (default: no limit beyond the file itself)
 * @returns {FileTensor}
 * @throws {RangeError} an AttentionError: code 'option' for a damaged file, 'shape' for a shape that does not fit the bytes,
 *   'unsupported' for element types that are not numbers or booleans
 */
export function readNpy(bytes, options) {
  checkOptionNames(options, ['maxBytes'], 'readNpy');
  return parseNpy(toBytes(bytes, 'readNpy'), 'the .npy file', checkMaxBytes(options?.maxBytes, Infinity));
}

/**
 * @param {Uint8Array} bytes
 * @param {string} what how messages name the file
 * @param {number} maxBytes
 * @returns {FileTensor}
 */
export function parseNpy(bytes, what, maxBytes) {
  const { text, dataStart } = splitHeader(bytes, what);
  const header = parseHeader(text, what);
  for (const key of ['descr', 'fortran_order', 'shape']) {
    if (!header.has(key)) failOption(`${what} has no '${key}' in its .npy header`);
  }
  const { dtype, littleEndian } = parseDescr(header.get('descr'), what);
  const fortranOrder = header.get('fortran_order');
  if (typeof fortranOrder !== 'boolean') failOption(`${what} has fortran_order ${fortranOrder} in its .npy header`);
  const shape = header.get('shape');
  if (!Array.isArray(shape)) return failOption(`${what} has a shape that is not a tuple in its .npy header`);
  const size = elementBytes(dtype);
  const byteLength = elementCount(shape, size, what) * size;
  const present = bytes.length - dataStart;
  if (byteLength > maxBytes)
    failOption(`${what} holds ${byteLength} bytes of elements, more than maxBytes ${maxBytes}`);
  if (byteLength > present) {
    failShape(
      `${what} is cut short: shape [${printShape(shape)}] of ${dtype} takes ${byteLength} bytes, ${present} are there`,
    );
  }
  if (byteLength < present) {
    failShape(
      `${what} goes on after its array: shape [${printShape(shape)}] of ${dtype} takes ${byteLength} bytes, ${present} are there`,
    );
  }
  const data = decode(bytes.subarray(dataStart), dtype, littleEndian);
  const ordered = fortranOrder ? toCOrder(data, shape, what) : data;
  return /** @type {FileTensor} */ ({ data: ordered, shape, dtype });
}

/**
 * Writes one .npy file (version 1.0, little-endian, C order), as NumPy's own `save` lays it out.
 *
 * @param {WritableTensor} tensor
 * @returns {Uint8Array<ArrayBuffer>}
 * @throws {TypeError | RangeError} an AttentionError: code 'type' for data that is no typed array, 'shape' for a shape that does not fit it,
 *   'unsupported' for bfloat16, for which the format has no name
 */
export function writeNpy(tensor) {
  return formatNpy(tensor, 'writeNpy: the tensor');
}

/**
 * @param {unknown} tensor
 * @param {string} what how messages name it
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function formatNpy(tensor, what) {
  const { dtype, shape, bytes } = encode(tensor, what);
  const code = Object.keys(kDtypeOfCode).find((key) => kDtypeOfCode[key] === dtype);
  if (!code) return failUnsupported(`${what} is ${dtype}, which .npy cannot name; .safetensors can`);
  const descr = `${elementBytes(dtype) === 1 ? '|' : '<'}${code}`;
  const tuple = shape.length === 1 ? `${shape[0]},` : printShape(shape);
  const header = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${tuple}), }`;
  const fixed = kMagic.length + 4;
  const dataStart = Math.ceil((fixed + header.length + 1) / kAlignment) * kAlignment;
  const file = allocate(dataStart + bytes.length, what);
  file.set(kMagic);
  file.set([1, 0, (dataStart - fixed) & 255, (dataStart - fixed) >> 8], kMagic.length);
  file.set(new TextEncoder().encode(header.padEnd(dataStart - fixed - 1) + '\n'), fixed);
  file.set(bytes, dataStart);
  return file;
}

/**
 * @param {Uint8Array} bytes
 * @param {string} what
 * @returns {{ text: string, dataStart: number }}
 */
function splitHeader(bytes, what) {
  if (kMagic.some((byte, i) => bytes[i] !== byte)) {
    failOption(
      `${what} does not begin with the .npy signature; its first bytes are ${hex(bytes.subarray(0, 8)) || 'missing'}`,
    );
  }
  const [major, minor] = bytes.subarray(kMagic.length, kMagic.length + 2);
  const fixed = kMagic.length + (major === 1 ? 4 : 6);
  if (bytes.length < fixed) failOption(`${what} is cut short: ${bytes.length} bytes, less than a .npy header`);
  if (!(major >= 1 && major <= 3) || minor !== 0) {
    failUnsupported(`${what} has .npy version ${major}.${minor}; 1.0, 2.0 and 3.0 are read`);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const length = major === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  if (length > kMaxHeaderBytes)
    failOption(`${what} declares a .npy header of ${length} bytes; at most ${kMaxHeaderBytes} are read`);
  const dataStart = fixed + length;
  if (dataStart > bytes.length) {
    failOption(`${what} is cut short: its .npy header takes ${length} bytes, ${bytes.length - fixed} are there`);
  }
  // versions 1 and 2 are Latin-1, version 3 UTF-8; the names that differ belong to structured types, which are refused anyway
  return {
    text: new TextDecoder(major === 3 ? 'utf-8' : 'latin1').decode(bytes.subarray(fixed, dataStart)),
    dataStart,
  };
}

/**
 * @param {unknown} descr
 * @param {string} what
 * @returns {{ dtype: FileDtype, littleEndian: boolean }}
 */
function parseDescr(descr, what) {
  if (typeof descr !== 'string')
    return failUnsupported(`${what} holds a structured array; arrays of plain numbers or booleans are read`);
  const [, order, code] = /^([<>|=]?)(.*)$/s.exec(descr) ?? [];
  if (code.startsWith('O')) failUnsupported(`${what} holds pickled Python objects ('${descr}'), which are never read`);
  if (code === 'V2') {
    failUnsupported(
      `${what} holds raw 2-byte cells ('${descr}'), as NumPy writes bfloat16; save it as .safetensors, or as float32`,
    );
  }
  const dtype = Object.hasOwn(kDtypeOfCode, code) ? kDtypeOfCode[code] : undefined;
  if (!dtype)
    return failUnsupported(`${what} has element type '${descr}'; read are ${Object.keys(kDtypeOfCode).join(', ')}`);
  if (order === '' && elementBytes(dtype) > 1)
    return failOption(`${what} has element type '${descr}' without a byte order`);
  // '=' (the writer's own order) is never written to a file; the few tools that do so are little-endian
  return { dtype, littleEndian: order !== '>' };
}

/**
 * @template {FileTensor['data']} T
 * @param {T} source elements in Fortran order (first dimension fastest)
 * @param {number[]} shape
 * @param {string} what
 * @returns {T} the elements in C order
 */
function toCOrder(source, shape, what) {
  const rank = shape.length;
  if (rank < 2 || source.length === 0) return source;
  const bytes = allocate(source.byteLength, what);
  const array = /** @type {new (buffer: ArrayBuffer) => T} */ (source.constructor);
  const target = new array(bytes.buffer);
  const strides = shape.map((_, axis) => shape.slice(0, axis).reduce((product, size) => product * size, 1));
  const index = new Array(rank).fill(0);
  const last = rank - 1;
  let from = 0;
  for (let to = 0; to < target.length; to += shape[last]) {
    for (let i = 0; i < shape[last]; i++) target[to + i] = source[from + i * strides[last]];
    for (let axis = last - 1; axis >= 0; axis--) {
      from += strides[axis];
      if (++index[axis] < shape[axis]) break;
      from -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
  return target;
}

/**
 * @param {Uint8Array} bytes
 * @returns {string}
 */
function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(' ');
}
