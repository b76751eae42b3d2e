// com.microsoft GroupQueryAttention on the library's own attention: the cache is joined and rotated here, and its lengths and
// positions become options. Nothing here computes attention.
//
// Source of the rules: docs/ContribOperators.md of microsoft/onnxruntime, and what its CPU operator does where that says nothing.
import { rangeError, show } from '../errors.js';
import { checkNames, readFloat, readInteger, readNumber } from './onnx-inputs.js';
import { fromFloat32, headsLast, outputOf, toFloat32 } from './onnx-layout.js';
import { biasOption, cropScores, readAttentionBias } from './onnx-ms-bias.js';
import { readTensors } from './onnx-ms-gqa-inputs.js';
import { readCaches, readPositions, rotated } from './onnx-ms-gqa-rotary.js';
import { asOperand, inType, joinRows } from './onnx-ms-rows.js';

/**
 * @typedef {import('./onnx-inputs.js').OnnxTensor} OnnxTensor
 * @typedef {import('./onnx-attention.js').OnnxOutput} OnnxOutput
 * @typedef {import('./onnx-layout.js').Plain} Plain
 * @typedef {import('./onnx-ms-mha.js').Integers} Integers
 * @typedef {import('./onnx-ms-gqa-inputs.js').GqaTensors} GqaTensors
 * @typedef {object} MsGroupQueryAttentionInputs B batch, Hq and Hkv heads, D head size (a multiple of 8), L new tokens, P rows of the
 *   past, T total_sequence_length; query, key, value and the past are of one float type, the others of any
 * @property {OnnxTensor} query (B, L, Hq*D), or with key and value (B, L, Hq*D + 2*Hkv*D)
 * @property {OnnxTensor | null} [key] (B, L, Hkv*D), or (B, 0, Hkv*D): the past holds all keys and nothing is appended
 * @property {OnnxTensor | null} [value] as key
 * @property {OnnxTensor | null} [past_key] (B, Hkv, P, D); not read where L = T, the first prompt
 * @property {OnnxTensor | null} [past_value] (B, Hkv, P, D)
 * @property {Integers} seqlens_k (B): the number of keys of each sequence, new ones included, minus 1
 * @property {Integers} total_sequence_length one number: the largest number of keys of a sequence
 * @property {OnnxTensor | null} [cos_cache] (rows, R/2), R <= D: columns that are rotated
 * @property {OnnxTensor | null} [sin_cache] as cos_cache
 * @property {Integers | null} [position_ids] (B, L): rows of the tables; in the first prompt the first number counts, as an offset for
 *   all sequences
 * @property {OnnxTensor | null} [attention_bias] (B or 1, Hq or 1, L, T), added to the scaled and capped scores
 * @property {OnnxTensor | null} [head_sink] (Hq): one more logit in the denominator of each head
 * @property {null} [k_scale] not supported, as the three below
 * @property {null} [v_scale]
 * @property {null} [q_norm_weight]
 * @property {null} [k_norm_weight]
 * @typedef {object} MsGroupQueryAttentionAttributes attributes of GroupQueryAttention
 * @property {number | bigint} num_heads Hq
 * @property {number | bigint} kv_num_heads Hkv, which divides it
 * @property {0 | 1 | boolean} [causal] default 1
 * @property {number} [scale] default and 0: 1/sqrt(D)
 * @property {number} [softcap] default 0: none
 * @property {number | bigint} [local_window_size] keys that a query sees, its own included; -1 (default): all
 * @property {0 | 1 | boolean} [do_rotary] rotates query and new keys by the tables
 * @property {0 | 1 | boolean} [rotary_interleaved] pairs are the columns 2k and 2k + 1; else (default) k and k + R/2
 * @property {-1 | 0 | 1} [smooth_softmax] 1: one more logit, 0, in the denominator; head_sink takes its place where given
 * @property {0 | 1 | 2} [qk_output] output_qk: none (default), before or after the softmax
 * @property {'NONE'} [k_quant_type] nothing else is supported
 * @property {'NONE'} [v_quant_type]
 * @property {0} [kv_cache_bit_width]
 * @property {0} [sliding_window_cache]
 * @property {number} [qk_norm_epsilon] belongs to q_norm_weight and k_norm_weight; ignored
 * @typedef {object} MsGroupQueryAttentionOutputs outputs of GroupQueryAttention
 * @property {OnnxOutput} output (B, L, Hq*D) in query's type
 * @property {OnnxOutput} present_key (B, Hkv, max(T, P), D): what was read of the past, the new rows (rotated) behind it, zeros beyond
 * @property {OnnxOutput} present_value likewise
 * @property {OnnxOutput} [output_qk] (B, Hq, L, T) where qk_output asks for it; 0 where a key does not take part
 */

