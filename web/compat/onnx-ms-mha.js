// com.microsoft MultiHeadAttention on the library's own attention: packings, masks that are added, past and present become its
// operands and options. Nothing here computes attention.
//
// Source of the rules: docs/ContribOperators.md of microsoft/onnxruntime, and what its CPU operator does where that says nothing.
import { checkNames, readInteger, readNumber } from './onnx-inputs.js';
import { fromFloat32, headsLast, outputOf } from './onnx-layout.js';
import { biasOption, cropScores, readAttentionBias, readPadding } from './onnx-ms-bias.js';
import { readTensors } from './onnx-ms-mha-inputs.js';
import { asOperand, joinRows } from './onnx-ms-rows.js';
import { addOutput } from './onnx-outputs.js';

/**
 * @typedef {import('./onnx-inputs.js').OnnxTensor} OnnxTensor
 * @typedef {import('./onnx-attention.js').OnnxOutput} OnnxOutput
 * @typedef {import('./onnx-layout.js').Plain} Plain
 * @typedef {import('./onnx-ms-mha-inputs.js').MhaTensors} MhaTensors
 * @typedef {OnnxTensor | ArrayLike<number> | ArrayLike<bigint>} Integers a tensor of int32 or int64, or a bare vector
 * @typedef {object} MsMultiHeadAttentionInputs B batch, H heads, L query length, S new keys, P keys of the past, T = P + S; query,
 *   key, value and the past are of one float type, the others of any
 * @property {OnnxTensor} query (B, L, H*D), or with key and value (B, L, H, 3, D)
 * @property {OnnxTensor | null} [key] (B, S, H*D), or with value (B, S, H, 2, D), or (B, H, S, D)
 * @property {OnnxTensor | null} [value] (B, S, H*Dv), or (B, H, S, D) together with such a key
 * @property {OnnxTensor | null} [bias] (H*D + H*D + H*Dv), added to query, key and value; with a key (B, H, S, D) to the query alone
 * @property {Integers | null} [key_padding_mask] lengths (B) or (3B + 2: the lengths come first), or what takes part (above 0):
 *   (B, T), (B, S) of the new keys, (B, L, T); (B, 1) masks nothing
 * @property {OnnxTensor | null} [attention_bias] (B or 1, H or 1, L, T), added to the scaled scores
 * @property {OnnxTensor | null} [past_key] (B, H, P, D), or (B, H, M, D) with past_sequence_length
 * @property {OnnxTensor | null} [past_value] (B, H, P, Dv), or (B, H, M, Dv)
 * @property {Integers | null} [past_sequence_length] one number, P: the past is a buffer of M rows, and new rows go in from row P on
 * @property {Integers | null} [cache_indirection] (batch, beams, M), B = batch·beams: row j of beam w's past is that of the beam named here
 * @typedef {object} MsMultiHeadAttentionAttributes attributes of MultiHeadAttention
 * @property {number | bigint} num_heads H
 * @property {number} [mask_filter_value] added to the scores of masked keys: -10000 (default) hides them behind any key that takes
 *   part, but a row whose keys are all masked is a normal row
 * @property {number} [scale] default and 0: 1/sqrt(D)
 * @property {0 | 1 | boolean} [unidirectional] key j only where j <= i + P; the last query sees all keys (which says something new
 *   only where L is not S: so the CPU operator has it)
 * @typedef {object} MsMultiHeadAttentionOutputs outputs of MultiHeadAttention
 * @property {OnnxOutput} output (B, L, H*Dv) in query's type
 * @property {OnnxOutput} present_key (B, H, T, D), or (B, H, M, D)
 * @property {OnnxOutput} present_value (B, H, T, Dv), or (B, H, M, Dv)
 * @property {OnnxOutput} qk (B, H, L, T): scaled scores with all that is added to them, before the softmax; -Infinity where
 *   `unidirectional` hides a key
 */

const OPERATOR = 'com.microsoft.MultiHeadAttention';
const INPUTS = [
  'query',
  'key',
  'value',
  'bias',
  'key_padding_mask',
  'attention_bias',
  'past_key',
  'past_value',
  'past_sequence_length',
  'cache_indirection',
];
const ATTRIBUTES = ['num_heads', 'mask_filter_value', 'scale', 'unidirectional'];

/**
 * MultiHeadAttention of com.microsoft.
 *
 * `output` is always there, the present where a past is given; what else is read by name is made then, as it is for
 * Attention of ai.onnx.
 * @param {import('../sdpa.js').Sdpa} sdpa a loaded instance
 * @param {MsMultiHeadAttentionInputs} inputs
 * @param {MsMultiHeadAttentionAttributes} attributes
 * @returns {MsMultiHeadAttentionOutputs}
 * @throws {TypeError | RangeError} each an AttentionError; the message says the formal name
 */
