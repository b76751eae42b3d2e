// ssd(): the state space layer of Mamba-2, by its recurrence.

import { rangeError } from '../errors.js';
import { readNamed } from '../named-options.js';
import { perHead } from '../option-arrays.js';
import { whole } from '../option-values.js';
import { checkMultiple } from '../validate.js';
import { LinearCall, readInputs, readStates } from './call.js';
import { compute } from './frame.js';
import { readBlhd, readGate, same } from './shapes.js';

/**
 * @typedef {import('../options.js').PerHeadLike} PerHeadLike
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('../tensor.js').SdpaTensor} SdpaTensor
 * @typedef {import('../tensor.js').Tensor} Tensor
 * @typedef {import('../tensor.js').TensorLike} TensorLike
 */

/**
 * Options of ssd().
 * @typedef {object} SsdOptions
 * @property {PerHeadLike} [d] (H) D of each head: D·x is added to the result
 * @property {TensorLike | SdpaTensor} [state] h before the first token: what an earlier call returned, float32 (B, H, N, P)
 * @property {boolean} [returnState] adds `state`, h after the last token
 * @property {number} [chunkSize] tokens that are brought in at a time, 1 or more: memory for speed, no other result
 * @property {'bhld' | 'blhd'} [layout] order of the dimensions of x, dt, b, c and out; (B, H, L, P) where absent, (B, L, H, P) in Mamba's own
 */

export const ssdNames = ['d', 'state', 'returnState', 'chunkSize', 'layout'];

/**
 * @param {Runtime} runtime
 * @param {unknown} x
 * @param {unknown} dt
 * @param {unknown} a
 * @param {unknown} b
 * @param {unknown} c
 * @param {unknown} options
 * @returns {{ out: Tensor, state?: Tensor }}
 */
export function ssd(runtime, x, dt, a, b, c, options) {
  void runtime.exports; // throws once the instance is disposed of
  return compute(runtime, readSsd(runtime, 'ssd', { x, dt, a, b, c }, options, ssdNames));
}

/**
 * @param {Runtime} runtime
 * @param {string} name of the function
 * @param {Record<'x' | 'dt' | 'a' | 'b' | 'c', unknown>} given
 * @param {unknown} options
 * @param {readonly string[]} known names of options
 * @returns {LinearCall}
 */
export function readSsd(runtime, name, { x, dt, a, b, c }, options, known) {
  const { d, chunkSize, layout, ...states } = readNamed(name, options, known);
  const call = new LinearCall(name, readBlhd(layout));
  if (chunkSize !== undefined) call.chunk = whole('chunkSize', chunkSize, 1);
  const rate = perHead('a', a);
  const skip = d === undefined ? null : perHead('d', d);
  call.names = { query: 'c', key: 'b', value: 'x' };
  readInputs(runtime, call, { query: c, key: b, value: x });
  const { rank, blhd, batch, heads: groups, keyHeads, states: heads, seqlenKv: length } = call;
  same('c', 'number of groups', groups, 'b', keyHeads);
  checkMultiple('x', heads, groups, 'groups of b and c');
  call.rate = ofHeads('a', rate, heads);
  call.skip = skip && ofHeads('d', skip, heads);
  const like = { rank, blhd, rows: { batch, heads, length, size: 0 }, name: 'x', columns: 0 };
  call.step = readGate(runtime, 'dt', dt, like).operand;
  readStates(runtime, call, states);
  return call;
}

/**
 * @param {string} name
 * @param {import('../option-arrays.js').Numbers<Float32Array>} numbers
 * @param {number} heads
 */
function ofHeads(name, { data, shape }, heads) {
  if (shape.length !== 1 || data.length !== heads) {
    throw rangeError(
      'shape',
      `${name} has shape [${shape.join(', ')}] but x has ${heads} heads: it must be [${heads}]`,
    );
  }
  return data;
}
