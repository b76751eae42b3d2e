// Gradients of linear attention, gated and not, and of state spaces.

import { rangeError, show, typeError } from '../errors.js';
import { copyOut } from '../output.js';
import { product } from '../tensor.js';
import { run } from './frame.js';
import { gatedNames, readGated } from './gated.js';
import { linearNames, readLinear } from './linear-attention.js';
import { readExact } from './shapes.js';
import { readSsd, ssdNames } from './ssd.js';

/**
 * @typedef {import('../operand.js').Operand} Operand
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('../tensor.js').SdpaTensor} SdpaTensor
 * @typedef {import('../tensor.js').Tensor} Tensor
 * @typedef {import('../tensor.js').TensorLike} TensorLike
 * @typedef {import('./call.js').LinearCall} LinearCall
 */

/**
 * What the backward pass needs besides the arguments of the forward call.
 * @typedef {object} LinearGiven
 * @property {TensorLike | SdpaTensor} dOut gradient of the loss with respect to out, in its shape, float32
 * @property {TensorLike | SdpaTensor} [dState] that with respect to the state that the call returned, where the loss depends on it
 */

/** Options of a backward call: those of the forward call, but what it returns. @template T @typedef {import('../options.js').Without<T, Extract<keyof T, 'returnState'>>} ForBackward */

/** @param {readonly string[]} names of options of a forward call */
const forBackward = (names) => names.filter((name) => name !== 'returnState');

/**
 * Gradients of linear and gated linear attention; those of options where these were given.
 * @template {{ state?: unknown, decay?: unknown }} [O={}]
 * @typedef {{
 *   dQuery: Tensor,
 *   dKey: Tensor,
 *   dValue: Tensor,
 *   dDecay: O extends { decay: object } ? Tensor : Tensor | undefined,
 *   dState: O extends { state: object } ? Tensor : Tensor | undefined,
 * }} LinearGradients
 */

/**
 * Gradients of ssd(); those of options where these were given.
 * @template {{ state?: unknown, d?: unknown }} [O={}]
 * @typedef {{
 *   dX: Tensor,
 *   dDt: Tensor,
 *   dA: Tensor,
 *   dB: Tensor,
 *   dC: Tensor,
 *   dD: O extends { d: object } ? Tensor : Tensor | undefined,
 *   dState: O extends { state: object } ? Tensor : Tensor | undefined,
 * }} SsdGradients
 */

/**
 * @param {Runtime} runtime
 * @param {unknown} query
 * @param {unknown} key
 * @param {unknown} value
 * @param {unknown} given
 * @param {unknown} options
 */
export function linearAttentionBackward(runtime, query, key, value, given, options) {
  void runtime.exports; // throws once the instance is disposed of
  const known = forBackward(linearNames);
  const call = readLinear(runtime, 'linearAttentionBackward', query, key, value, options, known);
  return inputGradients(computeGradients(runtime, call, given));
}

/**
 * @param {Runtime} runtime
 * @param {unknown} query
 * @param {unknown} key
 * @param {unknown} value
 * @param {unknown} given
 * @param {unknown} options
 */
export function gatedLinearAttentionBackward(runtime, query, key, value, given, options) {
  void runtime.exports;
  const name = 'gatedLinearAttentionBackward';
  const call = readGated(runtime, name, query, key, value, options, forBackward(gatedNames));
  if (call.beta) {
    throw rangeError('unsupported', `${name} has no gradients of the delta rules, so it takes no beta`);
  }
  return inputGradients(computeGradients(runtime, call, given));
}

/**
 * @param {Runtime} runtime
 * @param {Record<'x' | 'dt' | 'a' | 'b' | 'c', unknown>} inputs
 * @param {unknown} given
 * @param {unknown} options
 */
export function ssdBackward(runtime, inputs, given, options) {
  void runtime.exports;
  const call = readSsd(runtime, 'ssdBackward', inputs, options, forBackward(ssdNames));
  const { dQuery, dKey, dValue, dStep, dRate, dSkip, dState } = computeGradients(runtime, call, given);
  return {
    dX: dValue,
    dDt: dStep,
    dA: dRate,
    dB: dKey,
    dC: dQuery,
    ...(dSkip && { dD: dSkip }),
    ...(dState && { dState }),
  };
}

/** @param {ReturnType<typeof computeGradients>} gradients */
function inputGradients({ dQuery, dKey, dValue, dDecay, dState }) {
  return { dQuery, dKey, dValue, ...(dDecay && { dDecay }), ...(dState && { dState }) };
}

/**
 * @param {Runtime} runtime
 * @param {LinearCall} call
 * @param {any} given
 */
function computeGradients(runtime, call, given) {
  const inputs = readGiven(runtime, call, given);
  const { decay, step, rate, skip, state } = call;
  const { query, key, value } = call.inputs;
  const shapes = /** @type {const} */ ({
    dQuery: query.shape,
    dKey: key.shape,
    dValue: value.shape,
    dDecay: decay?.shape,
    dStep: step?.shape,
    dFirstState: state?.shape,
  });
  const heads = call.states;
  /** @type {Record<keyof typeof shapes | 'dRate' | 'dSkip', number>} */
  const results = Object.create(null);
  for (const [name, shape] of Object.entries(shapes)) {
    results[/** @type {keyof typeof shapes} */ (name)] = shape ? product(name, shape) * 4 : 0;
  }
  results.dRate = rate ? heads * 8 : 0;
  results.dSkip = skip ? heads * 8 : 0;
  return run(runtime, call, 'linearAttentionBackward', inputs, results, (at) => {
    const tensor = (/** @type {keyof typeof shapes} */ name) => {
      const shape = shapes[name];
      return shape && copyOut(runtime, at[name], product(name, shape), [...shape]);
    };
    const perHead = (/** @type {'dRate' | 'dSkip'} */ name) =>
      results[name] === 0
        ? undefined
        : asTensor(Float32Array.from(runtime.doubles.subarray(at[name] / 8, at[name] / 8 + heads)));
    return {
      dQuery: /** @type {Tensor} */ (tensor('dQuery')),
      dKey: /** @type {Tensor} */ (tensor('dKey')),
      dValue: /** @type {Tensor} */ (tensor('dValue')),
      dDecay: tensor('dDecay'),
      dStep: tensor('dStep'),
      dState: tensor('dFirstState'),
      dRate: perHead('dRate'),
      dSkip: perHead('dSkip'),
    };
  });
}

/** @param {Float32Array} data @returns {Tensor} */
const asTensor = (data) => ({ data, shape: [data.length], dtype: 'float32' });

/**
 * @param {Runtime} runtime
 * @param {LinearCall} call
 * @param {any} given
 * @returns {[string, Operand][]}
 */
function readGiven(runtime, call, given) {
  if (Object.prototype.toString.call(given) !== '[object Object]') {
    throw typeError(
      'type',
      `${call.name} needs an object { dOut }, the gradient of what forward gave; got ${show(given)}`,
    );
  }
  for (const name in given) {
    if (name === 'dOut' || name === 'dState') continue;
    throw typeError('unknown-option', `${call.name} knows no '${name}' beside its inputs; it takes dOut and dState`);
  }
  const { dOut, dState } = given;
  if (dOut === undefined) throw typeError('type', `${call.name} needs dOut, the gradient of what forward gave`);
  /** @type {[string, Operand][]} */
  const inputs = [['dOut', readExact(runtime, 'dOut', dOut, call.outShape)]];
  if (dState !== undefined) inputs.push(['dState', readExact(runtime, 'dState', dState, call.stateShape)]);
  return inputs;
}
