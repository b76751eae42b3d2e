// The arguments of attentionBackward(): those of attention(), what that gave, and the gradients of it.

import { rangeError, show, typeError } from '../errors.js';
import { readOperand, settle, settleAll } from '../operand.js';
import { perHead } from '../option-arrays.js';
import { lseShape, outShape, readCall } from '../validate.js';

/**
 * @typedef {import('../options.js').AttentionCall} AttentionCall
 * @typedef {import('../operand.js').Operand} Operand
 * @typedef {import('../runtime.js').Runtime} Runtime
 */

/**
 * A backward call, checked.
 * @typedef {object} BackwardCall
 * @property {AttentionCall} call the forward call
 * @property {import('../option-arrays.js').Numbers<Float32Array> | null} sinks as they were given: those of the call have smoothSoftmax in
 *   them
 * @property {Operand} out
 * @property {Operand} lse
 * @property {Operand} dOut
 * @property {Operand | null} dLse
 */

const givenNames = ['out', 'lse', 'dOut', 'dLse'];

/** Options of attention() that say where its results go. */
const resultNames = ['out', 'scores'];

/**
 * Reads every property of the caller's objects once; from here on no code of the caller's runs.
 * @param {Runtime} runtime
 * @param {unknown} query
 * @param {unknown} key
 * @param {unknown} value
 * @param {unknown} given
 * @param {unknown} options
 * @returns {BackwardCall}
 */
export function readBackwardCall(runtime, query, key, value, given, options) {
  const { sinks, rest } = withSinks(options);
  const call = readCall(runtime, query, key, value, rest, 'attentionBackward', resultNames);
  refuseResults('attentionBackward', call);
  const { out, lse, dOut, dLse } = readGiven(given);
  const backward = {
    call,
    sinks,
    out: readLike(runtime, 'out', out, outShape(call)),
    lse: readLike(runtime, 'lse', lse, lseShape(call)),
    dOut: readLike(runtime, 'dOut', dOut, outShape(call)),
    dLse: dLse === undefined ? null : readLike(runtime, 'dLse', dLse, lseShape(call)),
  };
  settleAll(runtime, call);
  for (const name of /** @type {const} */ (['out', 'lse', 'dOut', 'dLse'])) settle(name, backward[name], runtime);
  return backward;
}

/**
 * Options that say where results of attention() go.
 * @param {string} who
 * @param {AttentionCall} call
 */
export function refuseResults(who, { out, scores }) {
  const refused = (/** @type {string} */ name, /** @type {string} */ why) =>
    rangeError('option', `${who} does not take the option '${name}' of attention: ${why}`);
  if (out !== undefined) throw refused('out', 'what it gives are new arrays');
  if (scores) throw refused('scores', 'they have no gradients of their own');
}

/**
 * The option `sinks`, read once, and options that have what was read.
 * @param {any} options
 * @returns {{ sinks: BackwardCall['sinks'], rest: unknown }}
 */
export function withSinks(options) {
  if (Object.prototype.toString.call(options) !== '[object Object]') return { sinks: null, rest: options };
  const { sinks: setting } = options;
  const sinks = setting === undefined ? null : perHead('sinks', setting);
  return { sinks, rest: Object.create(options, { sinks: { value: sinks ?? undefined, enumerable: sinks !== null } }) };
}

/**
 * @param {any} given
 * @returns {{ out: unknown, lse: unknown, dOut: unknown, dLse: unknown }}
 */
function readGiven(given) {
  if (Object.prototype.toString.call(given) !== '[object Object]') {
    throw typeError(
      'type',
      `attentionBackward needs an object { out, lse, dOut, dLse? }: what attention() gave with returnLse, and its gradients; got ${show(given)}`,
    );
  }
  for (const name in given) {
    if (!givenNames.includes(name)) {
      throw typeError(
        'unknown-option',
        `attentionBackward knows no '${name}' beside query, key and value; it takes ${givenNames.join(', ')}`,
      );
    }
  }
  const { out, lse, dOut, dLse } = given;
  return { out, lse, dOut, dLse };
}

/**
 * @param {Runtime} runtime
 * @param {string} name
 * @param {unknown} tensor
 * @param {number[]} shape
 * @returns {Operand}
 */
function readLike(runtime, name, tensor, shape) {
  const operand = readOperand(name, tensor, false, runtime);
  if (operand.dtype !== 'float32') throw typeError('type', `${name} must be float32, got ${operand.dtype}`);
  if (operand.shape.length !== shape.length || operand.shape.some((size, i) => size !== shape[i])) {
    throw rangeError('shape', `${name} has shape ${show(Array.from(operand.shape))} but must have ${show(shape)}`);
  }
  return operand;
}
