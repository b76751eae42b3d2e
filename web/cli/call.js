// The flags of `sdpa attention` as one checked call: the library's own rules, told in the words of the command line.

import { AttentionError } from '../errors.js';
import { alignCodes } from '../frame.js';
import { lseShape, outShape, readCall, scoresShape } from '../validate.js';
import { UsageError } from './usage-error.js';

/** @import { AttentionCall } from '../options.js' */
/** @import { FileTensor } from '../io/index.js' */
/** @import { Role } from './roles.js' */

export const kAlignLowerRight = alignCodes['lower-right'];
export const kAlignOffset = alignCodes.offset;

/** @typedef {AttentionCall & { layoutName: 'bhld' | 'blhd', scoresName?: string }} Call */

/** Options whose flag has another spelling. */
const kFlagOfOption = {
  queryOffset: '--query-offset',
  queryLengths: '--query-lengths',
  kvLengths: '--kv-lengths',
  topK: '--top-k',
};

/**
 * The options that say what the scores are.
 * @param {Partial<Record<Role, FileTensor>>} tensors
 * @param {Record<string, any>} flags
 * @param {{ queryLengths?: Int32Array, kvLengths?: Int32Array }} lengths
 */
export function scoreOptions({ mask, bias }, flags, lengths) {
  return {
    mask,
    bias,
    layout: flags.layout ?? 'bhld',
    scale: flags.scale,
    softcap: flags.softcap,
    causal: flags.causal,
    window: flags.window,
    align: flags.align,
    queryOffset: flags['query-offset'],
    ...lengths,
  };
}

/**
 * @param {Partial<Record<Role, FileTensor>>} tensors float32, float16, bfloat16; mask bool or uint8
 * @param {Record<string, any>} flags
 * @param {{ queryLengths?: Int32Array, kvLengths?: Int32Array }} lengths
 * @returns {Call}
 */
export function makeCall(tensors, flags, lengths) {
  const { query, key, value } = tensors;
  const scores = scoreOptions(tensors, flags, lengths);
  const options = { ...scores, returnLse: flags.lse !== undefined, scores: flags.scores };
  try {
    // nothing lies in wasm memory yet, so that the check needs no instance
    const call = readCall(/** @type {any} */ ({ buffer: undefined }), query, key, value, options);
    return Object.assign(call, { layoutName: scores.layout, scoresName: flags.scores });
  } catch (error) {
    throw explainRefusal(error, tensors, flags);
  }
}

/**
 * @param {Call} call
 * @returns {{ out: number[], lse: number[], scores: number[] }}
 */
export function resultShapes(call) {
  return { out: outShape(call), lse: lseShape(call), scores: scoresShape(call) };
}

/**
 * @param {unknown} error
 * @param {Partial<Record<Role, FileTensor>>} tensors
 * @param {Record<string, any>} flags
 * @returns {unknown}
 */
export function explainRefusal(error, { query, key }, flags) {
  if (!AttentionError.is(error)) return error;
  if (error.code === 'align-required') {
    const option = flags.causal ? '--causal' : '--window';
    const shapes = `query [${query?.shape.join(', ')}] and key [${key?.shape.join(', ')}]`;
    return new UsageError(
      `${option} must know where query 0 stands, as ${shapes} differ in length: ` +
        'add --align lower-right (last query at last key), --align upper-left (query 0 at key 0) or --query-offset N',
    );
  }
  let message = error.message;
  for (const [option, flag] of Object.entries(kFlagOfOption))
    message = message.replace(new RegExp(`\\b${option}\\b`, 'g'), flag);
  return new UsageError(message);
}
