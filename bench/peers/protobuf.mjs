/**
 * Writes protocol buffers, the little of the wire format that an ONNX model needs: variable-length integers, 32-bit floats
 * and length-delimited fields. A message is the concatenation of its fields.
 */

const WIRE_VARINT = 0;
const WIRE_LENGTH = 2;
const WIRE_32_BITS = 5;

const encoder = new TextEncoder();

/** @param {Uint8Array[]} parts @returns {Uint8Array} */
export function message(...parts) {
  const joined = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

/**
 * @param {number | bigint} value negative ones as their 64-bit two's complement, as the format has it
 * @returns {Uint8Array}
 */
export function varint(value) {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}

/** @param {number} number @param {number} wire */
const tag = (number, wire) => varint(number * 8 + wire);

/** @param {number} number of the field @param {number | bigint} value */
export const integerField = (number, value) => message(tag(number, WIRE_VARINT), varint(value));

/** @param {number} number of the field @param {number} value rounded to float32 */
export const floatField = (number, value) => message(tag(number, WIRE_32_BITS), littleEndian(4, 'setFloat32', value));

/** @param {number} number of the field @param {Uint8Array} content */
export const bytesField = (number, content) => message(tag(number, WIRE_LENGTH), varint(content.length), content);

/** @param {number} number of the field @param {string} text */
export const stringField = (number, text) => bytesField(number, encoder.encode(text));

/** @param {number} value @returns {Uint8Array} float32 as ONNX stores raw data */
export const rawFloat = (value) => littleEndian(4, 'setFloat32', value);

/** @param {number} value @returns {Uint8Array} int64 as ONNX stores raw data */
export const rawInt64 = (value) => littleEndian(8, 'setBigInt64', BigInt(value));

/**
 * @param {number} size
 * @param {'setFloat32' | 'setBigInt64'} setter
 * @param {any} value
 */
function littleEndian(size, setter, value) {
  const bytes = new Uint8Array(size);
  /** @type {any} */ (new DataView(bytes.buffer))[setter](0, value, true);
  return bytes;
}
