// What the com.microsoft operators add to the scores: attention_bias, and the mask value of MultiHeadAttention's padded keys.
import { rangeError } from '../errors.js';
import { readFloat, readIntegers } from './onnx-inputs.js';
import { toFloat32 } from './onnx-layout.js';

/**
 * @typedef {import('./onnx-inputs.js').FloatInput} FloatInput
 * @typedef {{ batch: number, heads: number, rows: number, past: number, total: number }} ScoreSizes B, H, L, P, T
 * @typedef {{ data: Float32Array, rows: number }} Padding added to the scores of all heads: (B, rows, T), rows 1 or L
 */

/**
 * attention_bias, (B or 1, H or 1, L, T).
 * @param {Record<string, any>} inputs
 * @param {ScoreSizes} sizes
 * @returns {FloatInput | undefined}
 */
export function readAttentionBias(inputs, { batch, heads, rows, total }) {
  const bias = readFloat(inputs, 'attention_bias');
  if (bias === undefined) return undefined;
  const { shape } = bias;
  const fits =
    shape.length === 4 &&
    (shape[0] === 1 || shape[0] === batch) &&
    (shape[1] === 1 || shape[1] === heads) &&
    shape[2] === rows &&
    shape[3] === total;
  if (!fits) {
    const wanted = `[1 or ${batch},1 or ${heads},${rows},${total}]`;
    throw rangeError('shape', `attention_bias has shape [${shape}]; it must be (B or 1, H or 1, L, T) = ${wanted}`);
  }
  return bias;
}

/**
 * key_padding_mask as what is added to the scores: `value` where a key is masked, 0 elsewhere. Undefined where nothing is masked.
 *
 * (B) and (3B + 2): lengths, keys from there on are masked (of the second form only the first B numbers count: the others are
 * where sequences start). (B, T), (B, L, T), and (B, S) with S new keys behind a past, whose keys then all take part: a number
 * above 0 takes part. (B, 1) masks nothing, unless T is 1.
 * @param {Record<string, any>} inputs
 * @param {ScoreSizes} sizes
 * @param {number} value
 * @returns {Padding | undefined}
 */
export function readPadding(inputs, { batch, rows, past, total }, value) {
  const mask = readIntegers(inputs, 'key_padding_mask');
  if (mask === undefined) return undefined;
  const { shape, values } = mask;
  const is = (/** @type {number[]} */ ...wanted) =>
    wanted.length === shape.length && wanted.every((size, axis) => size === shape[axis]);
  if (is(batch) || is(3 * batch + 2)) {
    const ends = values.slice(0, batch);
    const wrong = ends.findIndex((end) => end < 0);
    if (wrong >= 0) {
      throw rangeError(
        'option',
        `key_padding_mask[${wrong}] is ${ends[wrong]}; the length of a key sequence is 0 or more`,
      );
    }
    return padding(batch, 1, total, value, (b, _, key) => key < ends[b]);
  }
  if (is(batch, total)) return padding(batch, 1, total, value, (b, _, key) => values[b * total + key] > 0);
  if (is(batch, 1)) return undefined;
  const added = total - past;
  if (is(batch, added)) {
    return padding(batch, 1, total, value, (b, _, key) => key < past || values[b * added + key - past] > 0);
  }
  if (is(batch, rows, total)) {
    return padding(batch, rows, total, value, (b, row, key) => values[(b * rows + row) * total + key] > 0);
  }
  const forms = `[${batch}], [${3 * batch + 2}], [${batch},${total}], [${batch},${added}] or [${batch},${rows},${total}]`;
  throw rangeError('shape', `key_padding_mask has shape [${shape}]; it must be ${forms}`);
}

/**
 * @param {number} batch
 * @param {number} rows
 * @param {number} total
 * @param {number} value
 * @param {(b: number, row: number, key: number) => boolean} takesPart
 * @returns {Padding | undefined}
 */
function padding(batch, rows, total, value, takesPart) {
  const data = new Float32Array(batch * rows * total);
  let masked = false;
  for (let b = 0, at = 0; b < batch; ++b) {
    for (let row = 0; row < rows; ++row) {
      for (let key = 0; key < total; ++key, ++at) {
        if (takesPart(b, row, key)) continue;
        data[at] = value;
        masked = true;
      }
    }
  }
  return masked ? { data, rows } : undefined;
}

/**
 * Both together as option `bias` of `sdpa.attention`, widened with zeros from T to the number of keys that it is given.
 * @param {FloatInput | undefined} bias
 * @param {Padding | undefined} added
 * @param {ScoreSizes} sizes
 * @param {number} keys at least T; keys beyond T do not take part
 * @returns {{ bias?: any }}
 */
export function biasOption(bias, added, { batch, rows, total }, keys) {
  if (added === undefined) {
    if (bias === undefined) return {};
    const { data, dtype, shape } = bias;
    const lines = shape[0] * shape[1] * rows;
    return { bias: { data: widen(data, lines, total, keys), shape: [...shape.slice(0, 3), keys], dtype } };
  }
  if (bias === undefined) {
    const data = widen(added.data, batch * added.rows, total, keys);
    return { bias: { data, shape: [batch, 1, added.rows, keys] } };
  }
  const values = toFloat32(bias);
  const [batches, heads] = bias.shape;
  const sum = new Float32Array(batch * heads * rows * keys);
  for (let b = 0, at = 0; b < batch; ++b) {
    for (let h = 0; h < heads; ++h) {
      for (let row = 0; row < rows; ++row, at += keys) {
        const from = (((batches === 1 ? 0 : b) * heads + h) * rows + row) * total;
        const mask = (b * added.rows + (added.rows === 1 ? 0 : row)) * total;
        for (let key = 0; key < total; ++key) sum[at + key] = values[from + key] + added.data[mask + key];
      }
    }
  }
  return { bias: { data: sum, shape: [batch, heads, rows, keys] } };
}

/**
 * Lines of `from` elements as lines of `to`, zeros behind.
 * @param {any} data
 * @param {number} lines
 * @param {number} from
 * @param {number} to
 */
function widen(data, lines, from, to) {
  if (from === to) return data;
  const out = new data.constructor(lines * to);
  for (let line = 0; line < lines; ++line) out.set(data.subarray(line * from, (line + 1) * from), line * to);
  return out;
}

/**
 * Scores without the columns beyond T.
 * @param {{ data: Float32Array, shape: number[] }} scores (B, H, L, keys)
 * @param {number} total
 * @returns {{ data: Float32Array, shape: number[] }} (B, H, L, T)
 */
export function cropScores({ data, shape }, total) {
  const [batch, heads, rows, keys] = shape;
  if (keys === total) return { data, shape };
  const lines = batch * heads * rows;
  const out = new Float32Array(lines * total);
  for (let line = 0; line < lines; ++line) out.set(data.subarray(line * keys, line * keys + total), line * total);
  return { data: out, shape: [batch, heads, rows, total] };
}
