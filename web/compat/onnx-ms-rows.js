// Rows of heads where they lie in a tensor. The com.microsoft operators pack query, key and value in several ways; each is one
// stride per axis, so that a tensor is copied only where attention cannot take it as it is, and then once.
import { fromFloat32, toFloat32 } from './onnx-layout.js';

/**
 * Row (b, h, l) holds `size` elements from offset + b·strides[0] + h·strides[1] + l·strides[2] on.
 * @typedef {import('./onnx-inputs.js').FloatType} FloatType
 * @typedef {import('./onnx-inputs.js').FloatData} FloatData
 * @typedef {import('./onnx-layout.js').Plain} Plain
 * @typedef {object} HeadRows
 * @property {FloatData} data
 * @property {FloatType} dtype
 * @property {number} batch
 * @property {number} heads
 * @property {number} length
 * @property {number} size
 * @property {number} offset
 * @property {readonly [number, number, number]} strides
 */

/**
 * Rows of (B, L, width): head h of a row begins at offset + h·step.
 * @param {{ data: FloatData, dtype: FloatType }} tensor
 * @param {{ batch: number, length: number, heads: number, size: number }} sizes
 * @param {{ width?: number, offset?: number, step?: number }} [packing] absent: the heads and nothing else
 * @returns {HeadRows}
 */
export function rowsInLine({ data, dtype }, sizes, packing = {}) {
  const { length, heads, size } = sizes;
  const { width = heads * size, offset = 0, step = size } = packing;
  return { data, dtype, ...sizes, offset, strides: [length * width, step, width] };
}

/**
 * Rows of (B, H, L, D).
 * @param {{ data: FloatData, dtype: FloatType, shape: number[] }} tensor
 * @returns {HeadRows}
 */
export function rowsHeadsFirst({ data, dtype, shape }) {
  const [batch, heads, length, size] = shape;
  return { data, dtype, batch, heads, length, size, offset: 0, strides: [heads * length * size, length * size, size] };
}

/**
 * The rows as an operand of `sdpa.attention` in the given layout; copied only where they do not lie so.
 * @param {HeadRows} rows
 * @param {'bhld' | 'blhd'} layout
 * @returns {any}
 */
export function asOperand(rows, layout) {
  const { data, dtype, batch, heads, length, size, strides } = rows;
  const [shape, dense] = denseForm(rows, layout);
  // The stride of an axis of one is free.
  const lies = [batch, heads, length].every((extent, axis) => extent === 1 || strides[axis] === dense[axis]);
  if (lies && data.length === batch * heads * length * size) return { data, shape, dtype };
  const copy = like(data, batch * heads * length * size);
  copyRows(copy, 0, dense, rows);
  return { data: copy, shape, dtype };
}

/**
 * @param {{ batch: number, heads: number, length: number, size: number }} sizes
 * @param {'bhld' | 'blhd'} layout
 * @returns {[number[], [number, number, number]]} shape, and strides of batch, head and row
 */
function denseForm({ batch, heads, length, size }, layout) {
  return layout === 'bhld'
    ? [
        [batch, heads, length, size],
        [heads * length * size, length * size, size],
      ]
    : [
        [batch, length, heads, size],
        [length * heads * size, size, heads * size],
      ];
}

/**
 * Past rows and, behind them, new ones: (B, H, capacity, D), zeros beyond.
 * @param {HeadRows | undefined} past
 * @param {ArrayLike<number>} pastLengths rows of the past that come first, by batch
 * @param {HeadRows} fresh of the same type
 * @param {number} capacity at least the longest sum of both
 * @param {boolean} [whole] copies the rest of the past too, as of a buffer that is written into
 * @returns {Plain}
 */
export function joinRows(past, pastLengths, fresh, capacity, whole = false) {
  const { batch, heads, size, dtype } = fresh;
  const data = like(fresh.data, batch * heads * capacity * size);
  const strides = /** @type {[number, number, number]} */ ([heads * capacity * size, capacity * size, size]);
  for (let b = 0; b < batch; ++b) {
    const kept = pastLengths[b];
    if (past) copyRows(data, 0, strides, past, b, whole ? past.length : kept);
    copyRows(data, kept * size, strides, fresh, b);
  }
  return { data, shape: [batch, heads, capacity, size], dtype };
}

/**
 * Copies rows, of all batches or of one.
 * @param {FloatData} out
 * @param {number} at where row (0, 0, 0) goes
 * @param {readonly [number, number, number]} strides in `out`
 * @param {HeadRows} rows
 * @param {number} [only] this batch
 * @param {number} [length] rows of each head
 */
function copyRows(out, at, strides, rows, only, length = rows.length) {
  const { data, heads, size, offset, strides: from } = rows;
  const together = from[2] === size && strides[2] === size;
  for (let b = only ?? 0; b < (only === undefined ? rows.batch : only + 1); ++b) {
    for (let h = 0; h < heads; ++h) {
      let source = offset + b * from[0] + h * from[1];
      let target = at + b * strides[0] + h * strides[1];
      if (together) {
        out.set(data.subarray(source, source + length * size), target);
        continue;
      }
      for (let l = 0; l < length; ++l, source += from[2], target += strides[2]) {
        for (let d = 0; d < size; ++d) out[target + d] = data[source + d];
      }
    }
  }
}

/**
 * The rows as float32 in a new array, (B, L, H, D), to be changed in place.
 * @param {HeadRows} rows
 * @returns {HeadRows & { data: Float32Array }}
 */
export function floatRows(rows) {
  const { data } = asOperand(rows, 'blhd');
  const floats = toFloat32({ data, dtype: rows.dtype });
  const own = floats === rows.data ? new Float32Array(floats) : floats;
  const { batch, length, heads, size } = rows;
  const inLine = rowsInLine({ data: own, dtype: 'float32' }, { batch, length, heads, size });
  return { ...inLine, data: own };
}

/**
 * The rows in a storage type; 16-bit types round to nearest, ties to even.
 * @param {HeadRows} rows of that type or float32
 * @param {FloatType} dtype
 * @returns {HeadRows}
 */
export function inType(rows, dtype) {
  if (rows.dtype === dtype) return rows;
  return { ...rows, dtype, data: fromFloat32(/** @type {Float32Array} */ (rows.data), [], dtype).data };
}

/**
 * @param {FloatData} data
 * @param {number} length
 * @returns {any} a new array of the same kind
 */
function like(data, length) {
  return new /** @type {any} */ (data.constructor)(length);
}
