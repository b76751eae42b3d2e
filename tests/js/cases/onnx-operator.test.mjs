// What `onnxOps(sdpa).attention` promises beyond numbers: which outputs exist, types in and out, forms of input.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { toTensor } from './case-files.mjs';
import { assertClose } from './compare.mjs';
import { fromBits, toBits } from './half-values.mjs';
import { referenceAttention } from './onnx-reference.mjs';
import { ops, sdpa } from './ops.mjs';
import { normalTensors } from './random.mjs';

const tensor = normalTensors(7);
const close = () => 3e-6;

/** Q, K, V in 4-D: two heads, three queries, five keys. */
const small = () => ({ Q: tensor(1, 2, 3, 4), K: tensor(1, 2, 5, 4), V: tensor(1, 2, 5, 6) });

describe('outputs of ONNX Attention', () => {
  test('are Y alone until another is read by name', () => {
    const inputs = small();
    const outputs = ops.attention(inputs);
    assert.deepEqual(Object.keys(outputs), ['Y']);
    const want = referenceAttention(inputs);
    assertClose('qk', outputs.qk_matmul_output.data, want.qk_matmul_output.values, close);
    assert.deepEqual(outputs.present_key, { data: inputs.K.data, shape: [1, 2, 5, 4], dtype: 'float32' });
    assert.deepEqual(Object.keys(outputs).sort(), ['Y', 'present_key', 'qk_matmul_output']);
    assert.equal(outputs.qk_matmul_output, outputs.qk_matmul_output, 'the second read is the same tensor');
  });

  test('hold the present where a past is given, and the scores where their mode is', () => {
    const past = { past_key: tensor(1, 2, 2, 4), past_value: tensor(1, 2, 2, 6) };
    assert.deepEqual(Object.keys(ops.attention({ ...small(), ...past })), ['Y', 'present_key', 'present_value']);
    assert.deepEqual(Object.keys(ops.attention(small(), { qk_matmul_output_mode: 0 })), ['Y', 'qk_matmul_output']);
  });

  test('are the same bits whether the scores are asked for or not', () => {
    const inputs = small();
    const { Y } = ops.attention(inputs, { is_causal: 1 });
    for (const mode of [0, 1, 2, 3]) {
      assert.deepEqual(ops.attention(inputs, { is_causal: 1, qk_matmul_output_mode: mode }).Y, Y);
    }
  });

  test('that are read later belong to the tensors of the call, whatever its objects hold by then', () => {
    const inputs = small();
    const attributes = { scale: 0.7 };
    const want = referenceAttention(inputs, attributes);
    const outputs = ops.attention(inputs, attributes);
    Object.assign(inputs, small());
    attributes.scale = 3;
    assertClose('present_value', outputs.present_value.data, want.present_value.values, () => 0);
    assertClose('qk', outputs.qk_matmul_output.data, want.qk_matmul_output.values, close);
  });

  test('never alias an input', () => {
    const inputs = small();
    const { present_key: key } = ops.attention(inputs);
    assert.notEqual(key.data.buffer, inputs.K.data.buffer);
  });

  test('need no L x T memory unless the scores are read', () => {
    const length = 3000;
    const inputs = { Q: tensor(1, 1, length, 1), K: tensor(1, 1, length, 1), V: tensor(1, 1, length, 1) };
    const outputs = ops.attention(inputs);
    const matrix = 4 * length * length;
    assert.ok(sdpa.memory().peak < matrix / 2, `peak ${sdpa.memory().peak}`);
    assert.equal(outputs.qk_matmul_output.data.length, length * length);
    assert.ok(sdpa.memory().peak >= matrix, 'the bound above can be missed');
  });
});

