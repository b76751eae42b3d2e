// The tensors of a com.microsoft MultiHeadAttention node, in each of its packings, checked against each other.
import { rangeError, typeError } from '../errors.js';
import { readFloat, readIntegers, readScalar, required, requiredInteger } from './onnx-inputs.js';
import { toFloat32 } from './onnx-layout.js';
import { floatRows, inType, rowsHeadsFirst, rowsInLine } from './onnx-ms-rows.js';

/**
 * @typedef {import('./onnx-inputs.js').FloatInput} FloatInput
 * @typedef {import('./onnx-ms-rows.js').HeadRows} HeadRows
 * @typedef {object} MhaTensors
 * @property {HeadRows} query
 * @property {HeadRows} key new ones, or all of them where they come heads first
 * @property {HeadRows} value
 * @property {boolean} keysHeadsFirst
 * @property {Past | undefined} past
 * @property {import('./onnx-inputs.js').FloatType} dtype of query, key and value
 * @property {boolean} isFloat16Array
 * @typedef {object} Past
 * @property {HeadRows} key (B, H, M, D)
 * @property {HeadRows} value (B, H, M, Dv)
 * @property {number} length P: rows in use; M, unless past_sequence_length says so
 * @property {number} capacity rows of the present: M where the past is a buffer that new rows go into, else P + S
 * @property {{ values: number[], beams: number, length: number } | undefined} indirection (batch, beams, M): the beam that a row
 *   of the past came from
 */

/**
 * @param {Record<string, any>} inputs
 * @param {Record<string, any>} attributes
 * @returns {MhaTensors}
 */
export function readTensors(inputs, attributes) {
  const heads = requiredInteger(attributes, 'num_heads', (count) => count >= 1, 'at least 1');
  const given = required(inputs, 'query');
  const tensors = unpack(given, readFloat(inputs, 'key'), readFloat(inputs, 'value'), heads);
  const { query, key, value } = addBias(tensors, readFloat(inputs, 'bias'));
  const { keysHeadsFirst } = tensors;
  const past = readPast(inputs, key, value, keysHeadsFirst);
  return {
    query,
    key,
    value,
    keysHeadsFirst,
    past,
    dtype: given.dtype,
    isFloat16Array: given.isFloat16Array,
  };
}

/**
 * @typedef {{ query: HeadRows, key: HeadRows, value: HeadRows, keysHeadsFirst: boolean, packedKeys: boolean }} Unpacked
 * @param {FloatInput} query
 * @param {FloatInput | undefined} key
 * @param {FloatInput | undefined} value
 * @param {number} heads
 * @returns {Unpacked}
 */
function unpack(query, key, value, heads) {
  if (key === undefined) {
    if (value !== undefined) throw typeError('type', 'input key is missing, and value is given');
    const part = parts(query, heads, 3, 'query', 'without key');
    return { query: part(0), key: part(1), value: part(2), keysHeadsFirst: false, packedKeys: false };
  }
  if (query.shape.length !== 3) {
    throw rangeError('shape', `query has shape [${query.shape}]; where key is given it must be (B, L, H*D)`);
  }
  const q = inLine(query, heads);
  requireType(query, key);
  if (key.shape[0] !== q.batch) throw differ('batch size', query, q.batch, key, key.shape[0]);
  if (value === undefined) {
    const part = parts(key, heads, 2, 'key', 'without value');
    if (part(0).size !== q.size) throw differ('head size', query, q.size, key, part(0).size);
    return { query: q, key: part(0), value: part(1), keysHeadsFirst: false, packedKeys: true };
  }
  requireType(query, value);
  if (value.shape[0] !== q.batch) throw differ('batch size', query, q.batch, value, value.shape[0]);
  const rank = key.shape.length;
  if ((rank !== 3 && rank !== 4) || value.shape.length !== rank) {
    throw rangeError('shape', `key and value must both be 3-D or both 4-D; ${shapes(key, value)}`);
  }
  if (rank === 4 && (key.shape[1] !== heads || key.shape.some((size, axis) => size !== value.shape[axis]))) {
    throw rangeError('shape', `4-D key and value must have the same shape, with ${heads} heads; ${shapes(key, value)}`);
  }
  const k = rank === 4 ? rowsHeadsFirst(key) : inLine(key, heads);
  const v = rank === 4 ? rowsHeadsFirst(value) : inLine(value, heads);
  if (k.size !== q.size) throw differ('head size', query, q.size, key, k.size);
  if (k.length !== v.length) throw differ('length', key, k.length, value, v.length);
  return { query: q, key: k, value: v, keysHeadsFirst: rank === 4, packedKeys: false };
}

