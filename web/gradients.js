// attentionBackward(): gradients of attention() for what its results did to a loss.

import { computeGradients } from './gradients/compute.js';
import { readBackwardCall } from './gradients/read-call.js';
import { presentGradients } from './gradients/results.js';

/**
 * @typedef {import('./runtime.js').Runtime} Runtime
 * @typedef {import('./tensor.js').SdpaTensor} SdpaTensor
 * @typedef {import('./tensor.js').Tensor} Tensor
 * @typedef {import('./tensor.js').TensorLike} TensorLike
 */

/** Options of attention() that say what it computed. `returnLse` does not matter here. @typedef {import('./options.js').Without<import('./options.js').AttentionOptions, 'out' | 'scores'>} BackwardOptions */

/**
 * What the backward pass needs of the forward pass, all float32. Rows beyond `queryLengths` count for nothing, whatever they
 * hold, but for dLse where there are sinks: their lse is the sink.
 * @typedef {object} BackwardGiven
 * @property {TensorLike | SdpaTensor} out what attention() gave with the same arguments
 * @property {TensorLike | SdpaTensor} lse likewise, by `returnLse: true`
 * @property {TensorLike | SdpaTensor} dOut gradient of the loss with respect to out, in its shape
 * @property {TensorLike | SdpaTensor} [dLse] with respect to lse; 0 where absent
 */

/**
 * Gradients of the loss, float32, in the shapes of what they are gradients of. Those of options are there where the option was given.
 * @template {BackwardOptions} [O={}]
 * @typedef {{
 *   dQuery: Tensor,
 *   dKey: Tensor,
 *   dValue: Tensor,
 *   dBias: O extends { bias: object } ? Tensor : Tensor | undefined,
 *   dSinks: O extends { sinks: object } ? Tensor : Tensor | undefined,
 *   dAlibiSlopes: O extends { alibiSlopes: object } ? Tensor : Tensor | undefined,
 *   dScale: number,
 * }} BackwardResult
 */

/**
 * @param {Runtime} runtime
 * @param {unknown} query
 * @param {unknown} key
 * @param {unknown} value
 * @param {unknown} given
 * @param {unknown} options
 * @returns {BackwardResult<any>}
 */
export function attentionBackward(runtime, query, key, value, given, options) {
  void runtime.exports; // throws once the instance is disposed of
  const backward = readBackwardCall(runtime, query, key, value, given, options);
  return /** @type {any} */ (presentGradients(backward, computeGradients(runtime, backward)));
}