describe('types of ONNX Attention', () => {
  // One key: the weight is 1 and Y is V, converted to Q's type.
  const through = (dtype, values) => {
    const data = Float32Array.from(values);
    const Q = { data: Uint16Array.of(0), shape: [1, 1, 1, 1], dtype };
    const K = { data: Float32Array.of(0), shape: [1, 1, 1, 1] };
    return { data, Y: ops.attention({ Q, K, V: { data, shape: [1, 1, 1, data.length] } }).Y };
  };

  for (const dtype of ['float16', 'bfloat16']) {
    test(`a ${dtype} output is the nearest value, ties to even, over the whole range`, () => {
      const infinity = dtype === 'float16' ? 0x7c00 : 0x7f80;
      const values = [0, -0, Infinity, -Infinity, NaN, 3.4028234663852886e38, 65519.996, 65520, 1e-8, 2 ** -149];
      for (let bits = 0; bits < infinity - 1; ++bits) {
        const [value, above] = [fromBits(dtype, bits), fromBits(dtype, bits + 1)];
        const tie = (value + above) / 2;
        values.push(value, -tie, tie, tie * (1 - 2 ** -22), tie * (1 + 2 ** -22));
      }
      const { data, Y } = through(dtype, values);
      assert.equal(Y.dtype, dtype);
      assert.ok(Y.data instanceof Uint16Array);
      for (let i = 0; i < data.length; ++i) {
        if (Number.isNaN(data[i])) assert.ok(Number.isNaN(fromBits(dtype, Y.data[i])));
        else assert.equal(Y.data[i] & 0x7fff, toBits(dtype, data[i]) & 0x7fff, `${data[i]}`);
      }
    });
  }

  test('Y has the type of Q, the present that of K and V, and the mask any of its own', () => {
    const half = (dtype, t) => toTensor({ ...t, dtype });
    const { Q, K, V } = small();
    const past = { past_key: half('bfloat16', tensor(1, 2, 1, 4)), past_value: half('float16', tensor(1, 2, 1, 6)) };
    const inputs = { Q, K: half('bfloat16', K), V: half('float16', V), ...past };
    const outputs = ops.attention(
      { ...inputs, attn_mask: half('float16', tensor(3, 6)) },
      { qk_matmul_output_mode: 2 },
    );
    const types = Object.entries(outputs).map(([name, { dtype }]) => [name, dtype]);
    assert.deepEqual(Object.fromEntries(types), {
      Y: 'float32',
      present_key: 'bfloat16',
      present_value: 'float16',
      qk_matmul_output: 'float32',
    });
  });

  const noFloat16Array = typeof globalThis.Float16Array === 'undefined' && 'this engine has no Float16Array';
  test('a Float16Array gives Float16Array outputs of the same values', { skip: noFloat16Array }, () => {
    const { Q, K, V } = small();
    const bits = Object.fromEntries(
      Object.entries({ Q, K, V }).map(([n, t]) => [n, toTensor({ ...t, dtype: 'float16' })]),
    );
    const asFloat16 = ({ data, shape }) => ({ data: new globalThis.Float16Array(data.buffer), shape });
    const floats = Object.fromEntries(Object.entries(bits).map(([n, t]) => [n, asFloat16(t)]));
    const attributes = { qk_matmul_output_mode: 3 };
    const [got, want] = [ops.attention(floats, attributes), ops.attention(bits, attributes)];
    for (const name of ['Y', 'present_key', 'present_value', 'qk_matmul_output']) {
      assert.ok(got[name].data instanceof globalThis.Float16Array, name);
      assert.deepEqual(new Uint16Array(got[name].data.buffer), want[name].data);
    }
  });
});

