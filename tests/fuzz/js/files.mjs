// What every answer of a file reader must be, and tensors to write.

import { AttentionError } from 'sdpa';

/** Bytes that readers are allowed to unpack. */
export const maxBytes = 2 ** 20;

/** @type {Record<string, any>} */
export const arrays = {
  float64: Float64Array,
  float32: Float32Array,
  float16: Uint16Array,
  bfloat16: Uint16Array,
  int64: BigInt64Array,
  int32: Int32Array,
  int16: Int16Array,
  int8: Int8Array,
  uint64: BigUint64Array,
  uint32: Uint32Array,
  uint16: Uint16Array,
  uint8: Uint8Array,
  bool: Uint8Array,
};

const codes = ['shape', 'option', 'unsupported'];

/** @param {any} tensor */
function checkTensor({ data, shape, dtype }) {
  if (!(data instanceof arrays[dtype])) throw new Error(`${dtype} came as ${data}`);
  const count = shape.reduce((/** @type {number} */ a, /** @type {number} */ b) => a * b, 1);
  if (data.length !== count) throw new Error(`${data.length} elements for shape [${shape}]`);
  if (data.byteLength > maxBytes) throw new Error(`${data.byteLength} bytes, more than maxBytes`);
}

/**
 * Reads; the answer is tensors that fit their shapes, or an error of the package.
 * @param {() => any} read gives a tensor, or tensors by name
 * @returns {{ outcome: string, tensors: Record<string, any> }}
 */
export function answerOf(read) {
  let answer;
  try {
    answer = read();
  } catch (error) {
    if (!AttentionError.is(error) || !(error instanceof RangeError) || !codes.includes(error.code)) throw error;
    if (error.message.length > 5000)
      throw new Error(`a message of ${error.message.length} characters`, { cause: error });
    return { outcome: error.code, tensors: {} };
  }
  const tensors = ArrayBuffer.isView(answer.data) ? { '': answer } : answer;
  let total = 0;
  for (const tensor of Object.values(tensors)) {
    checkTensor(tensor);
    total += tensor.data.byteLength;
  }
  if (total > maxBytes) throw new Error(`${total} bytes together, more than maxBytes`);
  return { outcome: 'read', tensors };
}

/**
 * @param {import('./draw.mjs').Draw} draw
 * @param {string[]} dtypes
 */
export function drawTensor(draw, dtypes) {
  const shape = Array.from({ length: draw.below(4) }, () => draw.below(5));
  const dtype = draw.pick(dtypes);
  const count = shape.reduce((a, b) => a * b, 1);
  const bytes = draw.bytes(count * arrays[dtype].BYTES_PER_ELEMENT);
  if (dtype === 'bool') bytes.forEach((byte, i) => (bytes[i] = byte & 1));
  return { data: new arrays[dtype](bytes.buffer), shape, dtype };
}

/**
 * Written and read again, tensors must be as they were, bit by bit.
 * @param {any} got @param {any} want
 */
export function checkSame(got, want) {
  const bytes = (/** @type {any} */ { data }) => Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if (got.dtype !== want.dtype || `${got.shape}` !== `${want.shape}` || !bytes(got).equals(bytes(want))) {
    throw new Error(`${want.dtype} [${want.shape}] came back as ${got.dtype} [${got.shape}]`);
  }
}

/** CRC-32 from its definition, bit by bit. @param {Uint8Array} bytes */
export function crc32(bytes) {
  let value = 0xffffffff;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  }
  return ~value >>> 0;
}
