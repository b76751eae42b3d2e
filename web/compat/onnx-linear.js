// ai.onnx LinearAttention, opset 27, on the library's own gatedLinearAttention. Source of the rules: docs/Operators.md of onnx/onnx.
import { rangeError } from '../errors.js';
import { checkNames, readFloat, readInteger, readNumber, required, requiredInteger } from './onnx-inputs.js';
import { fromFloat32, outputOf, toFloat32 } from './onnx-layout.js';

/**
 * @typedef {import('./onnx-inputs.js').FloatInput} FloatInput
 * @typedef {import('./onnx-inputs.js').OnnxTensor} OnnxTensor
 * @typedef {import('./onnx-attention.js').OnnxOutput} OnnxOutput
 * @typedef {object} LinearAttentionInputs inputs of LinearAttention
 * @property {OnnxTensor} query (B, T, Hq*D)
 * @property {OnnxTensor} key (B, T, Hkv*D)
 * @property {OnnxTensor} value (B, T, Hkv*Dv)
 * @property {OnnxTensor | null} [past_state] (B, Hkv, D, Dv); zeros where absent
 * @property {OnnxTensor | null} [decay] (B, T, Hkv*D) or (B, T, Hkv), logs: required by the gated rules, and no other takes it
 * @property {OnnxTensor | null} [beta] (B, T, Hkv) or (B, T, 1): required by the delta rules, and no other takes it
 * @typedef {object} LinearAttentionAttributes attributes of LinearAttention
 * @property {number | bigint} q_num_heads Hq, a multiple of kv_num_heads
 * @property {number | bigint} kv_num_heads Hkv
 * @property {'linear' | 'gated' | 'delta' | 'gated_delta'} [update_rule] default 'gated_delta'
 * @property {number} [scale] default 0: 1/sqrt(D)
 * @property {number | bigint} [chunk_size] a hint, without effect on the results
 * @typedef {object} LinearAttentionOutputs outputs of LinearAttention
 * @property {OnnxOutput} output (B, T, Hq*Dv), in the query's type
 * @property {OnnxOutput} present_state (B, Hkv, D, Dv), in the type of past_state or, without one, of the query
 */

const INPUTS = ['query', 'key', 'value', 'past_state', 'decay', 'beta'];
const ATTRIBUTES = ['chunk_size', 'kv_num_heads', 'q_num_heads', 'scale', 'update_rule'];
const RULES = ['linear', 'gated', 'delta', 'gated_delta'];

/**
 * LinearAttention of ai.onnx, opset 27. Computed in float32, state included; 16-bit outputs are rounded once.
 * @param {import('../sdpa.js').Sdpa} sdpa a loaded instance
 * @param {LinearAttentionInputs} inputs
 * @param {LinearAttentionAttributes} attributes
 * @returns {LinearAttentionOutputs}
 * @throws {TypeError | RangeError} each an AttentionError; the message says the formal name
 */
export function linearAttention(sdpa, inputs, attributes) {
  checkNames('input', inputs, INPUTS, 'LinearAttention');
  checkNames('attribute', attributes, ATTRIBUTES, 'LinearAttention');
  const [heads, states] = ['q_num_heads', 'kv_num_heads'].map((name) =>
    requiredInteger(attributes, name, (count) => count > 0, 'above 0'),
  );
  if (heads % states !== 0) {
    throw rangeError('shape', `q_num_heads is ${heads}; it must be a multiple of kv_num_heads, which is ${states}`);
  }
  const { update_rule: rule = 'gated_delta' } = attributes;
  if (!RULES.includes(rule)) throw rangeError('option', `update_rule is ${rule}; it must be ${RULES.join(', ')}`);
  const scale = readNumber(attributes, 'scale', Number.isFinite, 'a finite number') || undefined;
  const chunkSize = readInteger(attributes, 'chunk_size', undefined, (size) => size > 0, 'above 0');

  const query = required(inputs, 'query');
  const options = {
    rule: /** @type {'linear' | 'gated' | 'delta' | 'gated-delta'} */ (rule === 'gated_delta' ? 'gated-delta' : rule),
    layout: /** @type {const} */ ('blhd'),
    returnState: /** @type {const} */ (true),
    scale,
    chunkSize,
    decay: readGate(inputs, 'decay', rule.startsWith('gated'), rule),
    beta: readGate(inputs, 'beta', rule.endsWith('delta'), rule),
  };
  const q = split(query, heads);
  const k = split(required(inputs, 'key'), states);
  const v = split(required(inputs, 'value'), states);
  const past = readFloat(inputs, 'past_state');
  const { out, state } = sdpa.gatedLinearAttention(q, k, v, {
    ...options,
    decay: options.decay && splitDecay(options.decay, states),
    state: past && { data: toFloat32(past), shape: past.shape },
  });
  const [batch, length] = query.shape;
  const like = past ?? query;
  return {
    output: outputOf(fromFloat32(out.data, [batch, length, heads * v.shape[3]], query.dtype), query.isFloat16Array),
    present_state: outputOf(fromFloat32(state.data, state.shape, like.dtype), like.isFloat16Array),
  };
}

/**
 * @param {Record<string, any>} inputs
 * @param {string} name
 * @param {boolean} needed
 * @param {string} rule
 * @returns {FloatInput | undefined}
 */
function readGate(inputs, name, needed, rule) {
  const gate = readFloat(inputs, name);
  if (needed === (gate !== undefined)) return gate;
  throw rangeError('option', `update_rule '${rule}' ${needed ? 'needs' : 'takes no'} input ${name}`);
}

/**
 * (B, T, H*D) as (B, T, H, D).
 * @param {FloatInput} input
 * @param {number} heads
 */
function split({ name, data, shape, dtype }, heads) {
  if (shape.length !== 3 || shape[2] % heads !== 0) {
    throw rangeError('shape', `${name} has shape [${shape}]; it must be 3-D, with a last dimension of ${heads} heads`);
  }
  return { data, dtype, shape: [shape[0], shape[1], heads, shape[2] / heads] };
}

/**
 * A number for each head stays as it is.
 * @param {FloatInput} decay
 * @param {number} heads
 */
function splitDecay(decay, heads) {
  return decay.shape.length === 3 && decay.shape[2] === heads ? decay : split(decay, heads);
}
