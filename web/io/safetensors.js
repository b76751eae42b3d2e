// The .safetensors format: header length (8 bytes, little-endian), header (JSON), the elements of all tensors.
//   { "name": { "dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24] }, …, "__metadata__": { "text": "text" } }
// Offsets count from the end of the header; the tensors cover the rest of the file without gap or overlap.
// Source: the format's description and its reference reader (github.com/huggingface/safetensors, README.md, "Format").

import { show } from '../errors.js';
import { failOption, failShape, failType, failUnsupported } from './fail.js';
import { findDuplicateKey } from './json-keys.js';
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

/** The limit of the reference reader. */
const kMaxHeaderBytes = 100_000_000;

/** @type {Record<string, FileDtype>} */
const kDtypeOfName = {
  F64: 'float64',
  F32: 'float32',
  F16: 'float16',
  BF16: 'bfloat16',
  I64: 'int64',
  I32: 'int32',
  I16: 'int16',
  I8: 'int8',
  U64: 'uint64',
  U32: 'uint32',
  U16: 'uint16',
  U8: 'uint8',
  BOOL: 'bool',
};

/**
 * Reads a .safetensors file.
 *
 * Each tensor's `data` is a view of `bytes` where it is aligned (files of the reference writer are), a copy otherwise. float16 and bfloat16
 * come as Uint16Array with their dtype, bool as Uint8Array with dtype 'bool', 64-bit integers as BigInt64Array or BigUint64Array.
 *
 * @param {Uint8Array | ArrayBuffer} bytes the whole file
 * @param {{ filter?: (name: string) => boolean, maxBytes?: number }} [options]
 *   filter: which tensors to take (default all); maxBytes: largest size of those taken, in bytes (default: no limit beyond the file itself)
 * @returns {Record<string, FileTensor>} by name, in the file's order; an object without prototype, so that no name is special
 * @throws {RangeError} an AttentionError: code 'option' for a damaged file, 'shape' for a shape that does not fit its offsets,
 *   'unsupported' for element types that no typed array holds
 */
export function readSafetensors(bytes, options) {
  checkOptionNames(options, ['filter', 'maxBytes'], 'readSafetensors');
  const maxBytes = checkMaxBytes(options?.maxBytes, Infinity);
  const file = toBytes(bytes, 'readSafetensors');
  const { header, dataStart } = splitHeader(file);
  const entries = Object.entries(header)
    .filter(([name]) => name !== '__metadata__')
    .map(([name, entry]) => parseEntry(name, entry));
  checkCoverage(entries, file.length - dataStart);

  /** @type {Record<string, FileTensor>} */
  const tensors = Object.create(null);
  let taken = 0;
  for (const { name, dtypeName, shape, begin, end } of entries) {
    if (options?.filter && !options.filter(name)) continue;
    const dtype = Object.hasOwn(kDtypeOfName, dtypeName) ? kDtypeOfName[dtypeName] : undefined;
    if (!dtype) {
      return failUnsupported(
        `tensor '${name}' has dtype ${dtypeName}; read are ${Object.keys(kDtypeOfName).join(', ')}`,
      );
    }
    const expected = elementCount(shape, elementBytes(dtype), `tensor '${name}'`) * elementBytes(dtype);
    if (expected !== end - begin) {
      failShape(
        `tensor '${name}': shape [${printShape(shape)}] of ${dtypeName} takes ${expected} bytes, data_offsets [${begin}, ${end}] hold ${end - begin}`,
      );
    }
    taken += expected;
    if (taken > maxBytes)
      failOption(
        `the tensors of the .safetensors file hold more than maxBytes ${maxBytes} bytes (at tensor '${name}')`,
      );
    const data = decode(file.subarray(dataStart + begin, dataStart + end), dtype, true);
    tensors[name] = /** @type {FileTensor} */ ({ data, shape, dtype });
  }
  return tensors;
}

/**
 * Writes a .safetensors file. Tensors with larger elements come first, so that each one is aligned; equal sizes are ordered by name.
 *
 * @param {Record<string, WritableTensor>} tensors by name
 * @param {{ metadata?: Record<string, string> }} [options] metadata: written as `__metadata__`
 * @returns {Uint8Array<ArrayBuffer>}
 * @throws {TypeError | RangeError} an AttentionError: code 'type' for data that is no typed array, 'shape' for a shape that does not fit it,
 *   'option' for the reserved name `__metadata__`
 */
