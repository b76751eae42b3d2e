// Entry `sdpa/onnx`: operators of ONNX by their own names and rules, on a loaded instance.
import { attention } from './onnx-attention.js';

/**
 * @typedef {import('./onnx-attention.js').AttentionInputs} AttentionInputs
 * @typedef {import('./onnx-attention.js').AttentionAttributes} AttentionAttributes
 * @typedef {import('./onnx-attention.js').AttentionOutputs} AttentionOutputs
 * @typedef {object} OnnxOps
 * @property {(inputs: AttentionInputs, attributes?: AttentionAttributes) => AttentionOutputs} attention ai.onnx Attention, opset 23 to
 *   25: inputs, attributes and outputs are keyed by the operator's formal names
 */

/**
 * ONNX operators that compute with the given instance.
 * @param {import('../sdpa.js').Sdpa} sdpa what `load` resolved to
 * @returns {OnnxOps}
 */
export function onnxOps(sdpa) {
  return { attention: (inputs, attributes) => attention(sdpa, inputs, attributes) };
}
