// Entry `sdpa/onnx`: operators of ONNX by their own names and rules, on a loaded instance.
import { attention } from './onnx-attention.js';
import { linearAttention } from './onnx-linear.js';
import { msGroupQueryAttention } from './onnx-ms-gqa.js';
import { msMultiHeadAttention } from './onnx-ms-mha.js';
import { msRotaryEmbedding, rotaryEmbedding } from './onnx-rotary.js';

/**
 * @typedef {import('./onnx-attention.js').AttentionInputs} AttentionInputs
 * @typedef {import('./onnx-attention.js').AttentionAttributes} AttentionAttributes
 * @typedef {import('./onnx-attention.js').AttentionOutputs} AttentionOutputs
 * @typedef {import('./onnx-rotary.js').RotaryEmbeddingInputs} RotaryEmbeddingInputs
 * @typedef {import('./onnx-rotary.js').RotaryEmbeddingAttributes} RotaryEmbeddingAttributes
 * @typedef {import('./onnx-rotary.js').RotaryEmbeddingOutputs} RotaryEmbeddingOutputs
 * @typedef {import('./onnx-rotary.js').MsRotaryEmbeddingInputs} MsRotaryEmbeddingInputs
 * @typedef {import('./onnx-rotary.js').MsRotaryEmbeddingAttributes} MsRotaryEmbeddingAttributes
 * @typedef {import('./onnx-rotary.js').MsRotaryEmbeddingOutputs} MsRotaryEmbeddingOutputs
 * @typedef {import('./onnx-ms-mha.js').MsMultiHeadAttentionInputs} MsMultiHeadAttentionInputs
 * @typedef {import('./onnx-ms-mha.js').MsMultiHeadAttentionAttributes} MsMultiHeadAttentionAttributes
 * @typedef {import('./onnx-ms-mha.js').MsMultiHeadAttentionOutputs} MsMultiHeadAttentionOutputs
 * @typedef {import('./onnx-ms-gqa.js').MsGroupQueryAttentionInputs} MsGroupQueryAttentionInputs
 * @typedef {import('./onnx-ms-gqa.js').MsGroupQueryAttentionAttributes} MsGroupQueryAttentionAttributes
 * @typedef {import('./onnx-ms-gqa.js').MsGroupQueryAttentionOutputs} MsGroupQueryAttentionOutputs
 * @typedef {import('./onnx-linear.js').LinearAttentionInputs} LinearAttentionInputs
 * @typedef {import('./onnx-linear.js').LinearAttentionAttributes} LinearAttentionAttributes
 * @typedef {import('./onnx-linear.js').LinearAttentionOutputs} LinearAttentionOutputs
 * @typedef {object} OnnxOps inputs, attributes and outputs are keyed by the operator's formal names
 * @property {(inputs: AttentionInputs, attributes?: AttentionAttributes) => AttentionOutputs} attention ai.onnx Attention, opset 23 to
 *   25
 * @property {(inputs: RotaryEmbeddingInputs, attributes?: RotaryEmbeddingAttributes) => RotaryEmbeddingOutputs} rotaryEmbedding ai.onnx
 *   RotaryEmbedding, opset 23
 * @property {(inputs: LinearAttentionInputs, attributes: LinearAttentionAttributes) => LinearAttentionOutputs} linearAttention ai.onnx
 *   LinearAttention, opset 27
 * @property {(inputs: MsRotaryEmbeddingInputs, attributes?: MsRotaryEmbeddingAttributes) => MsRotaryEmbeddingOutputs} msRotaryEmbedding
 *   com.microsoft RotaryEmbedding
 * @property {(inputs: MsMultiHeadAttentionInputs, attributes: MsMultiHeadAttentionAttributes) => MsMultiHeadAttentionOutputs}
 *   msMultiHeadAttention com.microsoft MultiHeadAttention
 * @property {(inputs: MsGroupQueryAttentionInputs, attributes: MsGroupQueryAttentionAttributes) => MsGroupQueryAttentionOutputs}
 *   msGroupQueryAttention com.microsoft GroupQueryAttention
 */

/**
 * ONNX operators that compute with the given instance.
 * @param {import('../sdpa.js').Sdpa} sdpa what `load` resolved to
 * @returns {OnnxOps}
 */
export function onnxOps(sdpa) {
  return {
    attention: (inputs, attributes) => attention(sdpa, inputs, attributes),
    rotaryEmbedding,
    linearAttention: (inputs, attributes) => linearAttention(sdpa, inputs, attributes),
    msRotaryEmbedding,
    msMultiHeadAttention: (inputs, attributes) => msMultiHeadAttention(sdpa, inputs, attributes),
    msGroupQueryAttention: (inputs, attributes) => msGroupQueryAttention(sdpa, inputs, attributes),
  };
}
