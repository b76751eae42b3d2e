// Results of a call: where they go, and how they get there.

import { outOfMemory, rangeError, show, typeError } from './errors.js';
import { readOperand } from './operand.js';
import { arrayBuffer, arrayKind, arrayLength, pointerIn, product, SdpaTensor } from './tensor.js';
import { lseShape, scoresShape } from './validate.js';

/**
 * @typedef {import('./options.js').AttentionCall} AttentionCall
 * @typedef {import('./operand.js').Operand} Operand
 * @typedef {import('./tensor.js').Tensor} Tensor
 * @typedef {import('./runtime.js').Runtime} Runtime
 */

/** Where the result goes: an array of the caller's, a tensor in wasm memory, or (both empty) a new array. */
export class Out {
  /**
   * @param {Float32Array | null} array
   * @param {SdpaTensor | null} tensor
   * @param {number} pointer
   */
  constructor(array, tensor, pointer) {
    this.array = array;
    this.tensor = tensor;
    this.pointer = pointer;
  }
}

/** Where the first element of a result goes. @typedef {{ data: Float32Array, at: number }} Place `at`: its index */

/**
 * Where a result lies now: wasm memory may have grown since, and the caller's buffer gone elsewhere.
 * @param {Runtime} runtime
 * @param {Out} out
 * @returns {Place | null} null where it is to be a new array
 */
export function placeOf(runtime, { array, tensor }) {
  if (tensor) return { data: runtime.floats, at: pointerIn(tensor, runtime) / 4 };
  if (array?.length === 0) throw typeError('type', "out's buffer has been transferred elsewhere during the call");
  return array && { data: array, at: 0 };
}

const newArray = /* @__PURE__ */ new Out(null, null, 0);

/**
 * @param {Runtime} runtime
 * @param {AttentionCall} call
 * @param {number[]} shape
 * @param {number} count
 * @returns {Out}
 */
export function readOut(runtime, call, shape, count) {
  const { out } = call;
  if (out === undefined) return newArray;
  if (arrayKind(out) === 'Float32Array') {
    if (arrayLength(out) !== count) {
      throw rangeError('shape', `out has ${arrayLength(out)} elements but the result ${show(shape)} has ${count}`);
    }
    if (arrayBuffer(out) === runtime.buffer) {
      throw rangeError('option', 'out is a view of wasm memory: pass the tensor itself, not its data');
    }
    return new Out(out, null, 0);
  }
  if (!(out instanceof SdpaTensor)) {
    throw typeError('type', `out must be a Float32Array or a tensor made by sdpa.tensor(), got ${show(out)}`);
  }
  const operand = readOperand('out', out, false, runtime);
  if (operand.pointer === 0 || operand.data) {
    throw rangeError('option', 'out is a tensor of another sdpa instance');
  }
  if (operand.dtype !== 'float32') throw typeError('type', `out must be a float32 tensor, got ${operand.dtype}`);
  if (operand.shape.length !== shape.length || operand.shape.some((size, i) => size !== shape[i])) {
    throw rangeError('shape', `out shape is ${show(out.shape)} but the result's shape is ${show(shape)}`);
  }
  checkOverlap(operand, 'query', call.query);
  checkOverlap(operand, 'key', call.key);
  checkOverlap(operand, 'value', call.value);
  checkOverlap(operand, 'mask', call.mask);
  checkOverlap(operand, 'bias', call.bias);
  return new Out(null, out, operand.pointer);
}

/**
 * @param {Operand} out
 * @param {string} name
 * @param {Operand | null} input
 */
function checkOverlap(out, name, input) {
  if (!input || input.pointer === 0) return;
  if (input.pointer < out.pointer + out.bytes && out.pointer < input.pointer + input.bytes) {
    throw rangeError('option', `out overlaps ${name} in wasm memory: the result needs memory of its own`);
  }
}

/**
 * @param {Runtime} runtime
 * @param {number} pointer
 * @param {number} count
 * @param {number[]} shape
 * @returns {Tensor}
 */
export function copyOut(runtime, pointer, count, shape) {
  try {
    return { data: runtime.floats.slice(pointer / 4, pointer / 4 + count), shape, dtype: 'float32' };
  } catch (cause) {
    throw outOfMemory(count * 4, 0, `a result of shape [${shape.join(', ')}] outside wasm memory`, cause);
  }
}

/**
 * @param {Runtime} runtime
 * @param {Out} out
 * @param {number} pointer
 * @param {number} count
 * @param {number[]} shape
 * @returns {Tensor | SdpaTensor}
 */
export function receive(runtime, out, pointer, count, shape) {
  if (out.tensor) return out.tensor;
  if (!out.array) return copyOut(runtime, pointer, count, shape);
  out.array.set(runtime.floats.subarray(pointer / 4, pointer / 4 + count));
  return { data: out.array, shape, dtype: 'float32' };
}

/**
 * No key or no element: rows of zeros, lse -Infinity or that of the sink, as for every row that may attend to nothing.
 * @param {Runtime} runtime
 * @param {AttentionCall} call
 * @param {number[]} shape
 * @param {number} count
 * @param {Out} out
 */
export function emptyResult(runtime, call, shape, count, out) {
  let data = out.array;
  if (out.tensor) runtime.floats.fill(0, out.pointer / 4, out.pointer / 4 + count);
  else if (data) data.fill(0);
  else data = filled(shape, count, 0);
  /** @type {Tensor | SdpaTensor} */
  const first = out.tensor ?? { data: /** @type {Float32Array} */ (data), shape, dtype: 'float32' };
  const lse = call.returnLse ? emptyTensor(lseShape(call), -Infinity) : undefined;
  if (lse && call.sinks) sinksAlone(call, call.sinks, lse.data);
  const scores = call.scores ? emptyTensor(scoresShape(call), 0) : undefined;
  return result(first, lse, scores);
}

/**
 * @param {AttentionCall} call
 * @param {import('./option-arrays.js').Numbers<Float32Array>} sinks
 * @param {Float32Array} lse (B, Hq, L)
 */
function sinksAlone({ seqlenQ }, { data }, lse) {
  // One row of heads serves every batch row.
  for (let i = 0; i < lse.length; i++) lse[i] = data[Math.floor(i / seqlenQ) % data.length];
}

/**
 * @param {number[]} shape
 * @param {number} value
 * @returns {Tensor}
 */
function emptyTensor(shape, value) {
  return { data: filled(shape, product('result', shape), value), shape, dtype: 'float32' };
}

/**
 * @param {number[]} shape
 * @param {number} count
 * @param {number} value
 */
function filled(shape, count, value) {
  try {
    return new Float32Array(count).fill(value);
  } catch (cause) {
    throw outOfMemory(count * 4, 0, `a result of shape [${shape.join(', ')}]`, cause);
  }
}

/**
 * @param {Tensor | SdpaTensor} out
 * @param {Tensor | undefined} lse
 * @param {Tensor | undefined} scores
 */
export function result(out, lse, scores) {
  /** @type {{ out: Tensor | SdpaTensor, lse?: Tensor, scores?: Tensor }} */
  const all = { out };
  if (lse) all.lse = lse;
  if (scores) all.scores = scores;
  return all;
}
