// ai.onnx Attention, opset 23 to 25, on the library's own attention: the operator's names, layouts, cache and masks are turned
// into its options. Nothing here computes attention.
//
// Layout: a 3-D input (B, L, H*D) is (B, L, H, D) where it lies, so it runs as 'blhd' and nothing is transposed; only together
// with a past, which is 4-D (B, H, P, D), is the query turned heads first (the keys are copied for the present anyway).
//
// Source of the rules: docs/Operators.md of onnx/onnx (Attention 23, 24) and, for opset 25, its window attributes.
import { rangeError } from '../errors.js';
import { checkNames, readFloat, readInteger, readLengths, readMask, readNumber } from './onnx-inputs.js';
import { concatenate, fromFloat32, headsFirst, headsLast, outputOf } from './onnx-layout.js';
import { addOutput } from './onnx-outputs.js';
import { readShapes } from './onnx-shapes.js';

/**
 * @typedef {import('../validate.js').AttentionOptions} AttentionOptions
 * @typedef {import('./onnx-inputs.js').FloatInput} FloatInput
 * @typedef {import('./onnx-inputs.js').FloatType} FloatType
 * @typedef {import('./onnx-inputs.js').FloatData} FloatData
 * @typedef {import('./onnx-inputs.js').OnnxTensor} OnnxTensor
 * @typedef {{ data: FloatData, shape: number[], dtype: FloatType }} OnnxOutput `data` is a Float16Array where Q's (for the present
 *   outputs: K's, V's) was one
 * @typedef {object} AttentionInputs inputs of Attention
 * @property {OnnxTensor} Q (B, Hq, L, D), or (B, L, Hq*D) with q_num_heads
 * @property {OnnxTensor} K (B, Hkv, S, D), or (B, S, Hkv*D) with kv_num_heads
 * @property {OnnxTensor} V (B, Hkv, S, Dv), or (B, S, Hkv*Dv)
 * @property {OnnxTensor | null} [attn_mask] boolean (true takes part) or float (added), rank 1 to 4, broadcast from the right to
 *   (B, Hq, L, T), T = P + S; keys behind the end of its last dimension are masked
 * @property {OnnxTensor | null} [past_key] (B, Hkv, P, D); together with past_value
 * @property {OnnxTensor | null} [past_value] (B, Hkv, P, Dv)
 * @property {OnnxTensor | ArrayLike<number> | ArrayLike<bigint> | null} [nonpad_kv_seqlen] (B): keys in use; not together with a past
 * @typedef {object} AttentionAttributes attributes of Attention
 * @property {0 | 1 | boolean} [is_causal] key j only where j <= i + offset; offset is P, nonpad_kv_seqlen - L, or 0
 * @property {number | bigint} [q_num_heads] required for 3-D inputs
 * @property {number | bigint} [kv_num_heads] required for 3-D inputs
 * @property {number} [scale] default 1/sqrt(D)
 * @property {number} [softcap] default 0: none
 * @property {number | bigint} [left_window_size] keys before the query's own position i + offset; -1 (default): all
 * @property {number | bigint} [right_window_size] keys after it; -1 (default): all
 * @property {0 | 1 | 2 | 3} [qk_matmul_output_mode] stage of qk_matmul_output: scaled (default), capped, masked, weights
 * @property {number | bigint} [softmax_precision] a float type of TensorProto: 1, 10, 11 or 16. Checked and otherwise ignored: the softmax is
 *   always computed in float32
 * @typedef {object} AttentionOutputs outputs of Attention
 * @property {OnnxOutput} Y in Q's rank and type
 * @property {OnnxOutput} present_key (B, Hkv, T, D)
 * @property {OnnxOutput} present_value (B, Hkv, T, Dv)
 * @property {OnnxOutput} qk_matmul_output (B, Hq, L, T)
 */