const OPERATOR = 'com.microsoft.GroupQueryAttention';
const INPUTS = [
  'query',
  'key',
  'value',
  'past_key',
  'past_value',
  'seqlens_k',
  'total_sequence_length',
  'cos_cache',
  'sin_cache',
  'position_ids',
  'attention_bias',
  'head_sink',
  'k_scale',
  'v_scale',
  'q_norm_weight',
  'k_norm_weight',
];
const ATTRIBUTES = [
  'num_heads',
  'kv_num_heads',
  'causal',
  'scale',
  'softcap',
  'local_window_size',
  'do_rotary',
  'rotary_interleaved',
  'smooth_softmax',
  'qk_output',
  'k_quant_type',
  'v_quant_type',
  'kv_cache_bit_width',
  'sliding_window_cache',
  'qk_norm_epsilon',
];

/**
 * GroupQueryAttention of com.microsoft.
 *
 * A query of T rows is a first prompt: positions begin at 0 and the past is not read. Otherwise the new tokens are the last L of
 * each sequence; several of them (L > 1) only with B = 1.
 * @param {import('../sdpa.js').Sdpa} sdpa a loaded instance
 * @param {MsGroupQueryAttentionInputs} inputs
 * @param {MsGroupQueryAttentionAttributes} attributes
 * @returns {MsGroupQueryAttentionOutputs}
 * @throws {TypeError | RangeError} each an AttentionError; the message says the formal name
 */
export function msGroupQueryAttention(sdpa, inputs, attributes) {
  checkNames('input', inputs, INPUTS, OPERATOR);
  checkNames('attribute', attributes, ATTRIBUTES, OPERATOR);
  return compute(sdpa, { ...inputs }, { ...attributes });
}

/**
 * @param {import('../sdpa.js').Sdpa} sdpa
 * @param {MsGroupQueryAttentionInputs} inputs
 * @param {MsGroupQueryAttentionAttributes} attributes
 * @returns {MsGroupQueryAttentionOutputs}
 */
function compute(sdpa, inputs, attributes) {
  for (const name of /** @type {const} */ (['k_scale', 'v_scale', 'q_norm_weight', 'k_norm_weight'])) {
    if (inputs[name] !== undefined && inputs[name] !== null) {
      throw rangeError('unsupported', `input ${name} is not supported`);
    }
  }
  const settings = readSettings(attributes);
  const tensors = readTensors(inputs, attributes);
  const { key, value, past, dtype, isFloat16Array, pastLengths, lengths, total, capacity } = tensors;
  const { batch, heads, length: rows, size } = tensors.query;
  const sizes = { batch, heads, rows, past: 0, total };
  const bias = readAttentionBias(inputs, sizes);
  const sinks = readSinks(inputs, heads);
  const tables = readCaches(inputs, size, total);
  if (settings.rotates && !tables) throw rangeError('option', 'do_rotary is 1, which needs cos_cache and sin_cache');
  const positions = readPositions(inputs, tensors, settings.rotates ? tables?.rows : undefined);

  const turn = (/** @type {typeof key} */ part) =>
    settings.rotates && tables ? rotated(part, tables, positions, settings.interleaved) : part;
  // Keys are stored in their type, as the next step finds them; the query is used as it comes out.
  const newKey = key.length === 0 ? key : inType(turn(key), dtype);
  const presentKey = joinRows(past?.key, pastLengths, newKey, capacity);
  const presentValue = joinRows(past?.value, pastLengths, value, capacity);
  const result = sdpa.attention(asOperand(turn(tensors.query), 'bhld'), presentKey, presentValue, {
    ...settings.options,
    ...(settings.causal && { causal: true, queryOffset: tensors.offsets }),
    ...biasOption(bias, undefined, sizes, capacity),
    ...(sinks ? { sinks } : settings.smooth && { smoothSoftmax: true }),
    ...(settings.stage && { scores: settings.stage }),
    kvLengths: lengths,
  });

  const made = (/** @type {Plain} */ tensor) => outputOf(tensor, isFloat16Array);
  const data = headsLast(result.out.data, [batch, heads, rows, size]);
  /** @type {MsGroupQueryAttentionOutputs} */
  const outputs = {
    output: made(fromFloat32(data, [batch, rows, heads * size], dtype)),
    present_key: made(presentKey),
    present_value: made(presentValue),
  };
  if (result.scores) {
    const scores = cropScores(result.scores, total);
    if (settings.stage === 'biased') clearHidden(scores, tensors, settings);
    outputs.output_qk = made(fromFloat32(scores.data, scores.shape, dtype));
  }
  return outputs;
}

