// Faults that MultiHeadAttention and GroupQueryAttention of com.microsoft must name: the formal name in the message, a stable code,
// an instance that goes on.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AttentionError } from 'sdpa';
import { toTensor } from './case-files.mjs';
import { ops } from './ops.mjs';
import { normalTensors } from './random.mjs';

const tensor = normalTensors(23);
const half = (...shape) => toTensor({ ...tensor(...shape), dtype: 'float16' });
const int32 = (shape, ...data) => ({ data: Int32Array.from(data), shape });

/** Rows of a table: what is wrong, the inputs that differ from the right ones, the attributes that do, the code, the message. */
function testFaults(name, right, attributes, faults) {
  for (const [fault, changes, wrong, code, message] of faults) {
    test(`${fault}: code ${code}`, () => {
      assert.throws(
        () => ops[name](changes && { ...right(), ...changes }, wrong && { ...attributes, ...wrong }),
        (error) => {
          assert.ok(error instanceof TypeError || error instanceof RangeError, `${error}`);
          assert.ok(AttentionError.is(error));
          assert.equal(error.code, code, error.message);
          assert.match(error.message, message);
          return true;
        },
      );
      assert.ok(ops[name](right(), attributes).output.data.every(Number.isFinite), 'the instance goes on');
    });
  }
}

