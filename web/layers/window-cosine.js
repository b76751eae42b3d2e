// Queries and keys for cosines: each row divided by its Euclidean norm (or by 1e-12 where that is more, as PyTorch's `normalize` does).

import { field } from '../frame.js';
import { Operand } from '../operand.js';
import { writeFrame } from '../write-frame.js';
import { place } from './packed-weights.js';

/**
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('./scratch.js').Scratch} Scratch
 * @typedef {import('./window-call.js').WindowCall} WindowCall
 */

/**
 * @param {Runtime} runtime
 * @param {WindowCall} read of cosines
 * @param {'query' | 'key'} name
 * @param {Scratch} scratch gives the memory
 * @returns {Operand} float32 in wasm memory; of the queries times the factor of the head
 */
export function normalizedInput(runtime, { call, factors }, name, scratch) {
  const operand = call[name];
  const { shape, count } = operand;
  const room = scratch.take(shape);
  const given = new Operand(null, 'float32', shape, count, place(runtime, operand, room));
  const ownFactors = name === 'query' ? factors : null;
  const numbers = ownFactors ? scratch.take([2 * ownFactors.length]) : 0;
  if (ownFactors) runtime.doubles.set(ownFactors, numbers / 8);
  // The module reads its query: the sizes of the key stand in for those where the key is meant.
  const heads = name === 'key' ? call.numKvHeads : call.numHeads;
  const sizes = { query: given, key: given, value: given, numHeads: heads, numKvHeads: heads };
  writeFrame(runtime, Object.assign(Object.create(call), sizes), 0);
  const frame = runtime.doubles;
  const f = runtime.frame / 8;
  frame[f + field.query] = given.pointer;
  frame[f + field.out] = room;
  const status = runtime.exports.normalizeRows(runtime.frame, numbers);
  if (status !== 0) runtime.check(status, 'windowAttention2d');
  return new Operand(null, 'float32', shape, count, room);
}
