import { outOfMemory } from '../errors.js';
import { viewOf } from '../operand.js';
import { cutOut, rectangle } from '../pool/blocks.js';

/**
 * A shard's part of what append() was given, in an array of its own.
 * @param {import('../runtime.js').Runtime} runtime
 * @param {import('../operand.js').Operand} operand
 * @param {{ first: number, heads: number }} shard
 * @param {{ batch: number, numKvHeads: number, tokens: number, dim: number, blhd: boolean }} sizes of the operand
 * @param {import('../pool/buffers.js').Buffers} buffers
 * @returns {import('./shard-store.js').Elements & { data: { buffer: ArrayBufferLike } }} (batch, heads, tokens, dim)
 * @throws RangeError `out-of-memory`
 */
export function cutHeads(runtime, operand, { first, heads }, { batch, numKvHeads, tokens, dim, blhd }, buffers) {
  const from = rectangle(viewOf(runtime, operand), blhd, [numKvHeads, tokens, dim], [0, first, 0]);
  try {
    return { data: cutOut(from, [batch, heads, tokens, dim], buffers), dtype: operand.dtype };
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw outOfMemory(operand.bytes, 0, 'a copy of the inputs', cause);
  }
}