/**
 * (B, L, H*D)
 * @param {FloatInput} input
 * @param {number} heads
 */
function inLine(input, heads) {
  const [batch, length, width] = input.shape;
  if (width % heads !== 0) {
    throw rangeError(
      'shape',
      `${input.name} has shape [${input.shape}]: its last dimension ${width} is not a multiple of num_heads, ${heads}`,
    );
  }
  return rowsInLine(input, { batch, length, heads, size: width / heads });
}

/**
 * Query, key and value, or key and value, of one tensor (B, L, H, parts, D).
 * @param {FloatInput} input
 * @param {number} heads
 * @param {number} count
 * @param {string} name
 * @param {string} when
 */
function parts(input, heads, count, name, when) {
  const [batch, length, , , size] = input.shape;
  if (input.shape.length !== 5 || input.shape[2] !== heads || input.shape[3] !== count) {
    throw rangeError('shape', `${name} has shape [${input.shape}]; ${when} it must be (B, L, ${heads}, ${count}, D)`);
  }
  return (/** @type {number} */ part) =>
    rowsInLine(
      input,
      { batch, length, heads, size },
      { width: heads * count * size, offset: part * size, step: count * size },
    );
}

/**
 * The bias of the projections, (H*D + H*D + H*Dv). 4-D keys and values have theirs already: it is added to the query alone.
 * @param {Unpacked} tensors
 * @param {FloatInput | undefined} bias
 * @returns {{ query: HeadRows, key: HeadRows, value: HeadRows }}
 */
function addBias({ query, key, value, keysHeadsFirst, packedKeys }, bias) {
  if (bias === undefined) return { query, key, value };
  if (packedKeys) throw rangeError('option', 'bias cannot be given with a packed key (B, S, H, 2, D)');
  const width = query.heads * query.size;
  const length = 2 * width + value.heads * value.size;
  if (bias.shape.length !== 1 || bias.shape[0] !== length) {
    throw rangeError('shape', `bias has shape [${bias.shape}]; it must be (H*D + H*D + H*Dv) = [${length}]`);
  }
  const numbers = toFloat32(bias);
  const add = (/** @type {HeadRows} */ rows, /** @type {number} */ from) => {
    const sum = floatRows(rows);
    const lines = rows.batch * rows.length;
    const line = rows.heads * rows.size;
    for (let l = 0, at = 0; l < lines; ++l) {
      for (let i = 0; i < line; ++i, ++at) sum.data[at] += numbers[from + i];
    }
    return sum;
  };
  // Keys and values are stored in their type (the present is); the query is used as it comes out.
  return {
    query: add(query, 0),
    key: keysHeadsFirst ? key : inType(add(key, width), key.dtype),
    value: keysHeadsFirst ? value : inType(add(value, 2 * width), value.dtype),
  };
}

/**
 * @param {Record<string, any>} inputs
 * @param {HeadRows} key
 * @param {HeadRows} value
 * @param {boolean} keysHeadsFirst
 * @returns {Past | undefined}
 */