describe('errors of MultiHeadAttention of com.microsoft', () => {
  /** Two heads of four, three queries, five keys. */
  const right = () => ({ query: tensor(2, 3, 8), key: tensor(2, 5, 8), value: tensor(2, 5, 8) });
  const past = (key, value = key) => ({ past_key: tensor(...key), past_value: tensor(...value) });
  const buffer = { ...past([2, 2, 9, 4]), past_sequence_length: [3] };
  const beams = (...data) => ({
    ...buffer,
    cache_indirection: int32([1, 2, 9], ...data, ...Array(18 - data.length).fill(0)),
  });
  // prettier-ignore
  testFaults('msMultiHeadAttention', right, { num_heads: 2 }, [
    ['no inputs', null, {}, 'type', /inputs must be an object/],
    ['no attributes', {}, null, 'type', /attributes must be an object/],
    ['an unknown input', { attn_mask: 1 }, {}, 'unknown-option', /MultiHeadAttention has no input attn_mask.*key_padding_mask/],
    ['an unknown attribute', {}, { is_causal: 1 }, 'unknown-option', /no attribute is_causal.*unidirectional/],
    ['no number of heads', {}, { num_heads: undefined }, 'option', /num_heads is required/],
    ['no heads', {}, { num_heads: 0 }, 'option', /num_heads is 0/],
    ['a width that the heads do not divide', {}, { num_heads: 3 }, 'shape', /query has shape \[2,3,8\].*multiple of num_heads, 3/],
    ['no query', { query: null }, {}, 'type', /input query is missing/],
    ['float64', { query: { data: new Float64Array(48), shape: [2, 3, 8] } }, {}, 'unsupported', /query is float64/],
    ['a query of rank 4', { query: tensor(2, 2, 3, 4) }, {}, 'shape', /query has shape \[2,2,3,4\]/],
    ['keys of another batch size', { key: tensor(1, 5, 8) }, {}, 'shape', /batch size is 2 in query but 1 in key/],
    ['values of another batch size', { value: tensor(1, 5, 8) }, {}, 'shape', /batch size is 2 in query but 1 in value/],
    ['query and key of different head sizes', { key: tensor(2, 5, 16) }, {}, 'shape', /head size is 4 in query but 8 in key/],
    ['key and value of different lengths', { value: tensor(2, 4, 8) }, {}, 'shape', /length is 5 in key but 4 in value/],
    ['key and value of different ranks', { value: tensor(2, 2, 5, 4) }, {}, 'shape', /both be 3-D or both 4-D/],
    ['4-D keys of other heads', { key: tensor(2, 1, 5, 4), value: tensor(2, 1, 5, 4) }, {}, 'shape', /with 2 heads; key \[2,1,5,4\]/],
    ['4-D keys and values that differ', { key: tensor(2, 2, 5, 4), value: tensor(2, 2, 5, 3) }, {}, 'shape', /same shape/],
    ['4-D keys and values of different lengths', { key: tensor(2, 2, 5, 4), value: tensor(2, 2, 4, 4) }, {}, 'shape', /same shape/],
    ['a value without a key', { key: null }, {}, 'type', /input key is missing/],
    ['a 3-D query alone', { key: null, value: null }, {}, 'shape', /query has shape.*\(B, L, 2, 3, D\)/],
    ['a packed query of two parts', { query: tensor(2, 3, 2, 2, 4), key: null, value: null }, {}, 'shape', /\(B, L, 2, 3, D\)/],
    ['a packed query of other heads', { query: tensor(2, 3, 1, 3, 4), key: null, value: null }, {}, 'shape', /\(B, L, 2, 3, D\)/],
    ['a packed query with a key', { query: tensor(2, 3, 2, 3, 4) }, {}, 'shape', /where key is given/],
    ['a key that is not packed, alone', { value: null }, {}, 'shape', /key has shape.*\(B, L, 2, 2, D\)/],
    ['packed keys of another head size', { key: tensor(2, 5, 2, 2, 3), value: null }, {}, 'shape', /head size is 4 in query but 3 in key/],
    ['a key of another type', { key: half(2, 5, 8) }, {}, 'type', /key is float16 but query is float32/],
    ['a value of another type', { value: half(2, 5, 8) }, {}, 'type', /value is float16 but query is float32/],
    ['a bias of another length', { bias: tensor(16) }, {}, 'shape', /bias has shape \[16\].*\[24\]/],
    ['a bias of rank 2', { bias: tensor(3, 8) }, {}, 'shape', /bias has shape \[3,8\]/],
    ['a bias with packed keys', { key: tensor(2, 5, 2, 2, 4), value: null, bias: tensor(24) }, {}, 'option', /bias cannot be given/],
    ['a mask of another length', { key_padding_mask: int32([3], 1, 1, 1) }, {}, 'shape', /key_padding_mask has shape \[3\].*\[2\], \[8\], \[2,5\]/],
    ['a mask for another batch', { key_padding_mask: int32([1, 5], 1, 1, 1, 1, 1) }, {}, 'shape', /key_padding_mask has shape \[1,5\]/],
    ['a mask of rank 4', { key_padding_mask: { data: new Int32Array(30), shape: [2, 1, 3, 5] } }, {}, 'shape', /key_padding_mask/],
    ['a length below 0', { key_padding_mask: [5, -1] }, {}, 'option', /key_padding_mask\[1\] is -1/],
    ['a float mask', { key_padding_mask: tensor(2, 5) }, {}, 'type', /key_padding_mask is float32/],
    ['a fraction as length', { key_padding_mask: [5, 1.5] }, {}, 'option', /key_padding_mask\[1\] is 1.5/],
    ['a bias of the scores that does not fit', { attention_bias: tensor(2, 2, 1, 5) }, {}, 'shape', /attention_bias has shape \[2,2,1,5\].*1 or 2,1 or 2,3,5/],
    ['a bias of the scores of rank 3', { attention_bias: tensor(2, 3, 5) }, {}, 'shape', /attention_bias/],
    ['a past key alone', { past_key: tensor(2, 2, 1, 4) }, {}, 'option', /past_value is missing/],
    ['a past value alone', { past_value: tensor(2, 2, 1, 4) }, {}, 'option', /past_key is missing/],
    ['a past of other heads', past([2, 1, 1, 4]), {}, 'shape', /past_key has shape \[2,1,1,4\].*\[2,2,P,4\]/],
    ['a past of another head size', past([2, 2, 1, 3]), {}, 'shape', /past_key/],
    ['a past of two lengths', past([2, 2, 1, 4], [2, 2, 3, 4]), {}, 'shape', /past_value has shape \[2,2,3,4\].*\[2,2,1,4\]/],
    ['a past of another type', { past_key: half(2, 2, 1, 4), past_value: half(2, 2, 1, 4) }, {}, 'type', /past_key is float16/],
    ['a buffer that is full', { ...past([2, 2, 7, 4]), past_sequence_length: [3] }, {}, 'option', /past_sequence_length is 3.*0 to 2/],
    ['a negative length of the past', { ...past([2, 2, 7, 4]), past_sequence_length: [-1] }, {}, 'option', /past_sequence_length is -1/],
    ['two lengths of the past', { ...past([2, 2, 9, 4]), past_sequence_length: [3, 3] }, {}, 'shape', /past_sequence_length has shape \[2\]/],
    ['a length of no past', { past_sequence_length: [3] }, {}, 'option', /past_sequence_length is about past_key/],
    ['beams of no past', { cache_indirection: int32([1, 2, 1], 0, 0) }, {}, 'option', /cache_indirection is about past_key/],
    ['beams without the length of the past', { ...beams(), past_sequence_length: null }, {}, 'option', /cache_indirection needs past_sequence_length/],
    ['beams of another batch', { ...buffer, cache_indirection: int32([1, 1, 9], ...Array(9).fill(0)) }, {}, 'shape', /cache_indirection has shape \[1,1,9\].*2/],
    ['beams of another length', { ...buffer, cache_indirection: int32([1, 2, 8], ...Array(16).fill(0)) }, {}, 'shape', /cache_indirection has shape/],
    ['a beam out of range', beams(0, 0, 2), {}, 'option', /cache_indirection\[2\] is 2.*0 to 1/],
    ['a beam below 0', beams(0, -1), {}, 'option', /cache_indirection\[1\] is -1/],
    ['a mask value of NaN', {}, { mask_filter_value: NaN }, 'option', /mask_filter_value is NaN/],
    ['a mask value of text', {}, { mask_filter_value: '-1' }, 'type', /mask_filter_value must be a number/],
    ['a scale of Infinity', {}, { scale: Infinity }, 'option', /scale is Infinity/],
    ['a flag of 2', {}, { unidirectional: 2 }, 'option', /unidirectional is 2/],
  ]);
});

