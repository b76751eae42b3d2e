// forward(): queries, keys and values out of x and the context, attention, and the output projection.

import { compute } from '../attention.js';
import { attendCall } from '../kv-cache/attend.js';
import { Out, readOut, receive, result } from '../output.js';
import { product } from '../tensor.js';
import { readLayerCall } from './layer-call.js';
import { place } from './packed-weights.js';
import { Scratch } from './scratch.js';

/**
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('../tensor.js').Tensor} Tensor
 * @typedef {import('./layer-call.js').CacheUse} CacheUse
 * @typedef {import('./layer-call.js').LayerCall} LayerCall
 * @typedef {import('./layer-call.js').LayerState} LayerState
 */

/**
 * @param {LayerState} layer
 * @param {unknown} x
 * @param {unknown} context
 * @param {unknown} options
 * @returns {{ out: any, lse?: Tensor, scores?: Tensor }}
 */
export function forward(layer, x, context, options) {
  const { runtime, weights } = layer;
  const read = readLayerCall(layer, x, context, options);
  const { input, call, use } = read;
  const shape = [...input.lead, input.seqlenQ, weights.out.outputs];
  const count = product('out', shape);
  const operands = { query: input.query, key: input.key, value: input.value, mask: call.mask, bias: call.bias };
  const out = readOut(runtime, /** @type {any} */ ({ out: read.out, ...operands }), shape, count);
  const scratch = new Scratch(runtime);
  try {
    const target = out.pointer || scratch.take(shape);
    const { heads } = project(layer, read, scratch);
    const { lse, scores } = use ? appendAndAttend(read, use, heads) : attend(runtime, read, heads);
    weights.out.apply(runtime, heads, input.batch * input.seqlenQ, target);
    return result(receive(runtime, out, target, count, shape), lse, scores);
  } finally {
    scratch.release();
  }
}

/**
 * Where everything lies.
 * @typedef {object} Projected
 * @property {number} x pointer, as are the others
 * @property {number} keys what keys are made from: x itself without a context
 * @property {number} values
 * @property {number} heads room for what attention gives
 */

/**
 * Gives query, key and value a place and fills them.
 * @param {LayerState} layer
 * @param {LayerCall} read
 * @param {Scratch} scratch
 * @returns {Projected}
 */
export function project({ runtime, weights, sizes, rope }, { input, query, key, value, headsShape, places }, scratch) {
  const { batch, seqlenQ, seqlenKv } = input;
  for (const operand of [query, key, value]) operand.pointer = scratch.take(operand.shape);
  const heads = scratch.take(headsShape);
  const placed = (/** @type {import('../operand.js').Operand} */ operand) => {
    const isThere = operand.pointer !== 0 && operand.dtype === 'float32';
    return place(runtime, operand, isThere ? 0 : scratch.take(operand.shape));
  };
  const x = placed(input.query);
  const keys = input.isSelf ? x : placed(input.key);
  const values = input.isPair ? placed(input.value) : keys;
  weights.query.apply(runtime, x, batch * seqlenQ, query.pointer);
  weights.key.apply(runtime, keys, batch * seqlenKv, key.pointer);
  weights.value.apply(runtime, values, batch * seqlenKv, value.pointer);
  if (rope && places) {
    const { numHeads, numKvHeads, headDim } = sizes;
    const turn = (/** @type {number} */ pointer, /** @type {number} */ count) =>
      turnRows(rope, runtime.floats, pointer / 4, { batch, length: seqlenQ, heads: count, headDim }, places, 1);
    turn(query.pointer, numHeads);
    turn(key.pointer, numKvHeads);
  }
  return { x, keys, values, heads };
}

/**
 * attention() of query, key and value.
 * @param {Runtime} runtime
 * @param {LayerCall} read
 * @param {number} heads pointer, where the result goes
 */
export function attend(runtime, { call, headsShape }, heads) {
  return compute(runtime, call, headsShape, resident(headsShape, heads));
}

/**
 * @param {number[]} shape
 * @param {number} pointer
 * @returns {Out} a place in wasm memory, from which nothing is copied out
 */
function resident(shape, pointer) {
  return new Out(null, /** @type {any} */ ({ shape }), pointer);
}

/**
 * Turns the rows of (batch, length, heads, headDim) by their positions, or by these times -1, which is the transpose.
 * @param {NonNullable<LayerState['rope']>} rope
 * @param {Float32Array} array
 * @param {number} begin
 * @param {{ batch: number, length: number, heads: number, headDim: number }} sizes
 * @param {import('../rope-places.js').Places} places
 * @param {1 | -1} sign
 */
export function turnRows(rope, array, begin, { batch, length, heads, headDim }, places, sign) {
  for (let b = 0; b < batch; b++) {
    for (let i = 0; i < length; i++) {
      const position = sign * places.at(b, i);
      for (let h = 0; h < heads; h++) {
        rope.rotate(array, begin + ((b * length + i) * heads + h) * headDim, position);
      }
    }
  }
}

/**
 * @param {LayerCall} read
 * @param {CacheUse} use
 * @param {number} heads pointer, where the result goes
 */
function appendAndAttend({ call, key, value, headsShape }, { cache, rows, before, counts }, heads) {
  cache.append(/** @type {any} */ (key), /** @type {any} */ (value), { layout: 'blhd', lengths: counts });
  try {
    return attendCall(rows, call, headsShape, resident(headsShape, heads));
  } catch (error) {
    // Memory for the workspace is all that can be missing. What a ring has written over is lost.
    for (const [b, length] of before.entries()) rows.shorten(b, length);
    throw error;
  }
}
