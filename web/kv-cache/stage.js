// What append() is given, turned into the cache's storage type before anything of the cache is touched.

import { rangeError } from '../errors.js';
import { dtypeBytes } from '../frame.js';
import { fromBfloat16Bits, fromFloat16Bits, toFloat16Bits } from '../half.js';
import { viewOf } from '../operand.js';
import { quantizeRow } from './quantize.js';

/**
 * @typedef {import('../operand.js').Operand} Operand
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('./cache-options.js').CacheSpec} CacheSpec
 */

/** Rows of `dim` elements in the storage type, in the order in which the caller has them. */
export class Staged {
  /** Raw elements, or null where they lie in wasm memory and need no change. @type {any} */
  elements = null;
  /** Index of the first element, in `elements` or in wasm memory as elements of the type. */
  origin = 0;
  /** int8: the scale of each row. @type {Float32Array | null} */
  scales = null;

  /**
   * @param {number} heads
   * @param {number} tokens
   * @param {boolean} blhd whether heads lie inside tokens
   */
  constructor(heads, tokens, blhd) {
    /** Rows from one batch row, head, token to the next. */
    this.batchRows = heads * tokens;
    this.headRows = blhd ? 1 : tokens;
    this.tokenRows = blhd ? heads : 1;
  }

  /** @param {number} b @param {number} head @param {number} token */
  rowAt(b, head, token) {
    return b * this.batchRows + head * this.headRows + token * this.tokenRows;
  }
}

/**
 * The elements of an operand as float32, which every storage type of inputs fits into; a view where they are that.
 * @param {Runtime} runtime
 * @param {Operand} operand
 * @returns {Float32Array}
 */
export function widened(runtime, operand) {
  const view = viewOf(runtime, operand);
  if (operand.dtype === 'float32') return /** @type {Float32Array} */ (view);
  const bits = /** @type {Uint16Array} */ (view);
  return operand.dtype === 'float16' ? fromFloat16Bits(bits) : fromBfloat16Bits(bits);
}

/**
 * @param {Runtime} runtime
 * @param {'key' | 'value'} name
 * @param {Operand} operand (batch, heads, tokens, dim) in `spec`'s sizes, or with heads inside tokens
 * @param {CacheSpec} spec
 * @param {number} tokens
 * @param {boolean} blhd
 * @param {Int32Array} counts tokens of each batch row that count
 * @param {Int32Array} starts position of the first token of each batch row
 * @returns {Staged}
 * @throws RangeError `option` for an int8 cache and a number that is not finite
 */
export function stage(runtime, name, operand, spec, tokens, blhd, counts, starts) {
  const { numKvHeads: heads, headDim, headDimV, dtype } = spec;
  const dim = name === 'key' ? headDim : headDimV;
  const rope = name === 'key' ? spec.rope : null;
  const staged = new Staged(heads, tokens, blhd);
  if (operand.dtype === dtype && !rope) {
    if (operand.pointer !== 0) staged.origin = operand.pointer / dtypeBytes[dtype];
    else staged.elements = viewOf(runtime, operand);
    return staged;
  }
  let values = widened(runtime, operand);
  if (rope) {
    values = values.slice();
    for (let b = 0; b < counts.length; b++) {
      for (let t = 0; t < counts[b]; t++) {
        for (let head = 0; head < heads; head++) rope.rotate(values, staged.rowAt(b, head, t) * dim, starts[b] + t);
      }
    }
  }
  if (dtype === 'float32') staged.elements = values;
  else if (dtype === 'float16') staged.elements = toFloat16Bits(values);
  else quantize(staged, name, values, spec, dim, counts);
  return staged;
}

/**
 * @param {Staged} staged receives the elements and the scales
 * @param {string} name
 * @param {Float32Array} values
 * @param {CacheSpec} spec
 * @param {number} dim
 * @param {Int32Array} counts
 */
function quantize(staged, name, values, { numKvHeads: heads, firstHead }, dim, counts) {
  const elements = new Int8Array(values.length);
  const scales = new Float32Array(values.length / dim);
  for (let b = 0; b < counts.length; b++) {
    for (let head = 0; head < heads; head++) {
      for (let t = 0; t < counts[b]; t++) {
        const row = staged.rowAt(b, head, t);
        const scale = quantizeRow(values, row * dim, dim, elements);
        if (Number.isNaN(scale)) throw notFinite(name, values, row * dim, [b, firstHead + head, t]);
        scales[row] = scale;
      }
    }
  }
  staged.elements = new Uint8Array(elements.buffer);
  staged.scales = scales;
}

/**
 * @param {string} name
 * @param {Float32Array} values
 * @param {number} at start of the row
 * @param {number[]} place batch row, head, token
 */
function notFinite(name, values, at, [b, head, token]) {
  let d = 0;
  while (Number.isFinite(values[at + d])) d++;
  return rangeError(
    'option',
    `an int8 cache cannot hold NaN or Infinity: ${name} is ${values[at + d]} at batch row ${b}, head ${head}, token ${token}, element ${d}`,
  );
}