describe('errors of GroupQueryAttention of com.microsoft', () => {
  /** Two query heads and one key head of sixteen; a token after three. */
  const right = () => ({
    query: tensor(2, 1, 32),
    key: tensor(2, 1, 16),
    value: tensor(2, 1, 16),
    past_key: tensor(2, 1, 3, 16),
    past_value: tensor(2, 1, 3, 16),
    seqlens_k: [3, 3],
    total_sequence_length: [4],
  });
  const heads = { num_heads: 2, kv_num_heads: 1 };
  const noPast = { past_key: null, past_value: null };
  const caches = (rows, width) => ({ cos_cache: tensor(rows, width), sin_cache: tensor(rows, width) });
  const rotates = { do_rotary: 1 };
  const prompt = (batch, length) => ({
    ...noPast,
    query: tensor(batch, length, 32),
    key: tensor(batch, length, 16),
    value: tensor(batch, length, 16),
    seqlens_k: Array(batch).fill(length - 1),
    total_sequence_length: [length],
  });
  // prettier-ignore
  testFaults('msGroupQueryAttention', right, heads, [
    ['no inputs', null, {}, 'type', /inputs must be an object/],
    ['an unknown input', { bias: 1 }, {}, 'unknown-option', /GroupQueryAttention has no input bias.*attention_bias/],
    ['an unknown attribute', {}, { unidirectional: 1 }, 'unknown-option', /no attribute unidirectional.*causal/],
    ['no number of heads', {}, { num_heads: null }, 'option', /num_heads is required/],
    ['no number of key heads', {}, { kv_num_heads: null }, 'option', /kv_num_heads is required/],
    ['heads that do not divide', {}, { num_heads: 3, kv_num_heads: 2 }, 'option', /num_heads is 3.*kv_num_heads, 2/],
    ['no query', { query: null }, {}, 'type', /input query is missing/],
    ['a query of rank 4', { query: tensor(2, 2, 1, 16) }, {}, 'shape', /query has shape \[2,2,1,16\]/],
    ['a width that the heads do not divide', { query: tensor(2, 1, 33) }, {}, 'shape', /query has shape.*multiple of num_heads, 2/],
    ['a head size that is no multiple of 8', { query: tensor(2, 1, 24) }, {}, 'shape', /head size is 12.*multiple of 8/],
    ['a packed width that the heads do not divide', { query: tensor(2, 1, 33), key: null, value: null }, {}, 'shape', /num_heads \+ 2·kv_num_heads, 4/],
    ['a key alone', { value: null }, {}, 'type', /input value is missing/],
    ['a value alone', { key: null }, {}, 'type', /input key is missing/],
    ['a key of another head size', { key: tensor(2, 1, 8) }, {}, 'shape', /key has shape \[2,1,8\].*\[2,1,16\]/],
    ['a value of another head size', { value: tensor(2, 1, 8) }, {}, 'shape', /value has shape \[2,1,8\]/],
    ['a key of another length', { key: tensor(2, 2, 16) }, {}, 'shape', /key has shape \[2,2,16\]/],
    ['a value of another length', { value: tensor(2, 0, 16) }, {}, 'shape', /value has shape \[2,0,16\]/],
    ['a key of another batch', { key: tensor(1, 1, 16) }, {}, 'shape', /key has shape \[1,1,16\]/],
    ['a key of another type', { key: half(2, 1, 16) }, {}, 'type', /key is float16 but query is float32/],
    ['a past key alone', { past_value: null }, {}, 'option', /past_value is missing/],
    ['a past of other heads', { past_key: tensor(2, 2, 3, 16) }, {}, 'shape', /past_key has shape \[2,2,3,16\].*\[2,1,3,16\]/],
    ['a past of two lengths', { past_value: tensor(2, 1, 4, 16) }, {}, 'shape', /past_value has shape \[2,1,4,16\]/],
    ['a past of another type', { past_key: half(2, 1, 3, 16) }, {}, 'type', /past_key is float16/],
    ['a quantised past', { past_key: { data: new Int8Array(96), shape: [2, 1, 3, 16] } }, {}, 'unsupported', /past_key is int8/],
    ['a past of bytes', { past_key: { data: new Uint8Array(96), shape: [2, 1, 3, 16], dtype: 'uint8' } }, {}, 'unsupported', /past_key is uint8/],
    ['scales of a quantised cache', { k_scale: tensor(1) }, {}, 'unsupported', /k_scale/],
    ['a norm of queries', { q_norm_weight: tensor(16) }, {}, 'unsupported', /q_norm_weight/],
    ['a quantisation', {}, { k_quant_type: 'PER_TENSOR' }, 'unsupported', /k_quant_type is "PER_TENSOR"/],
    ['a width of quantised numbers', {}, { kv_cache_bit_width: 8 }, 'unsupported', /kv_cache_bit_width is 8/],
    ['a cache of one window', {}, { sliding_window_cache: 1 }, 'unsupported', /sliding_window_cache is 1/],
    ['no lengths', { seqlens_k: null }, {}, 'type', /input seqlens_k is missing/],
    ['lengths of another batch', { seqlens_k: [3] }, {}, 'shape', /seqlens_k has shape \[1\].*\[2\]/],
    ['lengths of a wrong rank', { seqlens_k: int32([1, 2, 1], 3, 3) }, {}, 'shape', /seqlens_k has shape \[1,2,1\]/],
    ['a scalar length', { ...prompt(1, 1), seqlens_k: int32([], 0) }, {}, 'shape', /seqlens_k has shape \[\]/],
    ['a length below 0', { seqlens_k: [3, -1] }, {}, 'option', /seqlens_k\[1\] is -1/],
    ['a length past the present', { seqlens_k: [4, 3] }, {}, 'option', /seqlens_k\[0\] is 4.*0 to 3/],
    ['more rows of the past than there are', { total_sequence_length: [6], seqlens_k: [3, 5] }, {}, 'option', /seqlens_k\[1\] is 5.*5 rows of the past, which has 3/],
    ['a later token without a past', noPast, {}, 'option', /seqlens_k\[0\] is 3.*3 rows of the past, which has 0/],
    ['a length too small for the query', { ...prompt(1, 3), past_key: tensor(1, 1, 4, 16), past_value: tensor(1, 1, 4, 16), seqlens_k: [1], total_sequence_length: [5] }, {}, 'option', /seqlens_k\[0\] is 1.*too small.*3 rows/],
    ['no total length', { total_sequence_length: null }, {}, 'type', /input total_sequence_length is missing/],
    ['a total length of 0', { total_sequence_length: [0] }, {}, 'option', /total_sequence_length is 0/],
    ['two total lengths', { total_sequence_length: [4, 4] }, {}, 'shape', /total_sequence_length has shape \[2\]/],
    ['several tokens of several sequences', { ...prompt(2, 3), total_sequence_length: [4], seqlens_k: [3, 3] }, {}, 'shape', /batch size is 2.*\(3\).*4/],
    ['no new keys and no past', { ...noPast, key: tensor(2, 0, 16), value: tensor(2, 0, 16) }, {}, 'shape', /key has no rows.*not been given/],
    ['no new keys and a short past', { key: tensor(2, 0, 16), value: tensor(2, 0, 16) }, {}, 'shape', /only 3/],
    ['rotation without tables', {}, rotates, 'option', /do_rotary.*cos_cache/],
    ['cosines alone', { cos_cache: tensor(4, 8) }, rotates, 'option', /only cos_cache/],
    ['tables of two shapes', { cos_cache: tensor(4, 8), sin_cache: tensor(5, 8) }, rotates, 'shape', /sin_cache has shape \[5,8\]/],
    ['tables too short', caches(3, 8), rotates, 'shape', /cos_cache has 3 rows.*4/],
    ['tables too wide', caches(4, 16), rotates, 'shape', /cos_cache has shape \[4,16\]/],
    ['tables of an odd width', caches(4, 4), rotates, 'shape', /multiple of 8/],
    ['rotated heads of 8', { query: tensor(2, 1, 16), key: tensor(2, 1, 8), value: tensor(2, 1, 8), past_key: tensor(2, 1, 3, 8), past_value: tensor(2, 1, 3, 8), ...caches(4, 8) }, rotates, 'shape', /multiple of 16/],
    ['a position past the tables', { ...caches(4, 8), position_ids: int32([2, 1], 3, 4) }, rotates, 'option', /position_ids\[1\] is 4.*0 to 3/],
    ['a position below 0', { ...caches(4, 8), position_ids: int32([2, 1], 3, -1) }, rotates, 'option', /position_ids\[1\] is -1/],
    ['an offset that ends past the tables', { ...prompt(1, 3), ...caches(4, 8), position_ids: int32([1, 3], 2, 0, 0) }, rotates, 'option', /position_ids\[0\] is 2.*token 2 takes row 4/],
    ['positions of another batch', { ...caches(4, 8), position_ids: int32([1, 1], 3) }, rotates, 'shape', /position_ids has shape \[1,1\]/],
    ['a bias that does not fit', { attention_bias: tensor(2, 2, 1, 3) }, {}, 'shape', /attention_bias has shape \[2,2,1,3\].*1 or 2,1 or 2,1,4/],
    ['sinks of other heads', { head_sink: tensor(1) }, {}, 'shape', /head_sink has shape \[1\].*\[2\]/],
    ['a sink of NaN', { head_sink: { data: Float32Array.of(0, NaN), shape: [2] } }, {}, 'option', /head_sink\[1\] is NaN/],
    ['a flag of 2', {}, { causal: 2 }, 'option', /causal is 2/],
    ['a window of 0', {}, { local_window_size: 0 }, 'option', /local_window_size is 0/],
    ['a window in both directions', {}, { causal: 0, local_window_size: 2 }, 'option', /local_window_size is 2.*causal is 0/],
    ['a negative softcap', {}, { softcap: -1 }, 'option', /softcap is -1/],
    ['an output of the scores that is not', {}, { qk_output: 3 }, 'option', /qk_output is 3/],
    ['a smooth softmax of 2', {}, { smooth_softmax: 2 }, 'option', /smooth_softmax is 2/],
  ]);
});
