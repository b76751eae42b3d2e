// The tensors of a com.microsoft GroupQueryAttention node, checked against each other and against the lengths they come with.
import { rangeError, typeError } from '../errors.js';
import { readFloat, readIntegers, readScalar, required, requiredInteger } from './onnx-inputs.js';
import { rowsHeadsFirst, rowsInLine } from './onnx-ms-rows.js';

/**
 * @typedef {import('./onnx-inputs.js').FloatInput} FloatInput
 * @typedef {import('./onnx-ms-rows.js').HeadRows} HeadRows
 * @typedef {object} GqaTensors
 * @property {HeadRows} query
 * @property {HeadRows} key new ones; none where the past holds all keys already
 * @property {HeadRows} value
 * @property {{ key: HeadRows, value: HeadRows } | undefined} past
 * @property {import('./onnx-inputs.js').FloatType} dtype
 * @property {boolean} isFloat16Array
 * @property {Int32Array} lengths (B): keys that each batch has, the new ones included
 * @property {Int32Array} pastLengths (B): rows of the past that come before the new keys
 * @property {Int32Array} offsets (B): position of the first query
 * @property {boolean} firstPrompt L is the total length: the past is not read
 * @property {number} total total_sequence_length
 * @property {number} capacity rows of the present
 */

/**
 * @param {Record<string, any>} inputs
 * @param {Record<string, any>} attributes
 * @returns {GqaTensors}
 */
export function readTensors(inputs, attributes) {
  const [heads, kvHeads] = ['num_heads', 'kv_num_heads'].map((name) =>
    requiredInteger(attributes, name, (count) => count >= 1, 'at least 1'),
  );
  if (heads % kvHeads !== 0) {
    throw rangeError('option', `num_heads is ${heads}, which is not a multiple of kv_num_heads, ${kvHeads}`);
  }
  const given = required(inputs, 'query');
  if (given.shape.length !== 3)
    throw rangeError('shape', `query has shape [${given.shape}]; it must have 3 dimensions`);
  const { query, key, value } = unpack(given, readFloat(inputs, 'key'), readFloat(inputs, 'value'), heads, kvHeads);
  const past = readPast(inputs, query, kvHeads);
  const steps = readLengths(inputs, query, key.length, past);
  return { query, key, value, past, dtype: given.dtype, isFloat16Array: given.isFloat16Array, ...steps };
}

/**
 * @param {FloatInput} query
 * @param {FloatInput | undefined} key
 * @param {FloatInput | undefined} value
 * @param {number} heads
 * @param {number} kvHeads
 * @returns {{ query: HeadRows, key: HeadRows, value: HeadRows }}
 */
function unpack(query, key, value, heads, kvHeads) {
  const [batch, length, width] = query.shape;
  if ((key === undefined) !== (value === undefined)) {
    throw typeError('type', `key and value go together; input ${key ? 'value' : 'key'} is missing`);
  }
  if (key === undefined || value === undefined) {
    const size = headSize(query, heads + 2 * kvHeads, 'num_heads + 2·kv_num_heads');
    const part = (/** @type {number} */ first, /** @type {number} */ count) =>
      rowsInLine(query, { batch, length, heads: count, size }, { width, offset: first * size });
    return { query: part(0, heads), key: part(heads, kvHeads), value: part(heads + kvHeads, kvHeads) };
  }
  const size = headSize(query, heads, 'num_heads');
  for (const input of [key, value]) {
    const { name, shape, dtype } = input;
    const isNew = shape.length === 3 && shape[0] === batch && (shape[1] === length || shape[1] === 0);
    if (!isNew || shape[2] !== kvHeads * size || shape[1] !== key.shape[1]) {
      throw rangeError(
        'shape',
        `${name} has shape [${shape}]; with query [${query.shape}] it must be (B, L, Hkv*D) = [${batch},${length},${kvHeads * size}]` +
          (name === 'value' ? `, as key is` : ', or without rows where the past holds all keys'),
      );
    }
    if (dtype !== query.dtype) {
      throw typeError('type', `${name} is ${dtype} but query is ${query.dtype}; they must be the same`);
    }
  }
  const sizes = { batch, length: key.shape[1], heads: kvHeads, size };
  return {
    query: rowsInLine(query, { batch, length, heads, size }),
    key: rowsInLine(key, sizes),
    value: rowsInLine(value, sizes),
  };
}

/**
 * @param {FloatInput} query
 * @param {number} heads
 * @param {string} what
 */
