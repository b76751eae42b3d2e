// RotaryEmbedding of ONNX and of com.microsoft beyond the case files: against sdpa's own formula, forms of input, faults.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { assertThrows } from '../helpers/errors.mjs';
import { toTensor, valuesOf } from './case-files.mjs';
import { assertClose } from './compare.mjs';
import { roundTo } from './half-values.mjs';
import { ops, sdpa } from './ops.mjs';
import { normalTensors } from './random.mjs';

const tensor = normalTensors(17);
const ids = (shape, ...positions) => ({ data: BigInt64Array.from(positions, BigInt), shape, dtype: 'int64' });

/** cos_cache and sin_cache of positions 0 to rows - 1. */
function tables(rows, pairs) {
  const angles = Float64Array.from(
    { length: rows * pairs },
    (_, x) => Math.floor(x / pairs) / 100 ** ((x % pairs) / pairs),
  );
  const table = (f) => ({ data: Float32Array.from(angles, f), shape: [rows, pairs], dtype: 'float32' });
  return { cos_cache: table(Math.cos), sin_cache: table(Math.sin) };
}

/** By the formula, in float64. `at(b, i)` is the table's row of token i. */
function expected(x, { cos_cache, sin_cache }, heads, interleaved, at) {
  const flat = x.shape.length === 3;
  const [B, L] = flat ? x.shape : [x.shape[0], x.shape[2]];
  const H = flat ? heads : x.shape[1];
  const D = flat ? x.shape[2] / H : x.shape[3];
  const pairs = cos_cache.shape.at(-1);
  const out = Float64Array.from(x.values);
  for (let b = 0; b < B; ++b)
    for (let h = 0; h < H; ++h)
      for (let i = 0; i < L; ++i)
        for (let k = 0; k < pairs; ++k) {
          const start = flat ? ((b * L + i) * H + h) * D : ((b * H + h) * L + i) * D;
          const [p, q] = interleaved ? [start + 2 * k, start + 2 * k + 1] : [start + k, start + k + pairs];
          const [c, s] = [cos_cache, sin_cache].map(({ data }) => data[at(b, i) * pairs + k]);
          out[p] = c * x.values[p] - s * x.values[q];
          out[q] = s * x.values[p] + c * x.values[q];
        }
  return out;
}

const close = (want) => 2 ** -23 * Math.abs(want) + 1e-30;

