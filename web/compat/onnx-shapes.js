// The sizes of an Attention node, from its tensors and head counts, checked against each other.
import { rangeError, typeError } from '../errors.js';
import { readFloat, readInteger } from './onnx-inputs.js';

/**
 * @typedef {import('./onnx-inputs.js').FloatInput} FloatInput
 * @typedef {object} Shapes
 * @property {FloatInput} Q
 * @property {FloatInput} K
 * @property {FloatInput} V
 * @property {FloatInput | undefined} pastKey
 * @property {FloatInput | undefined} pastValue
 * @property {boolean} flat the inputs are 3-D: (batch, length, heads * size)
 * @property {number} batch
 * @property {number} qHeads
 * @property {number} kvHeads
 * @property {number} rows L: queries
 * @property {number} past P: keys of the past
 * @property {number} total T: keys of the past and new ones
 * @property {number} sizeV Dv: value head size
 */

/**
 * @param {Record<string, any>} inputs
 * @param {Record<string, any>} attributes
 * @returns {Shapes}
 */
export function readShapes(inputs, attributes) {
  const [Q, K, V] = ['Q', 'K', 'V'].map((name) => {
    const input = readFloat(inputs, name);
    if (input === undefined) throw typeError('type', `input ${name} is missing`);
    return input;
  });
  const rank = Q.shape.length;
  if ((rank !== 3 && rank !== 4) || K.shape.length !== rank || V.shape.length !== rank) {
    throw rangeError('shape', `Q, K and V must all be 3-D or all 4-D; their shapes are ${list(Q, K, V)}`);
  }
  const [qHeads, kvHeads] = readHeads(attributes, rank === 3, Q, K);
  const q = unfold(Q, qHeads, 'q_num_heads');
  const k = unfold(K, kvHeads, 'kv_num_heads');
  const v = unfold(V, kvHeads, 'kv_num_heads');

  requireEqual('batch size', Q, q.batch, K, k.batch);
  requireEqual('batch size', Q, q.batch, V, v.batch);
  requireEqual('number of heads', K, k.heads, V, v.heads);
  requireEqual('length', K, k.length, V, v.length);
  requireEqual('head size', Q, q.size, K, k.size);
  if (kvHeads === 0 || qHeads % kvHeads !== 0) {
    throw rangeError('shape', `Q has ${qHeads} heads, which is not a multiple of the ${kvHeads} heads of K and V`);
  }

  const pastKey = readFloat(inputs, 'past_key');
  const pastValue = readFloat(inputs, 'past_value');
  if ((pastKey === undefined) !== (pastValue === undefined)) {
    throw rangeError(
      'option',
      `past_key and past_value go together; ${pastKey ? 'past_value' : 'past_key'} is missing`,
    );
  }
  let past = 0;
  if (pastKey && pastValue) {
    past = readPast(pastKey, K, [k.batch, kvHeads, undefined, k.size]);
    readPast(pastValue, V, [k.batch, kvHeads, past, v.size]);
  }
  return {
    Q,
    K,
    V,
    pastKey,
    pastValue,
    flat: rank === 3,
    batch: q.batch,
    qHeads,
    kvHeads,
    rows: q.length,
    past,
    total: past + k.length,
    sizeV: v.size,
  };
}

/**
 * Query and key heads: an axis of 4-D inputs, an attribute with 3-D ones.
 * @param {Record<string, any>} attributes
 * @param {boolean} flat
 * @param {FloatInput} Q
 * @param {FloatInput} K
 */
function readHeads(attributes, flat, Q, K) {
  return /** @type {[string, FloatInput][]} */ ([
    ['q_num_heads', Q],
    ['kv_num_heads', K],
  ]).map(([name, { name: tensor, shape }]) => {
    const given = readInteger(attributes, name, undefined, (count) => count >= 1, 'at least 1');
    if (flat) {
      if (given === undefined)
        throw rangeError('option', `${name} is required: ${tensor} is 3-D, with shape [${shape}]`);
      return given;
    }
    if (given !== undefined && given !== shape[1]) {
      throw rangeError('shape', `${name} is ${given} but ${tensor} has shape [${shape}], with ${shape[1]} heads`);
    }
    return shape[1];
  });
}

/**
 * @param {FloatInput} input
 * @param {number} heads
 * @param {string} attribute
 */
function unfold({ name, shape }, heads, attribute) {
  if (shape.length === 4) return { batch: shape[0], heads: shape[1], length: shape[2], size: shape[3] };
  if (shape[2] % heads !== 0) {
    throw rangeError(
      'shape',
      `${name} has shape [${shape}]: its last dimension ${shape[2]} is not a multiple of ${attribute}, ${heads}`,
    );
  }
  return { batch: shape[0], heads, length: shape[1], size: shape[2] / heads };
}

/**
 * @param {string} what
 * @param {FloatInput} first
 * @param {number} a
 * @param {FloatInput} second
 * @param {number} b
 */
function requireEqual(what, first, a, second, b) {
  if (a !== b)
    throw rangeError('shape', `${what} is ${a} in ${first.name} but ${b} in ${second.name}: ${list(first, second)}`);
}

/**
 * Length of a past tensor, which must fit the new one that is joined to it.
 * @param {FloatInput} past
 * @param {FloatInput} fresh
 * @param {(number | undefined)[]} wanted sizes, undefined where free
 */
function readPast(past, fresh, wanted) {
  if (past.shape.length !== 4 || wanted.some((size, axis) => size !== undefined && size !== past.shape[axis])) {
    const shown = wanted.map((size) => size ?? 'P');
    throw rangeError('shape', `${past.name} has shape [${past.shape}]; with ${list(fresh)} it must be [${shown}]`);
  }
  if (past.dtype !== fresh.dtype) {
    throw typeError('type', `${past.name} is ${past.dtype} but ${fresh.name} is ${fresh.dtype}; they must be the same`);
  }
  return past.shape[2];
}

/** @param {FloatInput[]} tensors */
function list(...tensors) {
  return tensors.map(({ name, shape }) => `${name} [${shape}]`).join(', ');
}
