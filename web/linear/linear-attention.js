// linearAttention(): attention with phi(q)·phi(k) in the place of the exponential, phi(x) = elu(x) + 1.

import { rangeError, show } from '../errors.js';
import { readNamed } from '../named-options.js';
import { readOperand, viewOf } from '../operand.js';
import { finite, flag, int32 } from '../option-values.js';
import { checkGroups, LinearCall, readInputs, readStates } from './call.js';
import { compute } from './frame.js';
import { readBlhd } from './shapes.js';

/**
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('../tensor.js').SdpaTensor} SdpaTensor
 * @typedef {import('../tensor.js').Tensor} Tensor
 * @typedef {import('../tensor.js').TensorLike} TensorLike
 */

/**
 * Options of linearAttention().
 * @typedef {object} LinearAttentionOptions
 * @property {boolean} [causal] query i sees the keys up to i; then there are as many queries as keys
 * @property {number} [eps] added to the divisor; 0 where absent, and then a row whose divisor is 0 is zeros
 * @property {TensorLike | SdpaTensor} [state] what an earlier call returned: the keys and values of the tokens before, float32
 *   (B, Hkv, D, Dv + 1), its last column the sum of phi(k)
 * @property {boolean} [returnState] adds `state`
 * @property {Int32Array} [kvLengths] (B) keys from there on do not take part and are not read
 * @property {import('../tensor.js').MaskLike | SdpaTensor} [keyMask] boolean, (B, S) or (S), non-zero = takes part
 * @property {'bhld' | 'blhd'} [layout] order of the dimensions of query, key, value and out; (B, H, L, D) where absent
 */

/**
 * What the linear functions give; the state where it was asked for.
 * @template {{ returnState?: boolean }} [O={}]
 * @typedef {{ out: Tensor, state: O extends { returnState: true } ? Tensor : Tensor | undefined }} LinearResult
 */

export const linearNames = ['causal', 'eps', 'state', 'returnState', 'kvLengths', 'keyMask', 'layout'];

/**
 * @param {Runtime} runtime
 * @param {unknown} query
 * @param {unknown} key
 * @param {unknown} value
 * @param {unknown} options
 * @returns {{ out: Tensor, state?: Tensor }}
 */
export function linearAttention(runtime, query, key, value, options) {
  void runtime.exports; // throws once the instance is disposed of
  return compute(runtime, readLinear(runtime, 'linearAttention', query, key, value, options, linearNames));
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
export function readLinear(runtime, name, query, key, value, options, known) {
  const { causal, eps, kvLengths, keyMask, layout, ...states } = readNamed(name, options, known);
  const call = new LinearCall(name, readBlhd(layout));
  call.normalised = true;
  call.causal = causal !== undefined && flag('causal', causal);
  if (eps !== undefined) call.epsilon = finite('eps', eps);
  if (call.epsilon < 0) throw rangeError('option', `eps must be 0 or more, got ${eps}`);
  const lengths = kvLengths === undefined ? null : int32('kvLengths', kvLengths);
  readInputs(runtime, call, { query, key, value });
  checkGroups(call);
  readStates(runtime, call, states);
  call.keyMask = readMask(runtime, call, lengths, keyMask);
  return call;
}

/**
 * @param {Runtime} runtime
 * @param {LinearCall} call
 * @param {Int32Array | null} lengths
 * @param {unknown} given
 * @returns {Uint8Array | null} (B, S)
 */
function readMask(runtime, { batch, seqlenKv }, lengths, given) {
  const operand = given === undefined ? null : readOperand('keyMask', given, true, runtime);
  if (lengths && lengths.length !== batch) {
    throw rangeError('shape', `kvLengths has ${lengths.length} numbers but the batch is ${batch}`);
  }
  lengths?.forEach((length, b) => {
    if (length < 0 || length > seqlenKv) {
      throw rangeError('option', `kvLengths[${b}] is ${length} but the key length is ${seqlenKv}`);
    }
  });
  const shape = operand?.shape ?? [];
  const fits =
    shape[shape.length - 1] === seqlenKv && (shape.length === 1 || (shape.length === 2 && shape[0] === batch));
  if (operand && !fits) {
    throw rangeError(
      'shape',
      `keyMask shape is ${show(shape)} but must be ${show([batch, seqlenKv])} or ${show([seqlenKv])}`,
    );
  }
  if (!operand && !lengths) return null;
  const mask = new Uint8Array(batch * seqlenKv).fill(1);
  const keep = operand && viewOf(runtime, operand);
  for (let b = 0; b < batch; b++) {
    const row = mask.subarray(b * seqlenKv, (b + 1) * seqlenKv);
    if (keep) row.set(shape.length === 1 ? keep : keep.subarray(b * seqlenKv, (b + 1) * seqlenKv));
    if (lengths) row.fill(0, lengths[b]);
  }
  return mask;
}
