// RotaryEmbedding of ai.onnx (opset 23) and of com.microsoft: rotation by angles whose cosines and sines come as tables.
//
// Sources of the rules: docs/Operators.md of onnx/onnx and docs/ContribOperators.md of microsoft/onnxruntime.
import { rangeError, typeError } from '../errors.js';
import { rotateRow } from '../rotate.js';
import { checkNames, readIntegers, readNumber, required } from './onnx-inputs.js';
import { fromFloat32, outputOf } from './onnx-layout.js';
import {
  checkWidth,
  offsetPositions,
  readAttributes,
  readFlag,
  readPositions,
  readSizes,
  readTables,
  widen,
} from './onnx-rotary-inputs.js';

/**
 * @typedef {import('./onnx-inputs.js').FloatInput} FloatInput
 * @typedef {import('./onnx-inputs.js').OnnxTensor} OnnxTensor
 * @typedef {import('./onnx-attention.js').OnnxOutput} OnnxOutput
 * @typedef {import('./onnx-rotary-inputs.js').Rows} Rows
 * @typedef {import('./onnx-rotary-inputs.js').Sizes} Sizes
 * @typedef {import('./onnx-rotary-inputs.js').Tables} Tables
 * @typedef {object} RotaryEmbeddingInputs R is rotary_embedding_dim, or D where that is 0
 * @property {OnnxTensor} X (B, H, L, D), or (B, L, H*D) with num_heads
 * @property {OnnxTensor} cos_cache (rows, R/2); without position_ids (B, L, R/2)
 * @property {OnnxTensor} sin_cache as cos_cache
 * @property {OnnxTensor | null} [position_ids] (B, L): each token's row of the tables
 * @typedef {object} RotaryEmbeddingAttributes attributes of RotaryEmbedding
 * @property {0 | 1 | boolean} [interleaved] pairs are the columns 2k and 2k + 1; else (default) k and k + R/2
 * @property {number | bigint} [num_heads] required for 3-D inputs
 * @property {number | bigint} [rotary_embedding_dim] R, even: columns that are rotated; 0 (default): all
 * @typedef {{ Y: OnnxOutput }} RotaryEmbeddingOutputs outputs of RotaryEmbedding
 * @typedef {object} MsRotaryEmbeddingInputs inputs of com.microsoft RotaryEmbedding
 * @property {OnnxTensor} input (B, H, L, D) or (B, L, H*D)
 * @property {OnnxTensor} position_ids (1) or a scalar: the row of the first token, the others follow; or (B, L): each token's row
 * @property {OnnxTensor} cos_cache (rows, R/2)
 * @property {OnnxTensor} sin_cache as cos_cache
 * @typedef {object} MsRotaryEmbeddingAttributes attributes of com.microsoft RotaryEmbedding
 * @property {0 | 1 | boolean} [interleaved] as above
 * @property {number | bigint} [num_heads] required for 3-D inputs with rotary_embedding_dim; otherwise heads are as wide as the tables say
 * @property {number | bigint} [rotary_embedding_dim] as above
 * @property {number} [scale] only 1 (default)
 * @property {0 | 1 | boolean} [is_packed_batching] allows sequences longer than the tables, which position_ids (B, L) then index
 * @typedef {{ output: OnnxOutput }} MsRotaryEmbeddingOutputs outputs of com.microsoft RotaryEmbedding
 */

/**
 * Rotates the first 2*pairs elements of each row, in place.
 * @param {Float32Array} data
 * @param {Rows} rows
 * @param {Tables} tables
 * @param {ArrayLike<number>} positions (batch*length): each token's row of the tables, within their range
 * @param {boolean} interleaved
 */
export function rotateRows(data, rows, tables, positions, interleaved) {
  const { batch, heads, length, start = 0, batchStride, headStride, rowStride } = rows;
  const { cos, sin, pairs } = tables;
  for (let b = 0; b < batch; ++b) {
    for (let h = 0; h < heads; ++h) {
      for (let i = 0; i < length; ++i) {
        const at = start + b * batchStride + h * headStride + i * rowStride;
        rotateRow(data, at, cos, sin, positions[b * length + i] * pairs, pairs, interleaved);
      }
    }
  }
}