export function msMultiHeadAttention(sdpa, inputs, attributes) {
  checkNames('input', inputs, INPUTS, OPERATOR);
  checkNames('attribute', attributes, ATTRIBUTES, OPERATOR);
  // What is made later reads the same tensors: a view of wasm memory would be empty once that has grown.
  const given = { ...inputs };
  const settings = { ...attributes };
  const { output, presentKey, presentValue } = compute(sdpa, given, settings, false);

  const outputs = { output };
  const presentOf = (/** @type {'key' | 'value'} */ name) => {
    const tensors = readTensors(given, settings);
    const rows = tensors[name];
    const fresh = joinRows(undefined, new Int32Array(rows.batch), rows, rows.length);
    return outputOf(fresh, tensors.isFloat16Array);
  };
  addOutput(outputs, 'present_key', presentKey, () => presentOf('key'));
  addOutput(outputs, 'present_value', presentValue, () => presentOf('value'));
  addOutput(outputs, 'qk', undefined, () => compute(sdpa, given, settings, true).qk);
  return /** @type {MsMultiHeadAttentionOutputs} */ (outputs);
}

/**
 * @param {import('../sdpa.js').Sdpa} sdpa
 * @param {MsMultiHeadAttentionInputs} inputs
 * @param {MsMultiHeadAttentionAttributes} attributes
 * @param {boolean} withScores
 */
function compute(sdpa, inputs, attributes, withScores) {
  const tensors = readTensors(inputs, attributes);
  const { query, key, value, past, dtype, isFloat16Array } = tensors;
  const { batch, heads, length: rows } = query;
  const before = past ? past.length : 0;
  const total = before + key.length;
  const sizes = { batch, heads, rows, past: before, total };
  const bias = readAttentionBias(inputs, sizes);
  const columns = past ? past.capacity : total;
  const options = readOptions(attributes, sizes, columns);
  const padding = readPadding(inputs, sizes, readMaskValue(attributes));

  const lengths = new Int32Array(batch).fill(before);
  const isBuffer = past !== undefined && past.capacity > total;
  const presentKey = past && joinRows(past.key, lengths, key, past.capacity, isBuffer);
  const presentValue = past && joinRows(past.value, lengths, value, past.capacity, isBuffer);
  const headsFirst = tensors.keysHeadsFirst || past !== undefined;
  const layout = headsFirst ? 'bhld' : 'blhd';
  const keys = presentKey ? beamRows(presentKey, past) : asOperand(key, layout);
  const values = presentValue ? beamRows(presentValue, past) : asOperand(value, layout);
  const result = sdpa.attention(asOperand(query, layout), keys, values, {
    ...options,
    ...biasOption(bias, padding, sizes, columns),
    ...(isBuffer && { kvLengths: new Int32Array(batch).fill(total) }),
    ...(withScores && { scores: 'biased' }),
    layout,
  });

  const size = value.size;
  const data = headsFirst ? headsLast(result.out.data, [batch, heads, rows, size]) : result.out.data;
  const made = (/** @type {Plain} */ tensor) => outputOf(tensor, isFloat16Array);
  const scores = result.scores && cropScores(result.scores, total);
  return {
    output: made(fromFloat32(data, [batch, rows, heads * size], dtype)),
    presentKey: presentKey && made(presentKey),
    presentValue: presentValue && made(presentValue),
    qk: scores && made(fromFloat32(scores.data, scores.shape, dtype)),
  };
}

/**
 * @param {MsMultiHeadAttentionAttributes} attributes
 * @param {import('./onnx-ms-bias.js').ScoreSizes} sizes
 * @param {number} keys that attention is given
 * @returns {import('../validate.js').AttentionOptions}
 */
function readOptions(attributes, { rows, past, total }, keys) {
  const scale = readNumber(attributes, 'scale', Number.isFinite, 'a finite number');
  const isFlag = (/** @type {number} */ flag) => flag === 0 || flag === 1;
  const unidirectional = readInteger(attributes, 'unidirectional', 0, isFlag, '0 or 1') === 1;
  const options = scale ? { scale } : {};
  if (!unidirectional || rows === 1) return options;
  if (rows === total - past) return { ...options, causal: true, queryOffset: past };
  const data = new Uint8Array(rows * keys).fill(1);
  for (let row = 0; row < rows - 1; ++row) data.fill(0, row * keys + Math.min(row + past + 1, keys), (row + 1) * keys);
  return { ...options, mask: { data, shape: [rows, keys] } };
}

/** @param {MsMultiHeadAttentionAttributes} attributes */
function readMaskValue(attributes) {
  const isValue = (/** @type {number} */ value) => value < Infinity;
  return readNumber(attributes, 'mask_filter_value', isValue, 'a number below Infinity') ?? -10000;
}

/**
 * The present as the beams see it: each row of the past is that of the beam which cache_indirection names.
 * @param {Plain} present (B, H, M, D)
 * @param {MhaTensors['past']} past
 * @returns {Plain}
 */
function beamRows(present, past) {
  if (past === undefined || past.indirection === undefined) return present;
  const { values, beams, length: lines } = past.indirection;
  const [batch, heads, capacity, size] = present.shape;
  const data = present.data.slice();
  for (let b = 0; b < batch; ++b) {
    const first = b - (b % beams);
    for (let row = 0; row < past.length; ++row) {
      const from = first + values[b * lines + row];
      for (let h = 0; h < heads && from !== b; ++h) {
        const source = ((from * heads + h) * capacity + row) * size;
        data.set(present.data.subarray(source, source + size), ((b * heads + h) * capacity + row) * size);
      }
    }
  }
  return { ...present, data };
}