function readPast(inputs, key, value, keysHeadsFirst) {
  const pastKey = readFloat(inputs, 'past_key');
  const pastValue = readFloat(inputs, 'past_value');
  const used = readScalar(inputs, 'past_sequence_length');
  const indirection = readIntegers(inputs, 'cache_indirection');
  if (pastKey === undefined || pastValue === undefined) {
    if (pastKey !== undefined || pastValue !== undefined) {
      const missing = pastKey ? 'past_value' : 'past_key';
      throw rangeError('option', `past_key and past_value go together; ${missing} is missing`);
    }
    // Keys of another sequence are the same for every step and every beam: nothing is appended and nothing looked up.
    if (!keysHeadsFirst && (used !== undefined || indirection !== undefined)) {
      const name = used === undefined ? 'cache_indirection' : 'past_sequence_length';
      throw rangeError('option', `${name} is about past_key and past_value, which are missing`);
    }
    return undefined;
  }
  const rows = pastKey.shape[2];
  readPastShape(pastKey, key, undefined);
  readPastShape(pastValue, value, rows);
  if (used === undefined) {
    if (indirection !== undefined) throw rangeError('option', 'cache_indirection needs past_sequence_length');
    return pastOf(pastKey, pastValue, rows, rows + key.length, undefined);
  }
  if (used < 0 || used + key.length > rows) {
    throw rangeError(
      'option',
      `past_sequence_length is ${used}: with ${key.length} new rows it must be from 0 to ${rows - key.length}, past_key having ${rows}`,
    );
  }
  return pastOf(pastKey, pastValue, used, rows, indirection && readBeams(indirection, key.batch, rows, used));
}

/**
 * @param {FloatInput} key
 * @param {FloatInput} value
 * @param {number} length
 * @param {number} capacity
 * @param {Past['indirection']} indirection
 * @returns {Past}
 */
function pastOf(key, value, length, capacity, indirection) {
  const [k, v] = [key, value].map((past) => rowsHeadsFirst(past));
  return { key: k, value: v, length, capacity, indirection };
}

/**
 * @param {FloatInput} past
 * @param {HeadRows} fresh
 * @param {number | undefined} rows
 */
function readPastShape(past, fresh, rows) {
  const wanted = [fresh.batch, fresh.heads, rows, fresh.size];
  if (past.shape.length !== 4 || wanted.some((size, axis) => size !== undefined && size !== past.shape[axis])) {
    const shown = wanted.map((size) => size ?? 'P');
    throw rangeError('shape', `${past.name} has shape [${past.shape}]; it must be (B, H, P, D) = [${shown}]`);
  }
  if (past.dtype !== fresh.dtype) {
    throw typeError('type', `${past.name} is ${past.dtype} but the new rows are ${fresh.dtype}; they must be the same`);
  }
}

/**
 * cache_indirection: (batch, beams, M), the batch of the query being batch·beams.
 * @param {{ shape: number[], values: number[] }} indirection
 * @param {number} batch of the query
 * @param {number} rows M
 * @param {number} used rows of the past, which alone are looked up
 */
function readBeams({ shape, values }, batch, rows, used) {
  if (shape.length !== 3 || shape[0] * shape[1] !== batch || shape[2] !== rows) {
    throw rangeError(
      'shape',
      `cache_indirection has shape [${shape}]; it must be (batch, beams, ${rows}) with batch·beams = ${batch}`,
    );
  }
  const beams = shape[1];
  for (let b = 0; b < batch; ++b) {
    for (let row = 0; row < used; ++row) {
      const beam = values[b * rows + row];
      if (beam < 0 || beam >= beams) {
        throw rangeError(
          'option',
          `cache_indirection[${b * rows + row}] is ${beam}; it must be from 0 to ${beams - 1}, a beam`,
        );
      }
    }
  }
  return { values, beams, length: rows };
}

/**
 * @param {FloatInput} first
 * @param {FloatInput} second
 */
function requireType(first, second) {
  if (first.dtype === second.dtype) return;
  throw typeError(
    'type',
    `${second.name} is ${second.dtype} but ${first.name} is ${first.dtype}; they must be the same`,
  );
}

/**
 * @param {string} what
 * @param {FloatInput} first
 * @param {number} a
 * @param {FloatInput} second
 * @param {number} b
 */
function differ(what, first, a, second, b) {
  return rangeError('shape', `${what} is ${a} in ${first.name} but ${b} in ${second.name}: ${shapes(first, second)}`);
}

/** @param {FloatInput[]} tensors */
function shapes(...tensors) {
  return tensors.map(({ name, shape }) => `${name} [${shape}]`).join(', ');
}