/**
 * RotaryEmbedding of ai.onnx, opset 23.
 * @param {RotaryEmbeddingInputs} inputs
 * @param {RotaryEmbeddingAttributes} [attributes]
 * @returns {RotaryEmbeddingOutputs} Y in X's shape and type; a 16-bit one is rounded once, from float32
 * @throws {TypeError | RangeError} each an AttentionError; the message says the formal name
 */
export function rotaryEmbedding(inputs, attributes = {}) {
  checkNames('input', inputs, ['X', 'cos_cache', 'sin_cache', 'position_ids'], 'RotaryEmbedding');
  checkNames('attribute', attributes, ['interleaved', 'num_heads', 'rotary_embedding_dim'], 'RotaryEmbedding');
  const X = required(inputs, 'X');
  const { interleaved, heads, rotaryDim } = readAttributes(attributes);
  const sizes = readSizes(X, heads, undefined);
  const ids = readIntegers(inputs, 'position_ids');
  const tables = readTables(inputs, ids === undefined ? 3 : 2);
  checkWidth(tables, rotaryDim === 0 ? sizes.size : rotaryDim, sizes.size);

  const { batch, length } = sizes;
  let positions;
  if (ids !== undefined) {
    positions = readPositions(ids, sizes, tables.rows);
  } else {
    if (tables.shape[0] !== batch || tables.shape[1] !== length) {
      throw rangeError(
        'shape',
        `cos_cache has shape [${tables.shape}]; without position_ids it must be (B, L, ...) = [${batch},${length},${tables.pairs}]`,
      );
    }
    positions = Array.from({ length: batch * length }, (_, token) => token);
  }
  return { Y: rotated(X, sizes, tables, positions, interleaved) };
}

/**
 * RotaryEmbedding of com.microsoft.
 * @param {MsRotaryEmbeddingInputs} inputs
 * @param {MsRotaryEmbeddingAttributes} [attributes]
 * @returns {MsRotaryEmbeddingOutputs} output in the input's shape and type; a 16-bit one is rounded once, from float32
 * @throws {TypeError | RangeError} each an AttentionError; the message says the formal name
 */
export function msRotaryEmbedding(inputs, attributes = {}) {
  const operator = 'com.microsoft.RotaryEmbedding';
  const names = ['interleaved', 'is_packed_batching', 'num_heads', 'rotary_embedding_dim', 'scale'];
  checkNames('input', inputs, ['input', 'position_ids', 'cos_cache', 'sin_cache'], operator);
  checkNames('attribute', attributes, names, operator);
  const input = required(inputs, 'input');
  const { interleaved, heads, rotaryDim } = readAttributes(attributes);
  const packed = readFlag(attributes, 'is_packed_batching');
  const scale = readNumber(attributes, 'scale', Number.isFinite, 'a finite number') ?? 1;
  if (scale !== 1) throw rangeError('unsupported', `scale is ${scale}; only 1 is supported`);
  const tables = readTables(inputs, 2);
  if (input.shape.length === 3 && rotaryDim > 0 && heads === 0) {
    throw rangeError('option', `num_heads is required: input is 3-D and rotary_embedding_dim is ${rotaryDim}`);
  }
  const sizes = readSizes(input, heads, 2 * tables.pairs);
  checkWidth(tables, rotaryDim === 0 ? sizes.size : rotaryDim, sizes.size);

  const ids = readIntegers(inputs, 'position_ids');
  if (ids === undefined) throw typeError('type', 'input position_ids is missing');
  const { length } = sizes;
  if (!packed && length > tables.rows) {
    throw rangeError(
      'shape',
      `input has ${length} tokens in a sequence but cos_cache only ${tables.rows} rows; is_packed_batching allows that`,
    );
  }
  const isOffset = ids.shape.length === 0 || (ids.shape.length === 1 && ids.shape[0] === 1);
  const positions = isOffset ? offsetPositions(ids, sizes, tables.rows) : readPositions(ids, sizes, tables.rows);
  return { output: rotated(input, sizes, tables, positions, interleaved) };
}

/**
 * @param {FloatInput} input
 * @param {Sizes} sizes
 * @param {Tables} tables
 * @param {ArrayLike<number>} positions
 * @param {boolean} interleaved
 * @returns {OnnxOutput}
 */
function rotated(input, sizes, tables, positions, interleaved) {
  const data = widen(input);
  rotateRows(data, sizes, tables, positions, interleaved);
  return outputOf(fromFloat32(data, input.shape, input.dtype), input.isFloat16Array);
}