describe('ONNX RotaryEmbedding', () => {
  for (const interleaved of [0, 1]) {
    test(`4-D and 3-D, all columns and some, interleaved ${interleaved}`, () => {
      const positions = [3, 0, 9, 9, 1, 4];
      for (const [shape, heads, pairs] of [
        [[2, 4, 3, 8], 4, 4],
        [[2, 4, 3, 8], 4, 3],
        [[2, 1, 3, 7], 1, 2],
        [[2, 3, 40], 5, 4],
        [[2, 3, 35], 5, 3],
      ]) {
        const X = tensor(...shape);
        const size = shape.length === 3 ? shape[2] / heads : shape[3];
        const inputs = { X, ...tables(10, pairs), position_ids: ids([2, 3], ...positions) };
        const attributes = {
          interleaved,
          ...(shape.length === 3 && { num_heads: heads }),
          ...(2 * pairs !== size && { rotary_embedding_dim: 2 * pairs }),
        };
        const { Y } = ops.rotaryEmbedding(inputs, attributes);
        assert.deepEqual([Y.shape, Y.dtype], [shape, 'float32']);
        assertClose(
          'Y',
          Y.data,
          expected(X, inputs, heads, interleaved, (b, i) => positions[b * 3 + i]),
          close,
        );
        const own = { batch: 2, ...tables(10, pairs) };
        const perToken = (name) => ({
          data: Float32Array.from(
            { length: 6 * pairs },
            (_, x) => own[name].data[positions[Math.floor(x / pairs)] * pairs + (x % pairs)],
          ),
          shape: [2, 3, pairs],
        });
        const without = { X, cos_cache: perToken('cos_cache'), sin_cache: perToken('sin_cache') };
        assert.deepEqual(ops.rotaryEmbedding(without, attributes).Y, Y, 'tables per token');
      }
    });
  }

  test('16-bit inputs give their own type, rounded once; tables may have another type', () => {
    for (const dtype of ['float16', 'bfloat16']) {
      const X = tensor(1, 2, 3, 8);
      const rounded = { ...X, values: X.values.map((x) => roundTo(dtype, x)) };
      const inputs = { X: toTensor({ ...X, dtype }), ...tables(3, 4), position_ids: ids([1, 3], 0, 1, 2) };
      const { Y } = ops.rotaryEmbedding(inputs);
      assert.equal(Y.dtype, dtype);
      const want = expected(rounded, inputs, 2, 0, (_b, i) => i);
      const share = dtype === 'float16' ? 2 ** -11 : 2 ** -8;
      assertClose('Y', valuesOf(Y), want, (value) => share * 1.001 * Math.abs(value) + 2 ** -25);
    }
  });

  test('ids come as BigInt64Array, Int32Array or plain numbers', () => {
    const inputs = { X: tensor(1, 1, 3, 4), ...tables(5, 2) };
    const want = ops.rotaryEmbedding({ ...inputs, position_ids: ids([1, 3], 4, 0, 2) }).Y;
    for (const data of [Int32Array.of(4, 0, 2), [4, 0, 2], [4n, 0n, 2n]]) {
      assert.deepEqual(ops.rotaryEmbedding({ ...inputs, position_ids: { data, shape: [1, 3] } }).Y, want);
    }
  });

  test('inputs are left alone, also where they lie in wasm memory', () => {
    const X = tensor(1, 2, 3, 4);
    const inputs = { ...tables(3, 2), position_ids: ids([1, 3], 0, 1, 2) };
    const original = X.data.slice();
    const { Y } = ops.rotaryEmbedding({ X, ...inputs });
    assert.deepEqual(X.data, original);
    const resident = sdpa.tensor([1, 2, 3, 4]);
    resident.data.set(original);
    assert.deepEqual(ops.rotaryEmbedding({ X: resident, ...inputs }).Y, Y);
    assert.deepEqual(resident.data, original);
    resident.dispose();
  });
});

describe('com.microsoft RotaryEmbedding', () => {
  for (const interleaved of [0, 1]) {
    test(`an offset or ids, 3-D and 4-D, interleaved ${interleaved}`, () => {
      for (const [shape, heads, pairs, attributes] of [
        [[2, 3, 24], 3, 4, {}],
        [[2, 3, 24], 3, 4, { num_heads: 3 }],
        [[2, 3, 24], 3, 2, { num_heads: 3, rotary_embedding_dim: 4 }],
        [[2, 3, 3, 8], 3, 4, {}],
        [[2, 3, 3, 8], 3, 3, { rotary_embedding_dim: 6 }],
      ]) {
        const input = tensor(...shape);
        const inputs = { input, ...tables(9, pairs) };
        const offset = ops.msRotaryEmbedding({ ...inputs, position_ids: ids([1], 5) }, { ...attributes, interleaved });
        assert.deepEqual([offset.output.shape, Object.keys(offset)], [shape, ['output']]);
        assertClose(
          'output',
          offset.output.data,
          expected(input, inputs, heads, interleaved, (_b, i) => 5 + i),
          close,
        );
        const scalar = ops.msRotaryEmbedding({ ...inputs, position_ids: ids([], 5) }, { ...attributes, interleaved });
        assert.deepEqual(scalar, offset);
        const each = [8, 0, 3, 3, 1, 7];
        const got = ops.msRotaryEmbedding(
          { ...inputs, position_ids: ids([2, 3], ...each) },
          { ...attributes, interleaved },
        );
        assertClose(
          'output',
          got.output.data,
          expected(input, inputs, heads, interleaved, (b, i) => each[b * 3 + i]),
          close,
        );
      }
    });
  }

  test('is_packed_batching takes sequences that are longer than the tables', () => {
    const input = tensor(1, 3, 4);
    const inputs = { input, ...tables(2, 2), position_ids: ids([1, 3], 0, 0, 1) };
    const got = ops.msRotaryEmbedding(inputs, { is_packed_batching: 1, scale: 1 });
    assertClose(
      'output',
      got.output.data,
      expected(input, inputs, 1, 0, (_b, i) => [0, 0, 1][i]),
      close,
    );
    assertThrows(() => ops.msRotaryEmbedding(inputs), 'shape', /input has 3 tokens.*only 2 rows; is_packed_batching/);
  });
});