const INPUTS = ['Q', 'K', 'V', 'attn_mask', 'past_key', 'past_value', 'nonpad_kv_seqlen'];
const ATTRIBUTES = [
  'is_causal',
  'kv_num_heads',
  'left_window_size',
  'q_num_heads',
  'qk_matmul_output_mode',
  'right_window_size',
  'scale',
  'softcap',
  'softmax_precision',
];
/** Stage names of `scores`, by qk_matmul_output_mode. */
const STAGES = /** @type {const} */ (['scaled', 'capped', 'biased', 'weights']);
const SOFTMAX_PRECISIONS = [1, 10, 11, 16];
/** What an element behind a mask's end holds: minus infinity by its bits, or false. */
const MASKED = { float32: -Infinity, float16: 0xfc00, bfloat16: 0xff80, bool: 0 };

/**
 * Attention of ai.onnx, opset 23 to 25.
 *
 * Y is always there, present_key and present_value where a past is given, and qk_matmul_output where the attribute
 * qk_matmul_output_mode is. Of the rest each is made when it is first read by name (then from the inputs as they are at that
 * time), and does not show in Object.keys before: so the (L, T) matrix is never allocated unless somebody wants it.
 *
 * float64 is not taken, and a 16-bit Y is rounded once, from the float32 result.
 *
 * @param {import('../sdpa.js').Sdpa} sdpa a loaded instance
 * @param {AttentionInputs} inputs
 * @param {AttentionAttributes} [attributes]
 * @returns {AttentionOutputs}
 * @throws {TypeError | RangeError} each an AttentionError; the message says the formal name
 */
export function attention(sdpa, inputs, attributes = {}) {
  checkNames('input', inputs, INPUTS);
  checkNames('attribute', attributes, ATTRIBUTES);
  const shapes = readShapes(inputs, attributes);
  const mode = readInteger(attributes, 'qk_matmul_output_mode', undefined, (m) => m >= 0 && m <= 3, '0, 1, 2 or 3');
  const options = { ...readOptions(inputs, attributes, shapes), ...fitMask(readMask(inputs, 'attn_mask'), shapes) };

  const { Q, K, V, flat, pastKey, pastValue, batch, rows, qHeads, kvHeads, sizeV } = shapes;
  const presentKey = pastKey && concatenate(pastKey, K, kvHeads);
  const presentValue = pastValue && concatenate(pastValue, V, kvHeads);
  const turned = flat && presentKey !== undefined;
  const result = sdpa.attention(
    turned ? headsFirst(Q, qHeads) : asOperand(Q, qHeads),
    presentKey ?? asOperand(K, kvHeads),
    presentValue ?? asOperand(V, kvHeads),
    { ...options, layout: flat && !turned ? 'blhd' : 'bhld', ...(mode !== undefined && { scores: STAGES[mode] }) },
  );

  const data = turned ? headsLast(result.out.data, [batch, qHeads, rows, sizeV]) : result.out.data;
  const shape = flat ? [batch, rows, qHeads * sizeV] : [batch, qHeads, rows, sizeV];
  const outputs = { Y: outputOf(fromFloat32(data, shape, Q.dtype), Q.isFloat16Array) };

  // What is made later reads the inputs again: a view of wasm memory would be empty once that has grown.
  const later = { ...inputs };
  const laterAttributes = { ...attributes, qk_matmul_output_mode: /** @type {const} */ (0) };
  const presentOf = (/** @type {string} */ name) => {
    const input = /** @type {FloatInput} */ (readFloat(later, name));
    return outputOf(headsFirst(input, kvHeads), input.isFloat16Array);
  };
  const scoresOf = (/** @type {any} */ { scores }) =>
    outputOf(fromFloat32(scores.data, scores.shape, Q.dtype), Q.isFloat16Array);
  addOutput(outputs, 'present_key', presentKey && outputOf(presentKey, K.isFloat16Array), () => presentOf('K'));
  addOutput(outputs, 'present_value', presentValue && outputOf(presentValue, V.isFloat16Array), () => presentOf('V'));
  addOutput(outputs, 'qk_matmul_output', mode === undefined ? undefined : scoresOf(result), () => {
    return attention(sdpa, later, laterAttributes).qk_matmul_output;
  });
  return /** @type {AttentionOutputs} */ (outputs);
}

