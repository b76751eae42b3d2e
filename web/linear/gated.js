// gatedLinearAttention(): linear attention whose state decays, or corrects itself by the delta rule, or both.

import { rangeError } from '../errors.js';
import { readNamed } from '../named-options.js';
import { finite, oneOf, whole } from '../option-values.js';
import { checkGroups, LinearCall, readInputs, readStates } from './call.js';
import { compute } from './frame.js';
import { readBlhd, readGate } from './shapes.js';

/**
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('../tensor.js').SdpaTensor} SdpaTensor
 * @typedef {import('../tensor.js').Tensor} Tensor
 * @typedef {import('../tensor.js').TensorLike} TensorLike
 */

/**
 * Options of gatedLinearAttention().
 * @typedef {object} GatedLinearAttentionOptions
 * @property {'linear' | 'gated' | 'delta' | 'gated-delta'} [rule] 'gated' rules need `decay`, 'delta' rules `beta`; where absent, what is
 *   given says it
 * @property {TensorLike | SdpaTensor} [decay] g, the log of the factor, usually 0 or less: (B, Hkv, L), or (B, Hkv, L, D) for each column of
 *   the key; with layout 'blhd' (B, L, Hkv), (B, L, Hkv, D)
 * @property {TensorLike | SdpaTensor} [beta] (B, Hkv, L) or (B, 1, L); with layout 'blhd' (B, L, Hkv) or (B, L, 1)
 * @property {number} [scale] factor of the result; 1/√D where absent; any finite number
 * @property {TensorLike | SdpaTensor} [state] S before the first token: what an earlier call returned, float32 (B, Hkv, D, Dv)
 * @property {boolean} [returnState] adds `state`, S after the last token
 * @property {number} [chunkSize] tokens that are brought in at a time, 1 or more: memory for speed, no other result
 * @property {'bhld' | 'blhd'} [layout] order of the dimensions of query, key, value and out; (B, H, L, D) where absent
 */

const rules = { linear: 0, gated: 1, delta: 2, 'gated-delta': 3 };

export const gatedNames = ['rule', 'decay', 'beta', 'scale', 'state', 'returnState', 'chunkSize', 'layout'];

/**
 * @param {Runtime} runtime
 * @param {unknown} query
 * @param {unknown} key
 * @param {unknown} value
 * @param {unknown} options
 * @returns {{ out: Tensor, state?: Tensor }}
 */
export function gatedLinearAttention(runtime, query, key, value, options) {
  void runtime.exports; // throws once the instance is disposed of
  return compute(runtime, readGated(runtime, 'gatedLinearAttention', query, key, value, options, gatedNames));
}

/**
 * @param {Runtime} runtime
 * @param {string} name of the function
 * @param {unknown} query
 * @param {unknown} key
 * @param {unknown} value
 * @param {unknown} options
 * @param {readonly string[]} known names of options
 * @returns {LinearCall}
 */
export function readGated(runtime, name, query, key, value, options, known) {
  const { rule, decay, beta, scale, chunkSize, layout, ...states } = readNamed(name, options, known);
  const call = new LinearCall(name, readBlhd(layout));
  if (rule !== undefined) checkRule(rule, decay, beta);
  if (chunkSize !== undefined) call.chunk = whole('chunkSize', chunkSize, 1);
  const factor = scale === undefined ? undefined : finite('scale', scale);
  readInputs(runtime, call, { query, key, value });
  checkGroups(call);
  call.scale = factor ?? 1 / Math.sqrt(call.headDim);
  const { rank, blhd, batch, states: heads, seqlenKv: length, headDim } = call;
  const like = { rank, blhd, rows: { batch, heads, length, size: 0 }, name: 'key' };
  if (decay !== undefined) {
    const gate = readGate(runtime, 'decay', decay, { ...like, columns: headDim });
    call.decay = gate.operand;
    call.decayColumns = gate.columns;
  }
  if (beta !== undefined) {
    const gate = readGate(runtime, 'beta', beta, { ...like, columns: 0, sharedHeads: true });
    call.beta = gate.operand;
    call.betaHeads = gate.heads;
  }
  readStates(runtime, call, states);
  return call;
}

/**
 * @param {unknown} rule
 * @param {unknown} decay
 * @param {unknown} beta
 */
function checkRule(rule, decay, beta) {
  const code = oneOf('rule', rule, rules);
  for (const [bit, name, given] of /** @type {const} */ ([
    [1, 'decay', decay],
    [2, 'beta', beta],
  ])) {
    const needed = (code & bit) !== 0;
    if (needed && given === undefined) throw rangeError('option', `the rule '${rule}' needs ${name}`);
    if (!needed && given !== undefined) throw rangeError('option', `the rule '${rule}' takes no ${name}`);
  }
}
