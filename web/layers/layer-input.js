// What a multi-head layer is given to look at: x, and for cross attention a context, read once and checked.

import { rangeError, show, typeError } from '../errors.js';
import { readOperand, settle } from '../operand.js';
import { SdpaTensor } from '../tensor.js';

/**
 * @typedef {import('../operand.js').Operand} Operand
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('../tensor.js').TensorLike} TensorLike
 * @typedef {import('./packed-weights.js').PackedWeights} PackedWeights
 */

/** A tensor, or two: what keys and what values are made from. @typedef {TensorLike | SdpaTensor | { readonly key: TensorLike | SdpaTensor, readonly value: TensorLike | SdpaTensor }} ContextLike */

/** The tensors that a call is about. `key` and `value` may be `query` itself, and one another. */
export class LayerInput {
  /**
   * @param {Operand} query x
   * @param {Operand} key
   * @param {Operand} value
   */
  constructor(query, key, value) {
    const { shape } = query;
    this.query = query;
    this.key = key;
    this.value = value;
    /** Whether there is no context. */
    this.isSelf = key === query;
    /** Whether the context is two tensors. */
    this.isPair = key !== value;
    /** The dimensions before the length: the batch, or nothing. */
    this.lead = shape.slice(0, -2);
    this.batch = shape.length === 3 ? shape[0] : 1;
    this.seqlenQ = shape[shape.length - 2];
    this.seqlenKv = key.shape[key.shape.length - 2];
  }

  /** @param {Runtime} runtime */
  settle(runtime) {
    settle('x', this.query, runtime);
    settle('context', this.key, runtime);
    settle('context.value', this.value, runtime);
  }
}

/**
 * @param {Runtime} runtime
 * @param {PackedWeights} weights
 * @param {unknown} x
 * @param {any} context
 * @returns {LayerInput}
 */
export function readInput(runtime, weights, x, context) {
  const query = read(runtime, 'x', x, weights.query.inputs);
  if (context === undefined || context === null) {
    if (weights.key.inputs !== query.shape[query.shape.length - 1] || weights.value.inputs !== weights.key.inputs) {
      throw rangeError(
        'shape',
        `the layer's keys are made from ${weights.key.inputs} numbers a token and its values from ${weights.value.inputs}, ` +
          `but its queries from ${weights.query.inputs}: it needs a context`,
      );
    }
    return new LayerInput(query, query, query);
  }
  const pair = isPair(context);
  const key = read(runtime, pair ? 'context.key' : 'context', pair ? pair.key : context, weights.key.inputs);
  const value = pair ? read(runtime, 'context.value', pair.value, weights.value.inputs) : key;
  if (!pair && weights.value.inputs !== weights.key.inputs) {
    throw rangeError(
      'shape',
      `the layer's keys are made from ${weights.key.inputs} numbers a token but its values from ${weights.value.inputs}: ` +
        'context must be { key, value }',
    );
  }
  for (const [name, { shape }] of /** @type {const} */ ([
    ['context', key],
    ['context.value', value],
  ])) {
    if (shape.length !== query.shape.length || (shape.length === 3 && shape[0] !== query.shape[0])) {
      throw rangeError('shape', `${name} has shape ${show(shape)} but x has shape ${show(query.shape)}`);
    }
  }
  if (value.shape.some((size, i) => i < value.shape.length - 1 && size !== key.shape[i])) {
    throw rangeError(
      'shape',
      `context.value has shape ${show(value.shape)} but context.key has shape ${show(key.shape)}`,
    );
  }
  return new LayerInput(query, key, value);
}

/**
 * @param {any} context
 * @returns {{ key: unknown, value: unknown } | null}
 */
function isPair(context) {
  if (typeof context !== 'object' || context instanceof SdpaTensor) return null;
  if ('data' in context) return null;
  if ('key' in context && 'value' in context) {
    const { key, value } = context;
    return { key, value };
  }
  throw typeError(
    'type',
    `context must be a tensor { data, shape } or { key, value }, got ${show(context)}; options are the argument behind it`,
  );
}

/**
 * @param {Runtime} runtime
 * @param {string} name
 * @param {unknown} tensor
 * @param {number} width
 * @returns {Operand}
 */
function read(runtime, name, tensor, width) {
  const operand = readOperand(name, tensor, false, runtime);
  const { shape } = operand;
  if (shape.length !== 2 && shape.length !== 3) {
    const wanted = '(batch, length, size) or (length, size)';
    throw rangeError('shape', `${name} must be ${wanted}, got ${shape.length} dimensions: ${show(shape)}`);
  }
  if (shape[shape.length - 1] === width) return operand;
  throw rangeError(
    'shape',
    `${name} has ${shape[shape.length - 1]} numbers a token (shape ${show(shape)}) but the layer's weights take ${width}`,
  );
}
