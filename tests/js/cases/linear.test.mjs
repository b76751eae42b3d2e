// LinearAttention of ai.onnx beside its case files: rules, gates per head, states of other types, and the errors.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gatedReference } from '../api/linear-reference.mjs';
import { assertThrows } from '../helpers/errors.mjs';
import { assertClose } from './compare.mjs';
import { fromBits, toBits } from './half-values.mjs';
import { ops } from './ops.mjs';
import { normalTensors } from './random.mjs';

const heads = { q_num_heads: 4, kv_num_heads: 2 };
const tensor = normalTensors(1);
const [query, key, value] = [tensor(2, 9, 12), tensor(2, 9, 6), tensor(2, 9, 10)];
key.data.forEach((x, i) => (key.data[i] = x / 3));
const gate = (/** @type {number[]} */ ...shape) => {
  const { data } = tensor(...shape);
  return { data: data.map((x) => -0.2 * Math.abs(x)), shape };
};
const [decay, headDecay] = [gate(2, 9, 6), gate(2, 9, 2)];
const beta = { data: gate(2, 9, 2).data.map((x) => -x), shape: [2, 9, 2] };
const past_state = tensor(2, 2, 3, 5);

const split = (/** @type {any} */ { data, shape }, /** @type {number} */ count) => ({
  data,
  shape: [shape[0], shape[1], count, shape[2] / count],
});

describe('LinearAttention', () => {
  const rules = /** @type {const} */ ({
    linear: {},
    gated: { decay },
    'gated ': { decay: headDecay },
    delta: { beta },
    gated_delta: { decay: headDecay, beta },
  });
  for (const [rule, gates] of Object.entries(rules)) {
    test(`${rule}: equals the recurrence, with a past and a scale`, () => {
      const update_rule = /** @type {any} */ (rule.trim());
      for (const [past, scale] of /** @type {[any, number][]} */ ([
        [null, 0],
        [past_state, 0.7],
      ])) {
        const got = ops.linearAttention(
          { query, key, value, past_state: past, ...gates },
          { ...heads, update_rule, scale, chunk_size: 4n },
        );
        const wide = 'decay' in gates && gates.decay === decay;
        const want = gatedReference(split(query, 4), split(key, 2), split(value, 2), {
          ...gates,
          ...(wide && { decay: split(decay, 2) }),
          layout: 'blhd',
          state: past ?? undefined,
          scale: scale || undefined,
        });
        assert.deepEqual(got.output.shape, [2, 9, 20]);
        assertClose('output', got.output.data, want.out, (x) => 1e-5 * (1 + Math.abs(x)));
        assertClose('present_state', got.present_state.data, want.state, (x) => 1e-5 * (1 + Math.abs(x)));
      }
    });
  }

  test('the state has the type of the past, or of the query', () => {
    const half = (/** @type {any} */ { data, shape }) => ({
      data: Uint16Array.from(data, (/** @type {number} */ x) => toBits('bfloat16', x)),
      shape,
      dtype: 'bfloat16',
    });
    const small = { query: half(query), key: half(key), value: half(value) };
    const attributes = { ...heads, update_rule: /** @type {const} */ ('linear') };
    const plain = ops.linearAttention(small, attributes);
    assert.equal(plain.output.dtype, 'bfloat16');
    assert.equal(plain.present_state.dtype, 'bfloat16');
    const zeros = { data: new Float32Array(60), shape: [2, 2, 3, 5] };
    const mixed = ops.linearAttention({ ...small, past_state: zeros }, attributes);
    assert.equal(mixed.output.dtype, 'bfloat16');
    assert.equal(mixed.present_state.dtype, 'float32');
    assert.deepEqual(mixed.output.data, plain.output.data);
    const bits = Array.from(mixed.present_state.data, (x) => fromBits('bfloat16', toBits('bfloat16', x)));
    assert.deepEqual(
      Array.from(plain.present_state.data, (x) => fromBits('bfloat16', x)),
      bits,
    );
  });

  const good = { query, key, value };
  const rule = (/** @type {any} */ update_rule) => ({ ...heads, update_rule });
  // prettier-ignore
  const faults = /** @type {[string, any, any, string, RegExp][]} */ ([
    ['no attributes', good, undefined, 'type', /attributes must be an object/],
    ['no q_num_heads', good, { kv_num_heads: 2 }, 'option', /q_num_heads is required/],
    ['no kv_num_heads', good, { q_num_heads: 2 }, 'option', /kv_num_heads is required/],
    ['heads of 0', good, { ...heads, kv_num_heads: 0 }, 'option', /kv_num_heads is 0/],
    ['heads that are no multiple', good, { q_num_heads: 3, kv_num_heads: 2 }, 'shape', /q_num_heads is 3/],
    ['another rule', good, rule('delta-rule'), 'option', /update_rule is delta-rule; it must be linear, gated/],
    ['the default rule without decay', { ...good, beta }, heads, 'option', /update_rule 'gated_delta' needs input decay/],
    ['delta without beta', good, rule('delta'), 'option', /needs input beta/],
    ['linear with beta', { ...good, beta }, rule('linear'), 'option', /update_rule 'linear' takes no input beta/],
    ['delta with decay', { ...good, beta, decay }, rule('delta'), 'option', /takes no input decay/],
    ['an unknown input', { ...good, state: past_state }, rule('linear'), 'unknown-option', /LinearAttention has no input state/],
    ['an unknown attribute', good, { ...heads, num_heads: 2 }, 'unknown-option', /LinearAttention has no attribute num_heads/],
    ['no key', { query, value }, rule('linear'), 'type', /input key is missing/],
    ['a query of rank 4', { ...good, query: tensor(2, 4, 9, 3) }, rule('linear'), 'shape', /query has shape \[2,4,9,3\]; it must be 3-D/],
    ['a width that the heads do not divide', { ...good, value: tensor(2, 9, 11) }, rule('linear'), 'shape', /value has shape \[2,9,11\].*2 heads/],
    ['a chunk of 0', good, { ...rule('linear'), chunk_size: 0 }, 'option', /chunk_size is 0/],
    ['a past of another shape', { ...good, past_state: tensor(2, 4, 3, 5) }, rule('linear'), 'shape', /state shape is \[2, 4, 3, 5\] but must be \[2, 2, 3, 5\]/],
    ['a scale of NaN', good, { ...rule('linear'), scale: NaN }, 'option', /scale is NaN/],
  ]);
  for (const [fault, inputs, attributes, code, message] of faults) {
    test(`${fault}: code ${code}`, () => {
      assertThrows(() => ops.linearAttention(inputs, attributes), code, message);
    });
  }
});
