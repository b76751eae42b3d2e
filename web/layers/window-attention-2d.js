// windowAttention2d(): attention within the windows of an image (Liu et al. 2021, "Swin Transformer", and 2022, "Swin Transformer V2").
// The kernel reads the tokens of a window where they lie in the image, so that none is moved.

import { runInWorkspace } from '../block.js';
import { field } from '../frame.js';
import { copyIn, Operand } from '../operand.js';
import { copyOut, emptyResult, receive, result } from '../output.js';
import { product } from '../tensor.js';
import { lseShape } from '../validate.js';
import { writeFrame } from '../write-frame.js';
import { Scratch } from './scratch.js';
import { expandBias } from './window-bias.js';
import { readWindowCall } from './window-call.js';
import { normalizedInput } from './window-cosine.js';

/**
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('../tensor.js').SdpaTensor} SdpaTensor
 * @typedef {import('../tensor.js').Tensor} Tensor
 * @typedef {import('./window-call.js').WindowAttention2dOptions} WindowAttention2dOptions
 * @typedef {import('./window-call.js').WindowCall} WindowCall
 * @typedef {import('./window-grid.js').WindowClass} WindowClass
 */

/**
 * What windowAttention2d() gives.
 * @template {Pick<WindowAttention2dOptions, 'out' | 'returnLse'>} [O={}]
 * @typedef {{ out: O extends { out: SdpaTensor } ? SdpaTensor : Tensor, lse: O extends { returnLse: true } ? Tensor : Tensor | undefined }} WindowAttention2dResult
 */

/**
 * @param {Runtime} runtime
 * @param {unknown} query
 * @param {unknown} key
 * @param {unknown} value
 * @param {unknown} options
 * @returns {{ out: any, lse?: Tensor }}
 */
export function windowAttention2d(runtime, query, key, value, options) {
  void runtime.exports; // throws once the instance is disposed of
  const read = readWindowCall(runtime, query, key, value, options);
  const { call, shape, out, classes } = read;
  const count = product('out', shape);
  if (count === 0) return emptyResult(runtime, call, shape, count, out);
  const scratch = new Scratch(runtime);
  try {
    const memory = takeMemory(runtime, read, scratch);
    for (const size of classes) attend(runtime, read, size, memory);
    const lse = call.returnLse
      ? copyOut(runtime, memory.lse, product('lse', lseShape(call)), lseShape(call))
      : undefined;
    return result(receive(runtime, out, memory.out, count, shape), lse, undefined);
  } finally {
    scratch.release();
  }
}

/**
 * Where everything lies: pointers.
 * @typedef {object} Memory
 * @property {Operand} query in wasm memory, as are the next two
 * @property {Operand} key
 * @property {Operand} value
 * @property {number} out
 * @property {number} lse 0 = not wanted
 * @property {number} bias room for that of the largest windows; 0 = none
 * @property {number} origins room for those of the most windows
 */

/**
 * Takes all memory but the workspace, and fills in the inputs.
 * @param {Runtime} runtime
 * @param {WindowCall} read
 * @param {Scratch} scratch
 * @returns {Memory}
 */
function takeMemory(runtime, read, scratch) {
  const { call, shape, out, classes, table, factors } = read;
  const largest = Math.max(...classes.map(({ height, width }) => height * width));
  const most = Math.max(...classes.map(({ origins }) => origins.length));
  const memory = {
    out: out.pointer || scratch.take(shape),
    lse: call.returnLse ? scratch.take(lseShape(call)) : 0,
    bias: table ? scratch.take([call.numHeads, largest, largest]) : 0,
    origins: scratch.take([most]),
  };
  const placed = (/** @type {'query' | 'key' | 'value'} */ name) => {
    const operand = call[name];
    const { dtype, shape: of, count, bytes } = operand;
    if (operand.pointer !== 0) return operand;
    const pointer = scratch.take([Math.ceil(bytes / 4)]);
    copyIn(runtime, operand, pointer);
    return new Operand(null, dtype, of, count, pointer);
  };
  if (!factors) return { ...memory, query: placed('query'), key: placed('key'), value: placed('value') };
  const query = normalizedInput(runtime, read, 'query', scratch);
  return { ...memory, query, key: normalizedInput(runtime, read, 'key', scratch), value: placed('value') };
}

/**
 * All windows of one size.
 * @param {Runtime} runtime
 * @param {WindowCall} read
 * @param {WindowClass} size
 * @param {Memory} memory
 */
function attend(runtime, { call, table, image }, size, memory) {
  const { height, width, origins } = size;
  const { query, key, value } = memory;
  /** @type {Operand | null} */
  let bias = null;
  if (table) {
    const shape = [1, call.numHeads, height * width, height * width];
    bias = new Operand(null, 'float32', shape, product('relativeBias', shape), memory.bias);
    const at = memory.bias / 4;
    expandBias(table, call.numHeads, image.windowSize, size, runtime.floats.subarray(at, at + bias.count));
  }
  runtime.ints.set(origins, memory.origins / 4);
  writeFrame(runtime, Object.assign(Object.create(call), { query, key, value, bias }), 0);
  const frame = runtime.doubles;
  const f = runtime.frame / 8;
  frame[f + field.query] = query.pointer;
  frame[f + field.key] = key.pointer;
  frame[f + field.value] = value.pointer;
  frame[f + field.out] = memory.out;
  frame[f + field.lse] = memory.lse;
  frame[f + field.scores] = 0;
  frame[f + field.mask] = 0;
  frame[f + field.bias] = bias ? bias.pointer : 0;
  frame[f + field.window_origins] = memory.origins;
  frame[f + field.num_windows] = origins.length;
  frame[f + field.image_width] = image.width;
  frame[f + field.window_height] = height;
  frame[f + field.window_width] = width;
  runInWorkspace(runtime, 'windowAttention');
}
