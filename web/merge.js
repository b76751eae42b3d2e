// merge(): results over parts of the keys, put together to the result over all of them.

import { outOfMemory, rangeError, show, typeError } from './errors.js';
import { layoutCodes } from './frame.js';
import { readOperand, settle, viewOf } from './operand.js';
import { oneOf } from './option-values.js';
import { rowsOf } from './row-shape.js';

/**
 * @typedef {import('./operand.js').Operand} Operand
 * @typedef {import('./runtime.js').Runtime} Runtime
 * @typedef {import('./tensor.js').Tensor} Tensor
 */

/** One part: what attention() gives over some of the keys with returnLse. @typedef {{ readonly out: import('./tensor.js').TensorLike | import('./tensor.js').SdpaTensor, readonly lse: import('./tensor.js').TensorLike | import('./tensor.js').SdpaTensor }} MergePart */

/** Sizes of the results. `head` and `row`: how far apart the rows of `out` are in it, in rows. @typedef {{ batch: number, heads: number, rows: number, width: number, head: number, row: number }} Sizes */

/**
 * With m = max Lₖ over the parts, aₖ = e^(Lₖ − m) and Z = Σ aₖ: O = Σ aₖ·Oₖ / Z and L = m + ln Z, in float64, rounded once. A part with
 * Lₖ = -Infinity changes nothing, whatever its Oₖ.
 * @param {Runtime} runtime
 * @param {unknown} parts
 * @param {unknown} options
 * @returns {{ out: Tensor, lse: Tensor }}
 */
export function merge(runtime, parts, options) {
  void runtime.exports; // throws once the instance is disposed of
  const blhd = readLayout(options) === layoutCodes.blhd;
  if (!Array.isArray(parts)) throw typeError('type', `merge needs an array of { out, lse }, got ${show(parts)}`);
  const read = Array.from(parts, (part, k) => readPart(runtime, part, k));
  if (read.length === 0) throw rangeError('shape', 'merge needs at least one part');
  const [{ out, lse }] = read;
  for (const [k, part] of read.entries()) {
    same(`merge part ${k} out`, part.out.shape, 'that of part 0', out.shape);
    same(`merge part ${k} lse`, part.lse.shape, 'that of part 0', lse.shape);
  }
  const sizes = readSizes(out.shape, lse.shape, blhd);
  for (const [k, part] of read.entries()) {
    settle(`merge part ${k} out`, part.out, runtime);
    settle(`merge part ${k} lse`, part.lse, runtime);
  }
  const outs = read.map((part) => viewOf(runtime, part.out));
  const lses = read.map((part) => viewOf(runtime, part.lse));
  const merged = newArrays(out.count, lse.count);
  mergeRows(outs, lses, sizes, merged);
  return {
    out: { data: merged.out, shape: [...out.shape], dtype: 'float32' },
    lse: { data: merged.lse, shape: [...lse.shape], dtype: 'float32' },
  };
}

/**
 * @param {number} out elements
 * @param {number} lse
 */
function newArrays(out, lse) {
  try {
    return { out: new Float32Array(out), lse: new Float32Array(lse) };
  } catch (cause) {
    throw outOfMemory((out + lse) * 4, 0, 'the result of merge', cause);
  }
}

/** @param {any} options */
function readLayout(options) {
  if (options === undefined) return layoutCodes.bhld;
  if (typeof options !== 'object' || options === null) {
    throw typeError('type', `merge's options must be an object, got ${show(options)}`);
  }
  for (const name in options) {
    if (name !== 'layout') throw typeError('unknown-option', `merge has no option '${name}'; it has layout`);
  }
  const { layout } = options;
  return layout === undefined ? layoutCodes.bhld : oneOf('layout', layout, layoutCodes);
}

/**
 * @param {Runtime} runtime
 * @param {any} part
 * @param {number} k
 * @returns {{ out: Operand, lse: Operand }}
 */
function readPart(runtime, part, k) {
  if (typeof part !== 'object' || part === null) {
    throw typeError('type', `merge part ${k} must be { out, lse }, got ${show(part)}`);
  }
  const { out, lse } = part;
  if (lse === undefined) throw typeError('type', `merge part ${k} has no lse: compute it with returnLse: true`);
  return {
    out: readFloats(runtime, `merge part ${k} out`, out),
    lse: readFloats(runtime, `merge part ${k} lse`, lse),
  };
}

/**
 * @param {Runtime} runtime
 * @param {string} name
 * @param {unknown} tensor
 */
function readFloats(runtime, name, tensor) {
  const operand = readOperand(name, tensor, false, runtime);
  if (operand.dtype === 'float32') return operand;
  throw typeError('type', `${name} must be float32, as attention() gives it, got ${operand.dtype}`);
}

/**
 * @param {string} name
 * @param {readonly number[]} shape
 * @param {string} what
 * @param {readonly number[]} want
 */
function same(name, shape, what, want) {
  if (shape.length === want.length && shape.every((size, i) => size === want[i])) return;
  throw rangeError('shape', `${name} has shape [${shape.join(', ')}] but ${what} is [${want.join(', ')}]`);
}

/**
 * @param {readonly number[]} out
 * @param {readonly number[]} lse
 * @param {boolean} blhd
 * @returns {Sizes}
 */
function readSizes(out, lse, blhd) {
  const rank = out.length;
  if (rank < 2 || rank > 4) {
    throw rangeError('shape', `merge part 0 out must have 2, 3 or 4 dimensions, got ${rank}: ${show(out)}`);
  }
  const swapped = blhd && rank > 2;
  const { batch, heads, length: rows, size: width } = rowsOf(out, blhd);
  const want = [batch, heads, rows].slice(4 - rank);
  same('merge part 0 lse', lse, `with layout '${blhd ? 'blhd' : 'bhld'}' that of its out`, want);
  return { batch, heads, rows, width, head: swapped ? 1 : rows, row: swapped ? heads : 1 };
}

/**
 * @param {Float32Array[]} outs
 * @param {Float32Array[]} lses
 * @param {Sizes} sizes
 * @param {{ out: Float32Array, lse: Float32Array }} merged
 */
function mergeRows(outs, lses, { batch, heads, rows, width, head, row }, merged) {
  const sums = new Float64Array(width);
  for (let at = 0; at < batch * heads * rows; at++) {
    const b = Math.floor(at / (heads * rows));
    const first = (b * heads * rows + (Math.floor(at / rows) % heads) * head + (at % rows) * row) * width;
    let top = -Infinity;
    for (const lse of lses) top = Math.max(top, lse[at]); // NaN stays
    merged.lse[at] = top;
    if (top === -Infinity) continue;
    let total = 0;
    sums.fill(0);
    for (let k = 0; k < outs.length; k++) {
      if (lses[k][at] === -Infinity) continue;
      const weight = Math.exp(lses[k][at] - top);
      total += weight;
      for (let d = 0; d < width; d++) sums[d] += weight * outs[k][first + d];
    }
    for (let d = 0; d < width; d++) merged.out[first + d] = sums[d] / total;
    merged.lse[at] = top + Math.log(total);
  }
}