function headSize({ shape }, heads, what) {
  const size = shape[2] / heads;
  if (!Number.isInteger(size)) {
    throw rangeError(
      'shape',
      `query has shape [${shape}]: its last dimension ${shape[2]} is not a multiple of ${what}, ${heads}`,
    );
  }
  if (size === 0 || size % 8 !== 0) {
    throw rangeError(
      'shape',
      `the head size is ${size}: query [${shape}] has ${heads} heads. It must be a multiple of 8`,
    );
  }
  return size;
}

/**
 * @param {Record<string, any>} inputs
 * @param {HeadRows} query
 * @param {number} kvHeads
 */
function readPast(inputs, query, kvHeads) {
  const key = readFloat(inputs, 'past_key');
  const value = readFloat(inputs, 'past_value');
  if (key === undefined || value === undefined) {
    if (key === undefined && value === undefined) return undefined;
    throw rangeError('option', `past_key and past_value go together; ${key ? 'past_value' : 'past_key'} is missing`);
  }
  const wanted = [query.batch, kvHeads, key.shape[2], query.size];
  for (const { name, shape, dtype } of [key, value]) {
    if (shape.length !== 4 || shape.some((size, axis) => size !== wanted[axis])) {
      throw rangeError(
        'shape',
        `${name} has shape [${shape}]; it must be (B, Hkv, P, D) = [${wanted.map((n) => n ?? 'P')}]`,
      );
    }
    if (dtype !== query.dtype) {
      throw typeError('type', `${name} is ${dtype} but query is ${query.dtype}; they must be the same`);
    }
  }
  return { key: rowsHeadsFirst(key), value: rowsHeadsFirst(value) };
}

/**
 * seqlens_k and total_sequence_length, and what they say about the rows.
 * @param {Record<string, any>} inputs
 * @param {HeadRows} query
 * @param {number} added new keys: L, or 0
 * @param {{ key: HeadRows } | undefined} past
 */
function readLengths(inputs, { batch, length: rows }, added, past) {
  const total = readScalar(inputs, 'total_sequence_length');
  if (total === undefined) throw typeError('type', 'input total_sequence_length is missing');
  if (total < 1) throw rangeError('option', `total_sequence_length is ${total}; it must be at least 1`);
  const held = past ? past.key.length : 0;
  const isShared = added === 0;
  const firstPrompt = rows === total;
  if (rows > 1 && !firstPrompt && batch !== 1) {
    throw rangeError(
      'shape',
      `the batch size is ${batch}; it must be 1 where the query has several rows (${rows}) and is not the whole of total_sequence_length, ${total}`,
    );
  }
  if (isShared && total > held) {
    throw rangeError(
      'shape',
      `total_sequence_length is ${total} and key has no rows, but past_key has ${past ? `only ${held}` : 'not been given'}`,
    );
  }
  const capacity = Math.max(total, held);
  const lengths = readSeqlens(inputs, batch).map((last, b) => {
    const name = `seqlens_k[${b}] is ${last}`;
    if (last < 0 || last >= capacity) {
      throw rangeError('option', `${name}; it must be from 0 to ${capacity - 1}, the last row of the present`);
    }
    if (!firstPrompt && last + 1 < rows) {
      throw rangeError('option', `${name}, which is too small for a query of ${rows} rows`);
    }
    const before = last + 1 - rows;
    if (!firstPrompt && !isShared && before > held) {
      throw rangeError('option', `${name}: that needs ${before} rows of the past, which has ${held}`);
    }
    return last + 1;
  });
  const offsets = lengths.map((length) => (firstPrompt ? 0 : length - rows));
  return {
    lengths: Int32Array.from(lengths),
    pastLengths: Int32Array.from(isShared ? lengths : offsets),
    offsets: Int32Array.from(offsets),
    firstPrompt,
    total,
    capacity,
  };
}

/**
 * seqlens_k: (B), and as older models have it (B, 1) or (1, B).
 * @param {Record<string, any>} inputs
 * @param {number} batch
 */
function readSeqlens(inputs, batch) {
  const seqlens = readIntegers(inputs, 'seqlens_k');
  if (seqlens === undefined) throw typeError('type', 'input seqlens_k is missing');
  const { shape, values } = seqlens;
  const isVector = shape.length === 1 || (shape.length === 2 && (shape[0] === 1 || shape[1] === 1));
  if (!isVector || values.length !== batch) {
    throw rangeError('shape', `seqlens_k has shape [${shape}]; it must be (B) = [${batch}]`);
  }
  return values;
}
