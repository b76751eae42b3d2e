// What GroupQueryAttention of com.microsoft promises beyond single results: steps against whole prompts, batches against single
// sequences, what is not read.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { assertClose } from './compare.mjs';
import { ops } from './ops.mjs';
import { normalTensors } from './random.mjs';

const tensor = normalTensors(19);
const close = () => 3e-6;
const int32 = (shape, ...data) => ({ data: Int32Array.from(data), shape });

/** Row r of a (B, L, width) tensor's batch b. */
const row = ({ data, shape: [, length, width] }, b, r) => [
  ...data.subarray((b * length + r) * width, (b * length + r + 1) * width),
];

/** Rows first…last of one batch, as a tensor of batch 1. */
const part = ({ data, shape: [, length, width] }, b, first, last) => ({
  data: data.slice((b * length + first) * width, (b * length + last) * width),
  shape: [1, last - first, width],
});

describe('GroupQueryAttention of com.microsoft', () => {
  const heads = { num_heads: 4, kv_num_heads: 2 };
  /** Four query heads and two key heads of sixteen. */
  const prompt = (length, batch = 1) => ({
    query: tensor(batch, length, 64),
    key: tensor(batch, length, 32),
    value: tensor(batch, length, 32),
    seqlens_k: Array(batch).fill(length - 1),
    total_sequence_length: [length],
  });
  const angles = (rows) => {
    const angle = (n) => Math.floor(n / 8) * 10000 ** (-(n % 8) / 8);
    const table = (f) => ({ data: Float32Array.from({ length: rows * 8 }, (_, n) => f(angle(n))), shape: [rows, 8] });
    return { cos_cache: table(Math.cos), sin_cache: table(Math.sin) };
  };

  for (const options of [{}, { local_window_size: 3 }, { softcap: 2, smooth_softmax: 1 }]) {
    test(`token by token gives what the whole prompt gives: ${JSON.stringify(options)}`, () => {
      const length = 7;
      const inputs = { ...prompt(length), ...angles(length) };
      const attributes = { ...heads, do_rotary: 1, ...options };
      const whole = ops.msGroupQueryAttention(inputs, attributes);
      // Two tokens, then three at once, then one by one.
      let cache = {};
      for (const [first, last] of [
        [0, 2],
        [2, 5],
        [5, 6],
        [6, 7],
      ]) {
        const step = Object.fromEntries(
          ['query', 'key', 'value'].map((name) => [name, part(inputs[name], 0, first, last)]),
        );
        const got = ops.msGroupQueryAttention(
          { ...inputs, ...step, ...cache, seqlens_k: [last - 1], total_sequence_length: [last] },
          attributes,
        );
        for (let r = first; r < last; ++r)
          assertClose(`row ${r}`, row(got.output, 0, r - first), row(whole.output, 0, r), close);
        cache = { past_key: got.present_key, past_value: got.present_value };
      }
      assert.deepEqual(cache.past_key, whole.present_key);
      assert.deepEqual(cache.past_value, whole.present_value);
    });
  }

  test('a right-padded batch gives each sequence what it gets alone', () => {
    const inputs = { ...prompt(5, 2), seqlens_k: [2, 4] };
    const padded = ops.msGroupQueryAttention(inputs, heads).output;
    [3, 5].forEach((length, b) => {
      const names = ['query', 'key', 'value'];
      const alone = Object.fromEntries(names.map((name) => [name, part(inputs[name], b, 0, length)]));
      const want = ops.msGroupQueryAttention(
        { ...alone, seqlens_k: [length - 1], total_sequence_length: [length] },
        heads,
      ).output;
      for (let r = 0; r < length; ++r) assertClose(`row ${r}`, row(padded, b, r), row(want, 0, r), close);
    });
  });

  test('a first prompt does not read the past, and no step what lies behind the rows in use', () => {
    const poison = (rows) => ({ data: new Float32Array(2 * rows * 16).fill(NaN), shape: [1, 2, rows, 16] });
    const inputs = prompt(4);
    const got = ops.msGroupQueryAttention({ ...inputs, past_key: poison(6), past_value: poison(6) }, heads);
    assert.deepEqual(got.output, ops.msGroupQueryAttention(inputs, heads).output);
    assert.deepEqual(got.present_key.shape, [1, 2, 6, 16]);
    assert.ok(got.present_key.data.every(Number.isFinite));
    const past = { past_key: poison(6), past_value: poison(6) };
    for (const t of Object.values(past)) for (const h of [0, 1]) t.data.fill(0.5, h * 96, h * 96 + 48);
    const token = { ...prompt(1), ...past, seqlens_k: [3], total_sequence_length: [4] };
    assert.ok(ops.msGroupQueryAttention(token, heads).output.data.every(Number.isFinite));
  });

  test('lengths come in the shapes that older models have', () => {
    const inputs = prompt(3, 2);
    const want = ops.msGroupQueryAttention(inputs, heads).output;
    for (const shape of [[2], [2, 1], [1, 2]]) {
      const given = { ...inputs, seqlens_k: int32(shape, 2, 2), total_sequence_length: int32([], 3) };
      assert.deepEqual(ops.msGroupQueryAttention(given, heads).output, want);
    }
  });

  test('of a first prompt the first position counts, as an offset for all', () => {
    const inputs = { ...prompt(3, 2), ...angles(9) };
    const attributes = { ...heads, do_rotary: 1 };
    const at = (...ids) => ops.msGroupQueryAttention({ ...inputs, position_ids: int32([2, 3], ...ids) }, attributes);
    assert.deepEqual(at(0, 99, -5, 0, 0, 0), ops.msGroupQueryAttention(inputs, attributes));
    assert.notDeepEqual(at(6, 0, 0, 0, 0, 0).present_key, at(0, 0, 0, 0, 0, 0).present_key);
    assertClose('output', at(6, 0, 0, 0, 0, 0).output.data, at(0, 0, 0, 0, 0, 0).output.data, close);
  });

  test('tables without do_rotary, and attributes at their defaults, change nothing', () => {
    const inputs = prompt(3);
    const want = ops.msGroupQueryAttention(inputs, heads);
    const defaults = {
      causal: 1,
      scale: 0,
      softcap: 0,
      local_window_size: -1,
      do_rotary: 0,
      smooth_softmax: -1,
      qk_output: 0,
      k_quant_type: 'NONE',
      v_quant_type: 'NONE',
      kv_cache_bit_width: 0,
      sliding_window_cache: 0,
      qk_norm_epsilon: 1e-6,
    };
    assert.deepEqual(ops.msGroupQueryAttention({ ...inputs, ...angles(3) }, { ...heads, ...defaults }), want);
    assert.deepEqual(ops.msGroupQueryAttention({ ...inputs, head_sink: null, attention_bias: undefined }, heads), want);
  });

  test('no output is an input', () => {
    const inputs = { ...prompt(1), past_key: tensor(1, 2, 3, 16), past_value: tensor(1, 2, 3, 16) };
    const copies = structuredClone(inputs);
    const outputs = ops.msGroupQueryAttention({ ...inputs, seqlens_k: [3], total_sequence_length: [4] }, heads);
    for (const { data } of Object.values(outputs)) data.fill(7);
    assert.deepEqual(inputs, copies);
  });
});
