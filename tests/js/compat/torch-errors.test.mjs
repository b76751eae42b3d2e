// What scaledDotProductAttention refuses, as PyTorch does, and how it says so.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { torchFunctional } from 'sdpa/torch';
import { assertThrows } from '../helpers/errors.mjs';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';

const sdpa = await loadVariant();
const { scaledDotProductAttention } = torchFunctional(sdpa);
const { tensor } = randomSource(31);

const q = tensor(2, 4, 3, 8);
const k = tensor(2, 4, 6, 8);
const flags = { data: new Uint8Array(18), shape: [3, 6] };

// What is wrong, query, key, value, options, code, message.
// prettier-ignore
const faults = /** @type {[string, any, any, any, any, string, RegExp][]} */ ([
  ['no query', undefined, k, k, {}, 'type', /query is missing/],
  ['no value', q, k, null, {}, 'type', /value is missing/],
  ['a bare array', new Float32Array(8), k, k, {}, 'type', /query must be a tensor/],
  ['tensors of two types', q, { ...k, data: new Uint16Array(384), dtype: 'float16' }, k, {}, 'type', /key is float16 but query is float32/],
  ['one dimension', tensor(8), k, k, {}, 'shape', /query must have at least 2 dimensions, got shape \[8\]/],
  ['different row sizes', tensor(2, 4, 3, 7), k, k, {}, 'shape', /key has rows of 8 but query of 7/],
  ['different lengths of key and value', q, k, tensor(2, 4, 5, 8), {}, 'shape', /value has length 5 but key 6/],
  ['heads that do not match', tensor(2, 8, 3, 8), k, k, {}, 'shape', /do not broadcast: query \[2,8,3,8\], key \[2,4,6,8\].*enableGqa: true/],
  ['batches that do not match', tensor(3, 4, 3, 8), k, k, {}, 'shape', /do not broadcast: query \[3,4,3,8\], key \[2,4,6,8\]/],
  ['enableGqa with heads that do not divide', tensor(2, 6, 3, 8), k, k, { enableGqa: true }, 'shape', /query has 6 heads, key 4, value 4/],
  ['enableGqa with fewer query heads', tensor(2, 2, 3, 8), k, k, { enableGqa: true }, 'shape', /query has 2 heads, key 4/],
  ['enableGqa with different heads of key and value', q, k, tensor(2, 2, 6, 8), { enableGqa: true }, 'shape', /query has 4 heads, key 4, value 2/],
  ['enableGqa without heads', tensor(3, 8), tensor(6, 8), tensor(6, 8), { enableGqa: true }, 'shape', /at least 3 dimensions/],
  ['enableGqa with batches that do not match', tensor(3, 4, 3, 8), k, k, { enableGqa: true }, 'shape', /do not broadcast/],
  ['a mask with isCausal', q, k, k, { attnMask: flags, isCausal: true }, 'option', /attnMask and isCausal exclude each other/],
  ['a mask that does not broadcast', q, k, k, { attnMask: tensor(2, 6) }, 'shape', /attnMask has shape \[2,6\].*\[2,4,3,6\]/],
  ['a mask of more dimensions', q, k, k, { attnMask: tensor(1, 2, 4, 3, 6) }, 'shape', /attnMask has shape \[1,2,4,3,6\]/],
  ['an integer mask', q, k, k, { attnMask: { data: new Int32Array(18), shape: [3, 6] } }, 'type', /attnMask is int32/],
  ['a mask of plain numbers', q, k, k, { attnMask: { data: Array(18).fill(1), shape: [3, 6] } }, 'type', /attnMask data\[0\] must be true or false, got 1.*Float32Array/],
  ['a bare mask', q, k, k, { attnMask: flags.data }, 'type', /attnMask must be a tensor/],
  ['a mask of text', q, k, k, { attnMask: 'causal' }, 'type', /attnMask must be a tensor/],
  ['isCausal as a number', q, k, k, { isCausal: 1 }, 'type', /isCausal must be true or false/],
  ['enableGqa as a number', q, k, k, { enableGqa: 1 }, 'type', /enableGqa must be true or false/],
  ['a dropoutP above 1', q, k, k, { dropoutP: 1.1 }, 'option', /dropoutP must be between 0 and 1, got 1.1/],
  ['a dropoutP of NaN', q, k, k, { dropoutP: NaN }, 'option', /dropoutP must be between 0 and 1, got NaN/],
  ['a dropoutP of text', q, k, k, { dropoutP: '0.1' }, 'type', /dropoutP must be a number/],
  ['a negative seed', q, k, k, { dropoutP: 0.1, seed: -1 }, 'option', /seed must be a whole number, 0 or more/],
  ['a scale of NaN', q, k, k, { scale: NaN }, 'option', /scale must be finite/],
  ['a scale of text', q, k, k, { scale: '1' }, 'type', /scale must be a number/],
  ['attn_mask', q, k, k, { attn_mask: flags }, 'unknown-option', /no option 'attn_mask'; did you mean 'attnMask'\?/],
  ['is_causal', q, k, k, { is_causal: true }, 'unknown-option', /did you mean 'isCausal'\?/],
  ['dropout_p', q, k, k, { dropout_p: 0 }, 'unknown-option', /did you mean 'dropoutP'\?/],
  ['enable_gqa', q, k, k, { enable_gqa: true }, 'unknown-option', /did you mean 'enableGqa'\?/],
  ["our own names", q, k, k, { causal: true }, 'unknown-option', /the options are attnMask, dropoutP/],
  ['a mask where the options go', q, k, k, flags.data, 'type', /options of scaledDotProductAttention must be an object/],
]);

for (const [fault, query, key, value, options, code, message] of faults) {
  test(`${fault}: code ${code}`, () => {
    assertThrows(() => scaledDotProductAttention(query, key, value, options), code, message);
    assert.equal(scaledDotProductAttention(q, k, k).data.length, 192, 'the instance goes on');
  });
}

test('an instance that was disposed of', async () => {
  const gone = await loadVariant();
  gone.dispose();
  assertThrows(() => torchFunctional(gone).scaledDotProductAttention(q, k, k), 'disposed', /disposed/);
});

test('float64 is a type of PyTorch, and not taken here', () => {
  assert.throws(
    () => scaledDotProductAttention({ data: new Float64Array(192), shape: [2, 4, 3, 8] }, k, k),
    (error) => error instanceof TypeError && error.code === 'unsupported' && /query is float64/.test(error.message),
  );
});
