// Faults that `onnxOps(sdpa).attention` must name: the formal name in the message, a stable code, an instance that goes on.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AttentionError } from 'sdpa';
import { toTensor } from './case-files.mjs';
import { ops } from './ops.mjs';
import { normalTensors } from './random.mjs';

const tensor = normalTensors(11);

/** Q, K, V in 4-D: two heads, three queries, five keys. */
const small = () => ({ Q: tensor(1, 2, 3, 4), K: tensor(1, 2, 5, 4), V: tensor(1, 2, 5, 6) });
/** The same in 3-D, two heads of four. */
const flat = () => ({ Q: tensor(1, 3, 8), K: tensor(1, 5, 8), V: tensor(1, 5, 8) });

describe('errors of ONNX Attention', () => {
  const past = (shape) => ({ past_key: tensor(1, 2, 3, 4), past_value: tensor(...shape) });
  // What is wrong, the inputs that differ from small(), the attributes, the code, the message.
  // prettier-ignore
  const faults = [
    ['no inputs', null, {}, 'type', /inputs must be an object/],
    ['an unknown input', { mask: 1 }, {}, 'unknown-option', /no input mask.*attn_mask/],
    ['an unknown attribute', {}, { causal: 1 }, 'unknown-option', /no attribute causal.*is_causal/],
    ['a missing input', { V: null }, {}, 'type', /input V is missing/],
    ['a bare array', { Q: new Float32Array(24) }, {}, 'type', /Q must be a tensor/],
    ['a tensor without shape', { Q: { data: new Float32Array(1) } }, {}, 'type', /Q needs a shape/],
    ['a Uint16Array without dtype', { K: { data: new Uint16Array(40), shape: [1, 2, 5, 4] } }, {}, 'type', /K needs a dtype/],
    ['a dtype that is not the data', { Q: { ...small().Q, dtype: 'float16' } }, {}, 'type', /Q has dtype float16 but.*Float32Array/],
    ['float64', { Q: { data: new Float64Array(24), shape: [1, 2, 3, 4] } }, {}, 'unsupported', /Q is float64/],
    ['an integer query', { Q: { data: new Int32Array(24), shape: [1, 2, 3, 4] } }, {}, 'type', /Q is int32/],
    ['data that does not fill the shape', { Q: { data: new Float32Array(23), shape: [1, 2, 3, 4] } }, {}, 'shape', /Q has 23 elements.*24/],
    ['rank 2', { Q: tensor(3, 4) }, {}, 'shape', /all be 3-D or all 4-D.*Q \[3,4\]/],
    ['3-D with 4-D', { Q: tensor(1, 3, 8) }, { q_num_heads: 2 }, 'shape', /all be 3-D or all 4-D/],
    ['3-D without head counts', flat(), {}, 'option', /q_num_heads is required/],
    ['a width that the heads do not divide', flat(), { q_num_heads: 3, kv_num_heads: 1 }, 'shape', /Q.*8 is not a multiple of q_num_heads, 3/],
    ['a head count that contradicts 4-D', {}, { q_num_heads: 4 }, 'shape', /q_num_heads is 4.*2 heads/],
    ['heads that do not divide', { Q: tensor(1, 5, 3, 4) }, {}, 'shape', /5 heads.*2 heads/],
    ['different batch sizes', { K: tensor(2, 2, 5, 4) }, {}, 'shape', /batch size is 1 in Q but 2 in K/],
    ['a different batch size of V', { V: tensor(2, 2, 5, 6) }, {}, 'shape', /batch size is 1 in Q but 2 in V/],
    ['different head sizes', { K: tensor(1, 2, 5, 3) }, {}, 'shape', /head size is 4 in Q but 3 in K/],
    ['different lengths of K and V', { V: tensor(1, 2, 4, 6) }, {}, 'shape', /length is 5 in K but 4 in V/],
    ['different heads of K and V', { V: tensor(1, 1, 5, 6) }, {}, 'shape', /heads is 2 in K but 1 in V/],
    ['a past key alone', { past_key: tensor(1, 2, 3, 4) }, {}, 'option', /past_value is missing/],
    ['a past of another shape', { ...past([1, 2, 2, 6]) }, {}, 'shape', /past_value has shape \[1,2,2,6\].*\[1,2,3,6\]/],
    ['a past of another type', { ...past([1, 2, 3, 6]), past_key: toTensor({ ...tensor(1, 2, 3, 4), dtype: 'float16' }) }, {}, 'type', /past_key is float16 but K is float32/],
    ['a past with lengths', { ...past([1, 2, 3, 6]), nonpad_kv_seqlen: [3] }, {}, 'option', /nonpad_kv_seqlen.*past_key/],
    ['a mask that does not broadcast', { attn_mask: tensor(2, 5) }, {}, 'shape', /attn_mask has shape \[2,5\].*\[1,2,3,5\]/],
    ['a mask longer than the keys', { attn_mask: tensor(3, 6) }, {}, 'shape', /attn_mask has shape \[3,6\]/],
    ['a mask for another batch', { attn_mask: tensor(2, 1, 3, 5) }, {}, 'shape', /attn_mask has shape \[2,1,3,5\]/],
    ['a mask for other heads', { attn_mask: tensor(3, 3, 5) }, {}, 'shape', /attn_mask has shape \[3,3,5\]/],
    ['a scalar mask', { attn_mask: { data: Float32Array.of(1), shape: [] } }, {}, 'shape', /attn_mask has shape \[\]/],
    ['a mask of rank 5', { attn_mask: tensor(1, 1, 1, 1, 5) }, {}, 'shape', /attn_mask/],
    ['an integer mask', { attn_mask: { data: new Int32Array(5), shape: [5] } }, {}, 'type', /attn_mask is int32; it must be bool/],
    ['a mask of plain numbers', { attn_mask: { data: [1, 0, 0.5, 1, 1], shape: [5] } }, {}, 'type', /attn_mask is a boolean array but holds 0.5/],
    ['a length above the keys', { nonpad_kv_seqlen: [6] }, {}, 'option', /nonpad_kv_seqlen\[0\] is 6.*5/],
    ['a negative length', { nonpad_kv_seqlen: [-1] }, {}, 'option', /nonpad_kv_seqlen\[0\] is -1/],
    ['lengths for another batch', { nonpad_kv_seqlen: [1, 2] }, {}, 'shape', /nonpad_kv_seqlen has shape \[2\].*\[1\]/],
    ['float lengths', { nonpad_kv_seqlen: tensor(1) }, {}, 'type', /nonpad_kv_seqlen is float32/],
    ['a flag of 2', {}, { is_causal: 2 }, 'option', /is_causal is 2/],
    ['a mode of 4', {}, { qk_matmul_output_mode: 4 }, 'option', /qk_matmul_output_mode is 4/],
    ['a window of -2', {}, { left_window_size: -2 }, 'option', /left_window_size is -2/],
    ['a fraction as window', {}, { right_window_size: 1.5 }, 'option', /right_window_size is 1.5/],
    ['an integer precision', {}, { softmax_precision: 7 }, 'option', /softmax_precision is 7/],
    ['a scale of NaN', {}, { scale: NaN }, 'option', /scale is NaN/],
    ['a scale of text', {}, { scale: '1' }, 'type', /scale must be a number/],
    ['a negative softcap', {}, { softcap: -1 }, 'option', /softcap is -1/],
  ];

  for (const [fault, changes, attributes, code, message] of faults) {
    const kind = ['type', 'unsupported', 'unknown-option'].includes(code) ? TypeError : RangeError;
    test(`${fault}: a ${kind.name} of code ${code}`, () => {
      assert.throws(
        () => ops.attention(changes && { ...small(), ...changes }, attributes),
        (error) => {
          assert.ok(error instanceof kind && AttentionError.is(error), `${error}`);
          assert.equal(error.code, code, error.message);
          assert.match(error.message, message);
          return true;
        },
      );
      assert.equal(ops.attention(small()).Y.data.length, 36, 'the instance goes on');
    });
  }
});
