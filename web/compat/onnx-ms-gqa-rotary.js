// Rotary embedding inside GroupQueryAttention: which row of the tables each token takes.
import { rangeError } from '../errors.js';
import { readIntegers } from './onnx-inputs.js';
import { floatRows } from './onnx-ms-rows.js';
import { readTables } from './onnx-rotary-inputs.js';
import { rotateRows } from './onnx-rotary.js';

/**
 * @typedef {import('./onnx-ms-rows.js').HeadRows} HeadRows
 * @typedef {import('./onnx-ms-gqa-inputs.js').GqaTensors} GqaTensors
 */

/**
 * cos_cache and sin_cache, (rows, R/2) with R up to D and R/2 a multiple of 8, rows for every position up to the total length.
 * @param {Record<string, any>} inputs
 * @param {number} size D
 * @param {number} total
 * @returns {import('./onnx-rotary-inputs.js').Tables | undefined}
 */
export function readCaches(inputs, size, total) {
  const present = ['cos_cache', 'sin_cache'].filter((name) => inputs[name] !== undefined && inputs[name] !== null);
  if (present.length === 0) return undefined;
  if (present.length === 1) {
    throw rangeError('option', `cos_cache and sin_cache go together; only ${present[0]} is given`);
  }
  const tables = readTables(inputs, 2);
  const { rows, pairs } = tables;
  if (size % 16 !== 0)
    throw rangeError('shape', `the head size is ${size}; with cos_cache it must be a multiple of 16`);
  if (pairs > size / 2 || pairs % 8 !== 0) {
    throw rangeError(
      'shape',
      `cos_cache has shape [${rows},${pairs}]: its width must be a multiple of 8, at most half of the head size ${size}`,
    );
  }
  if (rows < total) {
    throw rangeError('shape', `cos_cache has ${rows} rows, fewer than total_sequence_length, ${total}`);
  }
  return tables;
}

/**
 * The row of the tables for each token, (B·L). In a first prompt only the first number of position_ids counts: all sequences
 * begin there and go on by one. Later it is (B, L or more); without it each token has its own position.
 * @param {Record<string, any>} inputs
 * @param {GqaTensors} tensors
 * @param {number | undefined} tableRows undefined where nothing is rotated: then the shape alone is checked
 * @returns {Int32Array}
 */
export function readPositions(inputs, { query, offsets, firstPrompt }, tableRows) {
  const { batch, length } = query;
  const ids = readIntegers(inputs, 'position_ids');
  if (ids && (ids.shape.length !== 2 || ids.shape[0] !== batch || ids.shape[1] < length)) {
    throw rangeError('shape', `position_ids has shape [${ids.shape}]; it must be (B, L) = [${batch},${length}]`);
  }
  const positions = new Int32Array(batch * length);
  if (tableRows === undefined) return positions;
  for (let b = 0, at = 0; b < batch; ++b) {
    for (let l = 0; l < length; ++l, ++at) {
      let index = -1;
      if (ids) index = firstPrompt ? 0 : b * ids.shape[1] + l;
      const first = ids ? ids.values[index] : offsets[b];
      const position = ids && !firstPrompt ? first : first + l;
      if (first < 0 || position >= tableRows) {
        const what = ids ? `position_ids[${index}] is ${first}` : `position ${position}`;
        const last = position === first ? '' : `, so token ${l} takes row ${position}`;
        throw rangeError('option', `${what}${last}; cos_cache has rows 0 to ${tableRows - 1}`);
      }
      positions[at] = position;
    }
  }
  return positions;
}

/**
 * @param {HeadRows} rows
 * @param {import('./onnx-rotary-inputs.js').Tables} tables
 * @param {Int32Array} positions
 * @param {boolean} interleaved
 * @returns {HeadRows} float32
 */
export function rotated(rows, tables, positions, interleaved) {
  const turned = floatRows(rows);
  const [batchStride, headStride, rowStride] = turned.strides;
  const { batch, heads, length } = turned;
  rotateRows(turned.data, { batch, heads, length, batchStride, headStride, rowStride }, tables, positions, interleaved);
  return turned;
}