/**
 * @typedef {ReturnType<typeof readSettings>} Settings
 * @param {Record<string, any>} attributes
 */
function readSettings(attributes) {
  const flag = (/** @type {string} */ name, /** @type {number} */ fallback) =>
    readInteger(attributes, name, fallback, (value) => value === 0 || value === 1, '0 or 1') === 1;
  for (const name of ['k_quant_type', 'v_quant_type']) {
    const type = attributes[name] ?? 'NONE';
    if (type !== 'NONE')
      throw rangeError('unsupported', `${name} is ${show(type)}: quantised caches are not supported`);
  }
  for (const name of ['kv_cache_bit_width', 'sliding_window_cache']) {
    const value = readInteger(attributes, name, 0, () => true, '0');
    if (value !== 0) throw rangeError('unsupported', `${name} is ${value}; only 0 is supported`);
  }
  const causal = flag('causal', 1);
  const isWindow = (/** @type {number} */ size) => size === -1 || size >= 1;
  const window = readInteger(attributes, 'local_window_size', -1, isWindow, '-1 (all keys) or at least 1') ?? -1;
  if (!causal && window !== -1) {
    throw rangeError('option', `local_window_size is ${window}; it must be -1 where causal is 0`);
  }
  const smooth = readInteger(attributes, 'smooth_softmax', -1, (value) => value >= -1 && value <= 1, '-1, 0 or 1');
  const mode = readInteger(attributes, 'qk_output', 0, (value) => value >= 0 && value <= 2, '0, 1 or 2') ?? 0;
  const scale = readNumber(attributes, 'scale', Number.isFinite, 'a finite number');
  const softcap = readNumber(attributes, 'softcap', (c) => Number.isFinite(c) && c >= 0, 'a finite number from 0');
  readNumber(attributes, 'qk_norm_epsilon', () => true, 'a number');
  return {
    causal,
    window,
    rotates: flag('do_rotary', 0),
    interleaved: flag('rotary_interleaved', 0),
    smooth: smooth === 1,
    stage: /** @type {const} */ ([undefined, 'biased', 'weights'])[mode],
    options: {
      ...(scale && { scale }),
      ...(softcap && { softcap }),
      // Theirs counts the query's own key.
      ...(window !== -1 && { window: /** @type {[number, number]} */ ([window - 1, Infinity]) }),
    },
  };
}

/**
 * @param {Record<string, any>} inputs
 * @param {number} heads
 */
function readSinks(inputs, heads) {
  const sink = readFloat(inputs, 'head_sink');
  if (sink === undefined) return undefined;
  if (sink.shape.length !== 1 || sink.shape[0] !== heads) {
    throw rangeError('shape', `head_sink has shape [${sink.shape}]; it must be (Hq) = [${heads}]`);
  }
  const logits = new Float32Array(toFloat32(sink));
  const wrong = logits.findIndex((logit) => !(logit < Infinity));
  if (wrong >= 0) throw rangeError('option', `head_sink[${wrong}] is ${logits[wrong]}; it must be below Infinity`);
  return logits;
}

/**
 * Scores before the softmax hold 0, not -Infinity, where position or length hides a key.
 * @param {{ data: Float32Array, shape: number[] }} scores (B, Hq, L, T)
 * @param {GqaTensors} tensors
 * @param {Settings} settings
 */
function clearHidden({ data, shape }, { offsets, lengths }, { causal, window }) {
  const [batch, heads, rows, total] = shape;
  for (let b = 0, at = 0; b < batch; ++b) {
    for (let row = 0; row < heads * rows; ++row, at += total) {
      const position = offsets[b] + (row % rows);
      const end = causal ? Math.min(position + 1, lengths[b]) : lengths[b];
      const begin = window === -1 ? 0 : Math.max(0, position + 1 - window);
      data.fill(0, at, at + Math.min(begin, total));
      data.fill(0, at + Math.min(end, total), at + total);
    }
  }
}
