// Moves rows between ONNX's layouts, and turns results into tensors of the inputs' types.
import { fromBfloat16Bits, fromFloat16Bits, toBfloat16Bits, toFloat16Bits } from '../half.js';

/**
 * @typedef {import('./onnx-inputs.js').FloatInput} FloatInput
 * @typedef {import('./onnx-inputs.js').FloatType} FloatType
 * @typedef {import('./onnx-inputs.js').FloatData} FloatData
 * @typedef {{ data: FloatData, shape: number[], dtype: FloatType }} Plain a tensor, 16-bit types by their bits
 */

/**
 * A new tensor (B, H, L, D) of a 3-D (B, L, H*D) or 4-D input.
 * @param {FloatInput} input
 * @param {number} heads
 * @returns {Plain}
 */
export function headsFirst(input, heads) {
  return concatenate(undefined, input, heads);
}

/**
 * The past and the new keys (or values) of each head, one behind the other: a new tensor (B, H, P + S, D).
 * @param {FloatInput | undefined} past (B, H, P, D), or none
 * @param {FloatInput} fresh (B, H, S, D) or (B, S, H*D)
 * @param {number} heads
 * @returns {Plain}
 */
export function concatenate(past, fresh, heads) {
  const flat = fresh.shape.length === 3;
  const batch = fresh.shape[0];
  const added = fresh.shape[flat ? 1 : 2];
  const size = flat ? fresh.shape[2] / heads : fresh.shape[3];
  const before = past ? past.shape[2] : 0;
  const total = before + added;
  const data = like(fresh.data, batch * heads * total * size);
  for (let b = 0; b < batch; ++b) {
    for (let h = 0; h < heads; ++h) {
      const head = b * heads + h;
      let at = head * total * size;
      if (past) data.set(past.data.subarray(head * before * size, (head + 1) * before * size), at);
      at += before * size;
      if (!flat) {
        data.set(fresh.data.subarray(head * added * size, (head + 1) * added * size), at);
        continue;
      }
      for (let s = 0; s < added; ++s) {
        const from = ((b * added + s) * heads + h) * size;
        data.set(fresh.data.subarray(from, from + size), at + s * size);
      }
    }
  }
  return { data, shape: [batch, heads, total, size], dtype: fresh.dtype };
}

/**
 * (B, H, L, D) to (B, L, H, D).
 * @param {Float32Array} data
 * @param {number[]} shape
 */
export function headsLast(data, [batch, heads, length, size]) {
  const out = new Float32Array(data.length);
  for (let b = 0; b < batch; ++b) {
    for (let h = 0; h < heads; ++h) {
      for (let i = 0; i < length; ++i) {
        const from = ((b * heads + h) * length + i) * size;
        out.set(data.subarray(from, from + size), ((b * length + i) * heads + h) * size);
      }
    }
  }
  return out;
}

/**
 * A float32 result in the given type; 16-bit types round to nearest, ties to even.
 * @param {Float32Array} data
 * @param {number[]} shape
 * @param {FloatType} dtype
 * @returns {Plain}
 */
export function fromFloat32(data, shape, dtype) {
  if (dtype === 'float32') return { data, shape, dtype };
  return { data: dtype === 'float16' ? toFloat16Bits(data) : toBfloat16Bits(data), shape, dtype };
}

/**
 * Elements of a float tensor as float32: the same array where they are.
 * @param {{ data: FloatData, dtype: FloatType }} tensor
 * @returns {Float32Array}
 */
export function toFloat32({ data, dtype }) {
  if (dtype === 'float32') return /** @type {Float32Array} */ (data);
  const bits = /** @type {Uint16Array} */ (data);
  return dtype === 'float16' ? fromFloat16Bits(bits) : fromBfloat16Bits(bits);
}

/**
 * The tensor as the caller gets it: a Float16Array over the same bits where the caller's own was one.
 * @param {Plain} tensor
 * @param {boolean} asFloat16Array
 * @returns {any}
 */
export function outputOf(tensor, asFloat16Array) {
  if (!asFloat16Array) return tensor;
  const Float16Array = /** @type {any} */ (globalThis).Float16Array;
  return { ...tensor, data: new Float16Array(tensor.data.buffer, tensor.data.byteOffset, tensor.data.length) };
}

/**
 * @param {FloatData} data
 * @param {number} length
 * @returns {any} a new array of the same kind
 */
function like(data, length) {
  return new /** @type {any} */ (data.constructor)(length);
}