describe('inputs of ONNX Attention', () => {
  test('a tensor of another library passes by its dims and type', () => {
    const inputs = small();
    const theirs = Object.entries(inputs).map(([n, { data, shape }]) => [n, { data, dims: shape, type: 'float32' }]);
    const mask = { data: Uint8Array.of(1, 0, 1, 1, 0), dims: [5], type: 'bool' };
    const got = ops.attention({ ...Object.fromEntries(theirs), attn_mask: mask });
    const want = referenceAttention({ ...inputs, attn_mask: { values: mask.data, shape: [5], dtype: 'bool' } });
    assertClose('Y', got.Y.data, want.Y.values, close);
  });

  test('a boolean mask may be a plain array of booleans', () => {
    const inputs = small();
    const flags = [true, false, true, true, false];
    const plain = ops.attention({ ...inputs, attn_mask: { data: flags, shape: [5] } });
    const bytes = ops.attention({ ...inputs, attn_mask: { data: Uint8Array.from(flags), shape: [5] } });
    assert.deepEqual(plain.Y, bytes.Y);
    assert.notDeepEqual(plain.Y, ops.attention(inputs).Y);
  });

  test('lengths come as BigInt64Array, Int32Array or plain numbers, as tensor or as vector', () => {
    const inputs = small();
    const wanted = ops.attention({
      ...inputs,
      nonpad_kv_seqlen: { data: BigInt64Array.of(2n), shape: [1], dtype: 'int64' },
    });
    assert.notDeepEqual(wanted.Y, ops.attention(inputs).Y);
    for (const lengths of [BigInt64Array.of(2n), Int32Array.of(2), [2], [2n], { data: Int32Array.of(2), shape: [1] }]) {
      assert.deepEqual(ops.attention({ ...inputs, nonpad_kv_seqlen: lengths }).Y, wanted.Y);
    }
  });

  test('an integer attribute may be a bigint, a flag a boolean, and an absent optional null', () => {
    const inputs = { ...small(), attn_mask: null, past_key: undefined, nonpad_kv_seqlen: null };
    const want = ops.attention(inputs, { is_causal: 1, left_window_size: 1 });
    const got = ops.attention(inputs, { is_causal: true, left_window_size: 1n, scale: undefined, softcap: null });
    assert.deepEqual(got.Y, want.Y);
  });

  test('tensors in wasm memory serve in either rank, and later outputs still read them after growth', () => {
    const { Q, K, V } = small();
    const resident = Object.fromEntries(
      Object.entries({ Q, K, V }).map(([name, { data, shape }]) => {
        const own = sdpa.tensor(shape);
        own.data.set(data);
        return [name, own];
      }),
    );
    const outputs = ops.attention(resident);
    assert.deepEqual(outputs.Y, ops.attention({ Q, K, V }).Y);
    const big = sdpa.tensor([sdpa.memory().wasm / 4]);
    big.dispose();
    assert.deepEqual(outputs.present_key.data, K.data);
    assert.deepEqual(outputs.qk_matmul_output, ops.attention({ Q, K, V }).qk_matmul_output);

    const flat = sdpa.tensor([1, 3, 8]);
    flat.data.set(Q.data);
    const heads = { q_num_heads: 2, kv_num_heads: 2 };
    const [K3, V3] = [tensor(1, 5, 8), tensor(1, 5, 6)];
    const want = ops.attention({ Q: { data: Q.data, shape: [1, 3, 8] }, K: K3, V: V3 }, heads);
    assert.deepEqual(ops.attention({ Q: flat, K: K3, V: V3 }, heads).Y, want.Y);
  });

  test('what lies behind a length, a mask or a window is never read', () => {
    const inputs = { Q: tensor(1, 1, 2, 4), K: tensor(1, 1, 6, 4), V: tensor(1, 1, 6, 3) };
    const clean = ops.attention({ ...inputs, nonpad_kv_seqlen: [4] }, { is_causal: 1 });
    inputs.K.data.fill(NaN, 16);
    inputs.V.data.fill(Infinity, 12);
    assert.deepEqual(ops.attention({ ...inputs, nonpad_kv_seqlen: [4] }, { is_causal: 1 }).Y, clean.Y);
    const short = { data: Uint8Array.of(1, 1, 1, 1), shape: [4] };
    assert.ok(ops.attention({ ...inputs, attn_mask: short }).Y.data.every(Number.isFinite));
    assert.ok(ops.attention(inputs, { right_window_size: 2 }).Y.data.every(Number.isFinite));
  });

  test('every precision of the softmax that ONNX names is taken', () => {
    const inputs = small();
    const want = ops.attention(inputs).Y;
    for (const type of [1, 10, 11, 16]) assert.deepEqual(ops.attention(inputs, { softmax_precision: type }).Y, want);
  });
});
