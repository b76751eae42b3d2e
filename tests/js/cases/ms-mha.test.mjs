// What MultiHeadAttention of com.microsoft promises beyond single results: which outputs there are, forms of input, and results of
// one call against those of others.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { toTensor } from './case-files.mjs';
import { assertClose } from './compare.mjs';
import { ops, sdpa } from './ops.mjs';
import { normalTensors } from './random.mjs';

const tensor = normalTensors(17);
const close = () => 3e-6;
const int32 = (shape, ...data) => ({ data: Int32Array.from(data), shape });

/** Rows first…last of one batch, as a tensor of batch 1. */
const part = ({ data, shape: [, length, width] }, b, first, last) => ({
  data: data.slice((b * length + first) * width, (b * length + last) * width),
  shape: [1, last - first, width],
});

describe('MultiHeadAttention of com.microsoft', () => {
  const two = { num_heads: 2 };
  /** Two heads of four, three queries, five keys. */
  const small = () => ({ query: tensor(1, 3, 8), key: tensor(1, 5, 8), value: tensor(1, 5, 8) });

  test('has the output alone until another is read by name', () => {
    const inputs = small();
    const outputs = ops.msMultiHeadAttention(inputs, two);
    assert.deepEqual(Object.keys(outputs), ['output']);
    assert.deepEqual(outputs.present_key.shape, [1, 2, 5, 4]);
    assert.deepEqual(outputs.qk.shape, [1, 2, 3, 5]);
    assert.deepEqual(outputs.output, ops.msMultiHeadAttention(inputs, two).output, 'the same bits');
    assert.deepEqual(Object.keys(outputs).sort(), ['output', 'present_key', 'qk']);
    assert.equal(outputs.qk, outputs.qk, 'the second read is the same tensor');
    const past = { past_key: tensor(1, 2, 1, 4), past_value: tensor(1, 2, 1, 4) };
    const keys = Object.keys(ops.msMultiHeadAttention({ ...inputs, ...past }, two));
    assert.deepEqual(keys, ['output', 'present_key', 'present_value']);
  });

  test('gives later outputs of the tensors of the call, whatever its objects hold by then', () => {
    const inputs = { ...small(), bias: tensor(24) };
    const attributes = { ...two, scale: 0.7 };
    const want = ops.msMultiHeadAttention({ ...inputs }, { ...attributes });
    const outputs = ops.msMultiHeadAttention(inputs, attributes);
    Object.assign(inputs, small(), { bias: null });
    attributes.scale = 3;
    assert.deepEqual(outputs.present_value, want.present_value);
    assert.deepEqual(outputs.qk, want.qk);
  });

  test('needs no L x T memory unless the scores are read', () => {
    const length = 3000;
    const [query, key, value] = [0, 1, 2].map(() => tensor(1, length, 1));
    const outputs = ops.msMultiHeadAttention({ query, key, value }, { num_heads: 1 });
    const matrix = 4 * length * length;
    assert.ok(sdpa.memory().peak < matrix / 2, `peak ${sdpa.memory().peak}`);
    assert.equal(outputs.qk.data.length, length * length);
  });

  test('packed query, key and value give the bits of separate ones', () => {
    const qkv = tensor(2, 3, 2, 3, 4);
    const pick = (p) => ({
      data: Float32Array.from({ length: 48 }, (_, n) => qkv.data[Math.floor(n / 4) * 12 + p * 4 + (n % 4)]),
      shape: [2, 3, 8],
    });
    const [query, key, value] = [pick(0), pick(1), pick(2)];
    const want = ops.msMultiHeadAttention({ query, key, value }, two);
    const got = ops.msMultiHeadAttention({ query: qkv }, two);
    assert.deepEqual(got.output, want.output);
    assert.deepEqual(got.present_value, want.present_value);
    const kv = {
      data: Float32Array.from(
        { length: 96 },
        (_, n) => (Math.floor(n / 4) % 2 ? value : key).data[Math.floor(n / 8) * 4 + (n % 4)],
      ),
      shape: [2, 3, 2, 2, 4],
    };
    assert.deepEqual(ops.msMultiHeadAttention({ query, key: kv }, two).output, want.output);
    const first = { key: ops.msMultiHeadAttention({ query, key, value }, two).present_key, value: want.present_value };
    assert.deepEqual(ops.msMultiHeadAttention({ query, ...first }, two).output, want.output);
  });

  test('a row whose keys are all masked is a normal row', () => {
    // Scores are multiples of 1/8: 10 000 less, they are exact still.
    const key = { data: Float32Array.of(0.5, -0.25, 1.125), shape: [1, 3, 1] };
    const inputs = { query: { data: Float32Array.of(1, 2), shape: [1, 2, 1] }, key, value: tensor(1, 3, 1) };
    const want = ops.msMultiHeadAttention(inputs, { num_heads: 1 }).output;
    for (const mask of [int32([1], 0), int32([1, 3], 0, 0, 0), int32([1, 3], 0, -1, 0), int32([5], 0, 0, 2, 0, 3)]) {
      const got = ops.msMultiHeadAttention({ ...inputs, key_padding_mask: mask }, { num_heads: 1 }).output;
      assertClose('output', got.data, want.data, close);
    }
    const dead = ops.msMultiHeadAttention(
      { ...inputs, key_padding_mask: int32([1], 0) },
      { num_heads: 1, mask_filter_value: -Infinity },
    );
    assert.deepEqual([...dead.output.data], [0, 0], 'with -Infinity it is a row of zeros');
  });

  test('a length beyond the keys masks nothing, nor does a mask (B, 1)', () => {
    const inputs = small();
    const want = ops.msMultiHeadAttention(inputs, two).output;
    for (const mask of [int32([1], 9), int32([1, 1], 0), [5], BigInt64Array.of(7n)]) {
      assert.deepEqual(ops.msMultiHeadAttention({ ...inputs, key_padding_mask: mask }, two).output, want);
    }
  });

  test('of unidirectional queries the last sees all keys, the others those up to their own', () => {
    const seen = (length, added, past) => {
      const inputs = { query: tensor(1, length, 8), key: tensor(1, added, 8), value: tensor(1, added, 8) };
      const rows = { past_key: tensor(1, 2, past, 4), past_value: tensor(1, 2, past, 4) };
      const { qk } = ops.msMultiHeadAttention({ ...inputs, ...rows }, { ...two, unidirectional: true });
      const keys = past + added;
      return Array.from({ length }, (_, i) =>
        [...qk.data.slice(i * keys, (i + 1) * keys)].map((s) => Number(s > -Infinity)).join(''),
      );
    };
    assert.deepEqual(seen(3, 3, 1), ['1100', '1110', '1111']);
    assert.deepEqual(seen(3, 4, 1), ['11000', '11100', '11111']);
    assert.deepEqual(seen(4, 2, 0), ['10', '11', '11', '11']);
    assert.deepEqual(seen(1, 3, 0), ['111']);
  });

  test('a right-padded batch gives each sequence what it gets alone', () => {
    const inputs = { query: tensor(2, 3, 8), key: tensor(2, 5, 8), value: tensor(2, 5, 8) };
    const padded = ops.msMultiHeadAttention({ ...inputs, key_padding_mask: [2, 4] }, two).output;
    [2, 4].forEach((length, b) => {
      const alone = ops.msMultiHeadAttention(
        {
          query: part(inputs.query, b, 0, 3),
          key: part(inputs.key, b, 0, length),
          value: part(inputs.value, b, 0, length),
        },
        two,
      ).output;
      assertClose(`batch ${b}`, padded.data.slice(b * 24, b * 24 + 24), alone.data, close);
    });
  });

  test('new rows go into the past where it is a buffer, and the rest of it stays', () => {
    const inputs = { ...small(), past_key: tensor(1, 2, 9, 4), past_value: tensor(1, 2, 9, 4) };
    const { present_key: key } = ops.msMultiHeadAttention({ ...inputs, past_sequence_length: [2] }, two);
    assert.deepEqual(key.shape, [1, 2, 9, 4]);
    assert.deepEqual(key.data.slice(0, 8), inputs.past_key.data.slice(0, 8));
    assert.deepEqual(key.data.slice(8, 12), inputs.key.data.slice(0, 4));
    assert.deepEqual(key.data.slice(28, 36), inputs.past_key.data.slice(28, 36));
  });

  test('keys of another sequence know no steps and no beams', () => {
    const inputs = { query: tensor(2, 1, 8), key: tensor(2, 2, 5, 4), value: tensor(2, 2, 5, 4) };
    const want = ops.msMultiHeadAttention(inputs, two).output;
    const beams = { past_sequence_length: [3], cache_indirection: int32([1, 2, 4], 0, 0, 1, 0, 1, 1, 1, 1) };
    assert.deepEqual(ops.msMultiHeadAttention({ ...inputs, ...beams }, two).output, want);
  });

  test('tensors of other libraries and tensors in wasm memory serve as well', () => {
    const inputs = small();
    const want = ops.msMultiHeadAttention(inputs, two);
    const theirs = Object.entries(inputs).map(([name, { data, shape }]) => [
      name,
      { data, dims: shape, type: 'float32' },
    ]);
    assert.deepEqual(ops.msMultiHeadAttention(Object.fromEntries(theirs), two).output, want.output);
    const resident = Object.entries(inputs).map(([name, { data, shape }]) => {
      const own = sdpa.tensor(shape);
      own.data.set(data);
      return [name, own];
    });
    const got = ops.msMultiHeadAttention(Object.fromEntries(resident), two);
    assert.deepEqual(got.output, want.output);
    sdpa.tensor([sdpa.memory().wasm / 4]).dispose();
    assert.deepEqual(got.present_key, want.present_key);
    assert.deepEqual(got.qk, want.qk);
  });

  const noFloat16Array = typeof globalThis.Float16Array === 'undefined' && 'this engine has no Float16Array';
  test('a Float16Array gives Float16Array outputs of the same values', { skip: noFloat16Array }, () => {
    const bits = Object.entries(small()).map(([n, t]) => [n, toTensor({ ...t, dtype: 'float16' })]);
    const floats = bits.map(([n, { data, shape }]) => [n, { data: new globalThis.Float16Array(data.buffer), shape }]);
    const [got, want] = [floats, bits].map((inputs) => ops.msMultiHeadAttention(Object.fromEntries(inputs), two));
    for (const name of ['output', 'present_key', 'qk']) {
      assert.ok(got[name].data instanceof globalThis.Float16Array, name);
      assert.deepEqual(new Uint16Array(got[name].data.buffer), want[name].data);
    }
  });
});