/**
 * A tensor as `sdpa.attention` takes it, its heads an axis of their own. A 4-D one is handed on as the caller gave it; one in wasm
 * memory is used where it lies in either case.
 * @param {FloatInput} input
 * @param {number} heads
 * @returns {any}
 */
function asOperand({ data, shape, dtype, source }, heads) {
  return shape.length === 4 ? source : { data, shape: [shape[0], shape[1], heads, shape[2] / heads], dtype };
}

/**
 * The attributes as options of `sdpa.attention`, with the query's position.
 * @param {AttentionInputs} inputs
 * @param {AttentionAttributes} attributes
 * @param {import('./onnx-shapes.js').Shapes} shapes
 * @returns {AttentionOptions}
 */
function readOptions(inputs, attributes, shapes) {
  const isWindow = (/** @type {number} */ size) => size >= -1;
  const causal = readInteger(attributes, 'is_causal', 0, (flag) => flag === 0 || flag === 1, '0 or 1') === 1;
  const left = readInteger(attributes, 'left_window_size', -1, isWindow, '-1 (unlimited) or at least 0');
  const right = readInteger(attributes, 'right_window_size', -1, isWindow, '-1 (unlimited) or at least 0');
  readInteger(attributes, 'softmax_precision', undefined, (t) => SOFTMAX_PRECISIONS.includes(t), '1, 10, 11 or 16');
  const scale = readNumber(attributes, 'scale', Number.isFinite, 'a finite number');
  const softcap = readNumber(attributes, 'softcap', (c) => Number.isFinite(c) && c >= 0, 'a finite number from 0');
  const kvLengths = readLengths(inputs, 'nonpad_kv_seqlen', shapes.batch, shapes.total);
  if (kvLengths !== undefined && shapes.pastKey !== undefined) {
    throw rangeError(
      'option',
      'nonpad_kv_seqlen is for a cache kept outside; it cannot be given together with past_key',
    );
  }

  /** @type {AttentionOptions} */
  const options = {};
  if (scale !== undefined) options.scale = scale;
  if (softcap !== undefined) options.softcap = softcap;
  if (kvLengths !== undefined) options.kvLengths = kvLengths;
  if (causal) options.causal = true;
  if (left !== -1 || right !== -1) options.window = [reach(left), reach(right)];
  if (options.causal || options.window) {
    options.queryOffset = kvLengths ? kvLengths.map((length) => length - shapes.rows) : shapes.past;
  }
  return options;
}

/** @param {number | undefined} size */
function reach(size) {
  return size === undefined || size === -1 ? Infinity : size;
}

/**
 * The mask as option `mask` or `bias`: four dimensions, the last one filled up with "masked" to the number of keys.
 * @param {ReturnType<typeof readMask>} mask
 * @param {import('./onnx-shapes.js').Shapes} shapes
 * @returns {AttentionOptions}
 */
function fitMask(mask, { batch, qHeads, rows, total }) {
  if (mask === undefined) return {};
  const { dtype, shape } = mask;
  const full = [batch, qHeads, rows, total];
  const padded = [...Array(Math.max(0, 4 - shape.length)).fill(1), ...shape];
  const broadcasts = padded.slice(0, 3).every((extent, axis) => extent === 1 || extent === full[axis]);
  if (shape.length < 1 || shape.length > 4 || !broadcasts || padded[3] > total) {
    throw rangeError(
      'shape',
      `attn_mask has shape [${shape}], which does not broadcast to (B, Hq, L, T) = [${full}] (its last dimension may be shorter)`,
    );
  }
  const width = padded[3];
  let data = mask.data;
  if (width < total) {
    const lines = padded[0] * padded[1] * padded[2];
    data = new /** @type {any} */ (mask.data.constructor)(lines * total).fill(MASKED[dtype]);
    for (let line = 0; line < lines; ++line) {
      data.set(mask.data.subarray(line * width, (line + 1) * width), line * total);
    }
  }
  const fitted = { data, shape: [...padded.slice(0, 3), total] };
  return dtype === 'bool' ? { mask: /** @type {any} */ (fitted) } : { bias: /** @type {any} */ ({ ...fitted, dtype }) };
}