export function writeSafetensors(tensors, options) {
  checkOptionNames(options, ['metadata'], 'writeSafetensors');
  if (typeof tensors !== 'object' || tensors === null)
    failType(`writeSafetensors takes tensors by name, but got ${show(tensors)}`);
  const encoded = Object.entries(tensors).map(([name, tensor]) => ({
    name,
    ...encode(tensor, `writeSafetensors: tensor '${name}'`),
  }));
  encoded.sort((a, b) => elementBytes(b.dtype) - elementBytes(a.dtype) || (a.name < b.name ? -1 : 1));

  // An array of texts, not an object: JavaScript would put names that look like numbers first and give '__proto__' a meaning.
  /** @type {string[]} */
  const members = [];
  if (options?.metadata !== undefined)
    members.push(`"__metadata__":${JSON.stringify(checkMetadata(options.metadata))}`);
  let total = 0;
  for (const { name, dtype, shape, bytes } of encoded) {
    if (name === '__metadata__') failOption("writeSafetensors: the name '__metadata__' is reserved by the format");
    const dtypeName = Object.keys(kDtypeOfName).find((key) => kDtypeOfName[key] === dtype);
    const data_offsets = [total, total + bytes.length];
    members.push(`${JSON.stringify(name)}:${JSON.stringify({ dtype: dtypeName, shape, data_offsets })}`);
    total += bytes.length;
  }
  const unpadded = new TextEncoder().encode(`{${members.join(',')}}`);
  const headerBytes = Math.ceil(unpadded.length / 8) * 8;
  if (headerBytes > kMaxHeaderBytes)
    failOption(`writeSafetensors: the header would take ${headerBytes} bytes; the format allows ${kMaxHeaderBytes}`);
  const file = allocate(8 + headerBytes + total, 'the .safetensors file');
  new DataView(file.buffer).setBigUint64(0, BigInt(headerBytes), true);
  file.fill(0x20, 8, 8 + headerBytes);
  file.set(unpadded, 8);
  let at = 8 + headerBytes;
  for (const { bytes } of encoded) {
    file.set(bytes, at);
    at += bytes.length;
  }
  return file;
}

/**
 * @param {Uint8Array} file
 * @returns {{ header: Record<string, unknown>, dataStart: number }}
 */
function splitHeader(file) {
  if (file.length < 8)
    failOption(`the .safetensors file is cut short: ${file.length} bytes, its header's length alone takes 8`);
  const length = new DataView(file.buffer, file.byteOffset).getBigUint64(0, true);
  if (length > kMaxHeaderBytes) {
    failOption(`the .safetensors file declares a header of ${length} bytes; at most ${kMaxHeaderBytes} are read`);
  }
  const dataStart = 8 + Number(length);
  if (dataStart > file.length) {
    failOption(`the .safetensors file is cut short: its header takes ${length} bytes, ${file.length - 8} are there`);
  }
  let text;
  let header;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(file.subarray(8, dataStart));
    header = JSON.parse(text);
  } catch (error) {
    return failOption(`the .safetensors file has a damaged header: ${/** @type {Error} */ (error).message}`);
  }
  if (!isRecord(header)) return failOption('the .safetensors file has a header that is not a JSON object');
  const duplicate = findDuplicateKey(text);
  if (duplicate !== undefined) failOption(`the .safetensors file has '${duplicate}' twice in its header`);
  if (Object.hasOwn(header, '__metadata__')) checkMetadata(header.__metadata__);
  return { header, dataStart };
}

/**
 * @param {string} name
 * @param {unknown} entry
 * @returns {{ name: string, dtypeName: string, shape: number[], begin: number, end: number }}
 */
function parseEntry(name, entry) {
  if (!isRecord(entry)) return failOption(`tensor '${name}' has no description in the .safetensors header`);
  const { dtype: dtypeName, shape, data_offsets: offsets } = entry;
  if (typeof dtypeName !== 'string') return failOption(`tensor '${name}' has no dtype in the .safetensors header`);
  if (!isIntegers(shape))
    return failShape(`tensor '${name}' has shape ${show(shape)}; it must be a list of integers from 0 to 2^53 - 1`);
  if (!isIntegers(offsets) || offsets.length !== 2 || offsets[0] > offsets[1]) {
    return failOption(
      `tensor '${name}' has data_offsets ${show(offsets)}; they must be [begin, end] with begin <= end`,
    );
  }
  return { name, dtypeName, shape, begin: offsets[0], end: offsets[1] };
}

/**
 * The tensors must cover the data exactly: bytes that two tensors share or that none owns are how files are made to mean two things.
 * @param {{ name: string, begin: number, end: number }[]} entries
 * @param {number} length bytes after the header
 */
function checkCoverage(entries, length) {
  let reached = 0;
  for (const { name, begin, end } of [...entries].sort((a, b) => a.begin - b.begin || a.end - b.end)) {
    if (end > length)
      failOption(`tensor '${name}' has data_offsets [${begin}, ${end}], but only ${length} bytes follow the header`);
    if (begin < reached)
      failOption(
        `tensor '${name}' has data_offsets [${begin}, ${end}] and overlaps the tensor before it, which ends at ${reached}`,
      );
    if (begin > reached)
      failOption(`bytes ${reached} to ${begin} of the .safetensors data belong to no tensor (the next is '${name}')`);
    reached = end;
  }
  if (reached < length) failOption(`bytes ${reached} to ${length} of the .safetensors data belong to no tensor`);
}

/**
 * @param {unknown} metadata
 * @returns {Record<string, string>}
 */
function checkMetadata(metadata) {
  if (!isRecord(metadata) || !Object.values(metadata).every((value) => typeof value === 'string')) {
    return failOption('__metadata__ of a .safetensors file must map names to strings');
  }
  return /** @type {Record<string, string>} */ (metadata);
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
function isRecord(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * @param {unknown} value
 * @returns {value is number[]}
 */
function isIntegers(value) {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 0);
}