describe('errors of RotaryEmbedding', () => {
  const good = () => ({ X: tensor(2, 2, 3, 4), ...tables(5, 2), position_ids: ids([2, 3], 0, 1, 2, 0, 1, 2) });
  const flat = () => ({ ...good(), X: tensor(2, 3, 8) });
  // What is wrong, inputs, attributes, code, message.
  // prettier-ignore
  const faults = [
    ['no inputs', null, {}, 'type', /inputs must be an object/],
    ['an unknown input', { ...good(), input: 1 }, {}, 'unknown-option', /RotaryEmbedding has no input input; it has X, cos_cache/],
    ['an unknown attribute', good(), { scale: 1 }, 'unknown-option', /RotaryEmbedding has no attribute scale/],
    ['no X', { ...good(), X: null }, {}, 'type', /input X is missing/],
    ['no table', { ...good(), sin_cache: undefined }, {}, 'type', /input sin_cache is missing/],
    ['an X of rank 2', { ...good(), X: tensor(3, 4) }, {}, 'shape', /X has shape \[3,4\]; it must be 3-D or 4-D/],
    ['3-D without heads', flat(), {}, 'option', /num_heads is required: X is 3-D/],
    ['heads that do not divide', flat(), { num_heads: 3 }, 'shape', /8 is not a multiple of num_heads, 3/],
    ['heads that contradict 4-D', good(), { num_heads: 3 }, 'shape', /num_heads is 3.*2 heads/],
    ['negative heads', flat(), { num_heads: -1 }, 'option', /num_heads is -1/],
    ['an odd rotary_embedding_dim', good(), { rotary_embedding_dim: 3 }, 'option', /rotary_embedding_dim is 3; it must be an even number/],
    ['a rotary_embedding_dim beyond the head', good(), { rotary_embedding_dim: 6 }, 'option', /rotary_embedding_dim is 6 but the head size is 4/],
    ['tables too narrow', { ...good(), ...tables(5, 1) }, {}, 'shape', /cos_cache has shape \[5,1\].*half of the head size, which is 4/],
    ['tables too wide', { ...good(), ...tables(5, 3) }, {}, 'shape', /cos_cache has shape \[5,3\]/],
    ['tables that do not fit rotary_embedding_dim', good(), { rotary_embedding_dim: 2 }, 'shape', /half of the rotary_embedding_dim, which is 2/],
    ['tables of two shapes', { ...good(), sin_cache: tables(4, 2).sin_cache }, {}, 'shape', /sin_cache has shape \[4,2\] but cos_cache has shape \[5,2\]/],
    ['tables of rank 3 with ids', { ...good(), cos_cache: tensor(2, 3, 2), sin_cache: tensor(2, 3, 2) }, {}, 'shape', /cos_cache has shape \[2,3,2\]; it must have 2 dimensions/],
    ['tables of rank 2 without ids', { ...good(), position_ids: null }, {}, 'shape', /cos_cache has shape \[5,2\]; it must have 3 dimensions/],
    ['tables for other tokens', { ...good(), position_ids: null, cos_cache: tensor(2, 4, 2), sin_cache: tensor(2, 4, 2) }, {}, 'shape', /cos_cache has shape \[2,4,2\]; without position_ids it must be .*\[2,3,2\]/],
    ['ids for other tokens', { ...good(), position_ids: ids([2, 2], 0, 1, 0, 1) }, {}, 'shape', /position_ids has shape \[2,2\]; it must be \(B, L\) = \[2,3\]/],
    ['ids of rank 1', { ...good(), position_ids: ids([1], 0) }, {}, 'shape', /position_ids has shape \[1\]/],
    ['an id past the table', { ...good(), position_ids: ids([2, 3], 0, 1, 2, 0, 5, 2) }, {}, 'option', /position_ids\[4\] is 5.*0 to 4/],
    ['a negative id', { ...good(), position_ids: ids([2, 3], 0, -1, 2, 0, 1, 2) }, {}, 'option', /position_ids\[1\] is -1/],
    ['float ids', { ...good(), position_ids: tensor(2, 3) }, {}, 'type', /position_ids is float32/],
    ['a flag of 2', good(), { interleaved: 2 }, 'option', /interleaved is 2/],
  ];
  for (const [fault, inputs, attributes, code, message] of faults) {
    test(`${fault}: code ${code}`, () => {
      assertThrows(() => ops.rotaryEmbedding(inputs, attributes), code, message);
    });
  }

  test('float64 is a type of the operator, and not taken here', () => {
    const X = { data: new Float64Array(48), shape: [2, 2, 3, 4] };
    assert.throws(
      () => ops.rotaryEmbedding({ ...good(), X }),
      (error) => error instanceof TypeError && error.code === 'unsupported' && /X is float64/.test(error.message),
    );
  });

  const ms = () => ({ input: tensor(2, 3, 8), ...tables(5, 2), position_ids: ids([1], 0) });
  // prettier-ignore
  const msFaults = [
    ['an unknown input', { ...ms(), X: 1 }, {}, 'unknown-option', /com\.microsoft\.RotaryEmbedding has no input X/],
    ['no input', { ...ms(), input: null }, {}, 'type', /input input is missing/],
    ['no ids', { ...ms(), position_ids: null }, {}, 'type', /input position_ids is missing/],
    ['rotary_embedding_dim without heads', ms(), { rotary_embedding_dim: 4 }, 'option', /num_heads is required/],
    ['a width that heads of the tables do not divide', { ...ms(), input: tensor(2, 3, 6) }, {}, 'shape', /6 is not a multiple of the head size 4, twice the width/],
    ['heads that the tables do not fit', ms(), { num_heads: 1 }, 'shape', /half of the head size, which is 8/],
    ['4-D heads that the tables do not fit', { ...ms(), input: tensor(2, 1, 3, 8) }, {}, 'shape', /half of the head size, which is 8/],
    ['an offset that ends past the table', { ...ms(), position_ids: ids([1], 3) }, {}, 'option', /position_ids is 3: the last of 3 tokens would take row 5.*has 5/],
    ['an offset past the table', { ...ms(), position_ids: ids([1], 5) }, {}, 'option', /position_ids/],
    ['a negative offset', { ...ms(), position_ids: ids([1], -1) }, {}, 'option', /position_ids/],
    ['ids of two, one per batch', { ...ms(), position_ids: ids([2], 0, 0) }, {}, 'shape', /position_ids has shape \[2\]/],
    ['an id past the table', { ...ms(), position_ids: ids([2, 3], 0, 1, 2, 0, 1, 9) }, {}, 'option', /position_ids\[5\] is 9.*0 to 4/],
    ['tables of rank 3', { ...ms(), cos_cache: tensor(2, 3, 2), sin_cache: tensor(2, 3, 2) }, {}, 'shape', /must have 2 dimensions/],
    ['another scale', ms(), { scale: 0.5 }, 'unsupported', /scale is 0.5; only 1/],
  ];
  for (const [fault, inputs, attributes, code, message] of msFaults) {
    test(`com.microsoft, ${fault}: code ${code}`, () => {
      assertThrows(() => ops.msRotaryEmbedding(inputs, attributes), code, message);
    });
  }
});
