// windowAttention2d(): attention within the windows of an image (Liu et al. 2021, "Swin Transformer", and 2022, "Swin Transformer V2").
// Windows of one size are the batch of a call of attention(). They are gathered a few at a time, so that what is gathered stays in the
// second-level cache and memory does not grow with the image.

import { compute } from '../attention.js';
import { copyIn, Operand } from '../operand.js';
import { emptyResult, Out, receive, result } from '../output.js';
import { product } from '../tensor.js';
import { lseShape } from '../validate.js';
import { place } from './packed-weights.js';
import { Scratch } from './scratch.js';
import { expandBias } from './window-bias.js';
import { callOfWindows, headsInside, readWindowCall, tokenLayouts, windowsShape } from './window-call.js';
import { copyWindows, normalize } from './window-rows.js';

/**
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('../tensor.js').SdpaTensor} SdpaTensor
 * @typedef {import('../tensor.js').Tensor} Tensor
 * @typedef {import('./window-call.js').WindowAttention2dOptions} WindowAttention2dOptions
 * @typedef {import('./window-call.js').WindowCall} WindowCall
 * @typedef {import('./window-grid.js').WindowClass} WindowClass
 * @typedef {import('./window-rows.js').TokenLayout} TokenLayout
 */

/**
 * @template {Pick<WindowAttention2dOptions, 'out' | 'returnLse'>} [O={}]
 * @typedef {{ out: O extends { out: SdpaTensor } ? SdpaTensor : Tensor, lse: O extends { returnLse: true } ? Tensor : Tensor | undefined }} WindowAttention2dResult
 */

/** Most bytes of windows that are gathered at once: half of a second-level cache of 2 MiB. */
const chunkBytes = 2 ** 20;

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
    const target = out.pointer || scratch.take(shape);
    const lse = call.returnLse ? new Float32Array(product('lse', lseShape(call))) : null;
    const places = placeInputs(runtime, read, scratch);
    const bias = read.table ? takeBias(runtime, read, scratch) : 0;
    const isWhole = classes.length === 1 && classes[0].origins.length === 1;
    if (isWhole && !read.factors) attendWhole(runtime, read, places, bias, target, lse);
    else {
      const buffers = takeBuffers(read, places, scratch);
      for (const size of classes) attendClass(runtime, read, size, { places, buffers, bias, target, lse });
    }
    const received = receive(runtime, out, target, count, shape);
    return result(received, lse ? { data: lse, shape: lseShape(call), dtype: 'float32' } : undefined, undefined);
  } finally {
    scratch.release();
  }
}

/** Where an input lies. @typedef {{ pointer: number, dtype: import('../tensor.js').DType }} Placed */

/** The inputs of attention(), as their names. */
const inputs = /** @type {const} */ (['query', 'key', 'value']);

/**
 * Places in wasm memory of the inputs, of float32 where rows will be divided by their norm.
 * @param {Runtime} runtime
 * @param {WindowCall} read
 * @param {Scratch} scratch
 * @returns {Record<typeof inputs[number], Placed>}
 */
function placeInputs(runtime, { call, factors }, scratch) {
  /** @type {any} */
  const places = {};
  for (const name of inputs) {
    const operand = call[name];
    const { dtype, bytes } = operand;
    if (factors && name !== 'value') {
      const room = operand.pointer !== 0 && dtype === 'float32' ? 0 : scratch.take(operand.shape);
      places[name] = { pointer: place(runtime, operand, room), dtype: 'float32' };
      continue;
    }
    const pointer = operand.pointer || scratch.take([Math.ceil(bytes / 4)]);
    if (operand.pointer === 0) copyIn(runtime, operand, pointer);
    places[name] = { pointer, dtype };
  }
  return places;
}

/**
 * Room for the bias of the largest windows.
 * @param {Runtime} runtime
 * @param {WindowCall} read
 * @param {Scratch} scratch
 */
function takeBias(runtime, { call, classes }, scratch) {
  const most = Math.max(...classes.map(({ height, width }) => height * width));
  return scratch.take([call.numHeads, most, most]);
}

/**
 * @param {Runtime} runtime
 * @param {WindowCall} read
 * @param {WindowClass} size
 * @param {number} pointer room for it
 */
function biasOf(runtime, { call, table, image }, size, pointer) {
  if (!table) return null;
  const tokens = size.height * size.width;
  const shape = [1, call.numHeads, tokens, tokens];
  const count = product('relativeBias', shape);
  expandBias(table, call.numHeads, image.windowSize, size, runtime.floats.subarray(pointer / 4, pointer / 4 + count));
  return new Operand(null, 'float32', shape, count, pointer);
}

