// Runs a backward call that has been checked: its arrays go into wasm memory, and the gradients come out as plain arrays.

import { Block, runInWorkspace } from '../block.js';
import { outOfMemory } from '../errors.js';
import { field } from '../frame.js';
import { copyIn } from '../operand.js';
import { product } from '../tensor.js';
import { arrayBytes, writeFrame } from '../write-frame.js';

/**
 * @typedef {import('../operand.js').Operand} Operand
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('./read-call.js').BackwardCall} BackwardCall
 */

/**
 * Gradients as the module gives them: those of tensors in the layout of these, the others one number for each batch entry and query head.
 * @typedef {object} RawGradients
 * @property {Float32Array} query
 * @property {Float32Array} key
 * @property {Float32Array} value
 * @property {Float32Array | null} bias in the bias's shape, summed over its repeated dimensions
 * @property {Float64Array} scale (B, Hq)
 * @property {Float64Array | null} sinks (B, Hq)
 * @property {Float64Array | null} alibiSlopes (B, Hq)
 */

/**
 * @param {Runtime} runtime
 * @param {BackwardCall} backward
 * @returns {RawGradients}
 * @throws RangeError `out-of-memory`, with nothing changed
 */
export function computeGradients(runtime, backward) {
  const { call } = backward;
  const { query, key, value, mask, bias, alibiSlopes, batch, numHeads } = call;
  const { out, lse, dOut, dLse, sinks } = backward;
  const block = new Block();
  const short = block.take(arrayBytes(call));
  /** @type {[keyof typeof field, Operand | null, number][]} */
  const inputs = [
    ['query', query, block.input(query)],
    ['key', key, block.input(key)],
    ['value', value, block.input(value)],
    ['mask', mask, block.input(mask)],
    ['bias', bias, block.input(bias)],
    ['out', out, block.input(out)],
    ['lse', lse, block.input(lse)],
    ['d_out', dOut, block.input(dOut)],
    ['d_lse', dLse, block.input(dLse)],
  ];
  const heads = batch * numHeads;
  // Keys and values that lie in wasm memory may come without their number of elements.
  const [queries, keys, values] = [query, key, value].map(({ shape }) => product('gradient', shape));
  const gradients = {
    d_query: block.take(queries * 4),
    d_key: block.take(keys * 4),
    d_value: block.take(values * 4),
    d_bias: bias ? block.take(bias.count * 4) : -1,
    d_scale: block.take(heads * 8),
    d_sinks: sinks ? block.take(heads * 8) : -1,
    d_alibi: alibiSlopes ? block.take(heads * 8) : -1,
  };
  const base = runtime.allocate(block.bytes, 'attentionBackward');
  try {
    writeFrame(runtime, call, base + short);
    const f = runtime.frame / 8;
    runtime.doubles[f + field.scores] = 0;
    for (const [name, operand, at] of inputs) {
      runtime.doubles[f + field[name]] = at < 0 ? (operand?.pointer ?? 0) : base + at;
      if (operand && at >= 0) copyIn(runtime, operand, base + at);
    }
    for (const [name, at] of Object.entries(gradients)) {
      runtime.doubles[f + field[/** @type {keyof typeof gradients} */ (name)]] = at < 0 ? 0 : base + at;
    }
    runInWorkspace(runtime, 'attentionBackward');

    const floats = (/** @type {number} */ at, /** @type {number} */ count) =>
      runtime.floats.slice((base + at) / 4, (base + at) / 4 + count);
    const perHead = (/** @type {number} */ at) => runtime.doubles.slice((base + at) / 8, (base + at) / 8 + heads);
    try {
      return {
        query: floats(gradients.d_query, queries),
        key: floats(gradients.d_key, keys),
        value: floats(gradients.d_value, values),
        bias: bias && floats(gradients.d_bias, bias.count),
        scale: perHead(gradients.d_scale),
        sinks: sinks ? perHead(gradients.d_sinks) : null,
        alibiSlopes: alibiSlopes ? perHead(gradients.d_alibi) : null,
      };
    } catch (cause) {
      const bytes = (queries + keys + values + (bias?.count ?? 0)) * 4;
      throw outOfMemory(bytes, 0, 'gradients outside wasm memory', cause);
    }
  } finally {
    runtime.release(base, block.bytes);
  }
}