/**
 * One window is the whole image: its tokens lie as attention() takes them.
 * @param {Runtime} runtime
 * @param {WindowCall} read
 * @param {ReturnType<typeof placeInputs>} places
 * @param {number} room for the bias
 * @param {number} target pointer, where the result goes
 * @param {Float32Array | null} lse
 */
function attendWhole(runtime, read, places, room, target, lse) {
  const { call, classes, shape } = read;
  const bias = biasOf(runtime, read, classes[0], room);
  const all = Object.assign(Object.create(Object.getPrototypeOf(call)), call, { bias });
  for (const name of inputs) {
    const { dtype, shape: of, count } = call[name];
    all[name] = new Operand(null, dtype, of, count, places[name].pointer);
  }
  const got = compute(runtime, all, shape, resident(shape, target));
  lse?.set(/** @type {Tensor} */ (got.lse).data);
}

/**
 * @param {number[]} shape
 * @param {number} pointer
 * @returns {Out} a place in wasm memory, from which nothing is copied out
 */
const resident = (shape, pointer) => new Out(null, /** @type {any} */ ({ shape }), pointer);

/**
 * Room for windows.
 * @typedef {object} Buffers
 * @property {number} tokens that there is room for, of as many windows as they make
 * @property {Record<typeof inputs[number] | 'out', number>} at pointers
 */

/**
 * @param {WindowCall} read
 * @param {ReturnType<typeof placeInputs>} places
 * @param {Scratch} scratch
 * @returns {Buffers}
 */
function takeBuffers(read, places, scratch) {
  const layouts = tokenLayouts(read);
  const perToken = (/** @type {keyof Buffers['at']} */ name) =>
    layouts[name].planes * layouts[name].token * (name === 'out' || places[name].dtype === 'float32' ? 4 : 2);
  const names = /** @type {const} */ ([...inputs, 'out']);
  const bytes = names.reduce((sum, name) => sum + perToken(name), 0);
  // Room for a whole window at least, and for no more than there are.
  const largest = Math.max(...read.classes.map(({ height, width }) => height * width));
  const all = Math.max(...read.classes.map(({ height, width, origins }) => height * width * origins.length));
  const tokens = Math.max(largest, Math.min(read.call.batch * all, Math.floor(chunkBytes / bytes)));
  const at = names.map((name) => [name, scratch.take([Math.ceil((tokens * perToken(name)) / 4)])]);
  return { tokens, at: Object.fromEntries(at) };
}

/**
 * All windows of one size.
 * @param {Runtime} runtime
 * @param {WindowCall} read
 * @param {WindowClass} size
 * @param {{ places: ReturnType<typeof placeInputs>, buffers: Buffers, bias: number, target: number, lse: Float32Array | null }} memory
 */
function attendClass(runtime, read, size, { places, buffers, bias: room, target, lse }) {
  const { call, factors } = read;
  const { numHeads, numKvHeads, headDim, headDimV } = call;
  const layouts = tokenLayouts(read);
  const tokens = size.height * size.width;
  const total = call.batch * size.origins.length;
  const atOnce = Math.floor(buffers.tokens / tokens);
  const bias = biasOf(runtime, read, size, room);
  for (let first = 0; first < total; first += atOnce) {
    const count = Math.min(atOnce, total - first);
    const operand = (/** @type {typeof inputs[number]} */ name) => {
      const { pointer, dtype } = places[name];
      const heads = name === 'query' ? numHeads : numKvHeads;
      const of = windowsShape(call, count, heads, tokens, name === 'value' ? headDimV : headDim);
      const array = dtype === 'float32' ? runtime.floats : runtime.halves;
      const windows = { array, at: buffers.at[name] / array.BYTES_PER_ELEMENT };
      const image = { array, at: pointer / array.BYTES_PER_ELEMENT };
      copyWindows('gather', image, windows, layouts[name], size, first, count);
      if (factors && name !== 'value') {
        const sizes = { windows: count, heads, tokens, headDim, headsInside: headsInside(call) };
        normalize(windows, sizes, name === 'query' ? factors : null);
      }
      return new Operand(null, dtype, of, product(name, of), buffers.at[name]);
    };
    const operands = { query: operand('query'), key: operand('key'), value: operand('value'), bias };
    const shape = windowsShape(call, count, numHeads, tokens, headDimV);
    const got = compute(runtime, callOfWindows(read, size, operands), shape, resident(shape, buffers.at.out));
    const array = runtime.floats;
    copyWindows(
      'scatter',
      { array, at: target / 4 },
      { array, at: buffers.at.out / 4 },
      layouts.out,
      size,
      first,
      count,
    );
    if (!lse || !got.lse) continue;
    copyWindows('scatter', { array: lse, at: 0 }, { array: got.lse.data, at: 0 }, layouts.lse, size, first, count);
  }
}
