// jaxNN(sdpa).dotProductAttention against jax.nn's definition, masks written out as JAX builds them.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { jaxNN } from 'sdpa/jax';
import { assertThrows } from '../helpers/errors.mjs';
import { largestError, random16, randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';

const sdpa = await loadVariant();
const { dotProductAttention } = jaxNN(sdpa);
const random = randomSource(41);
const tolerance = 2e-6;

/**
 * In float64. Rows that may attend to nothing are zeros.
 * @param {any} query (B, T, N, H) or (T, N, H)
 * @param {any} key
 * @param {any} value
 * @param {any} [options]
 */
function reference(query, key, value, options = {}) {
  const { bias, mask, isCausal = false, querySeqLengths, keyValueSeqLengths, localWindowSize } = options;
  /** @param {any} tensor */
  const four = ({ shape }) => (shape.length === 3 ? [1, ...shape] : shape);
  const [B, T, N, H] = four(query);
  const [, S, K] = four(key);
  const scale = options.scale ?? 1 / Math.sqrt(H);
  const [left, right] =
    typeof localWindowSize === 'number' ? [localWindowSize, localWindowSize] : (localWindowSize ?? []);
  const out = new Float64Array(B * T * N * H);
  for (let b = 0; b < B; b++) {
    for (let t = 0; t < T; t++) {
      if (querySeqLengths && t >= querySeqLengths[b]) continue;
      for (let n = 0; n < N; n++) {
        const g = Math.floor(n / (N / K));
        const logits = Array.from({ length: S }, (_, s) => {
          if (isCausal && s > t) return -Infinity;
          if (localWindowSize !== undefined && (s < t - left || s > t + right)) return -Infinity;
          if (keyValueSeqLengths && s >= keyValueSeqLengths[b]) return -Infinity;
          if (mask && !at(mask, [b, n, t, s])) return -Infinity;
          let dot = 0;
          for (let h = 0; h < H; h++)
            dot += query.data[((b * T + t) * N + n) * H + h] * key.data[((b * S + s) * K + g) * H + h];
          return scale * dot + (bias ? at(bias, [b, n, t, s]) : 0);
        });
        const top = Math.max(...logits);
        if (top === -Infinity) continue;
        const sum = logits.reduce((total, logit) => total + Math.exp(logit - top), 0);
        logits.forEach((logit, s) => {
          const weight = Math.exp(logit - top) / sum;
          for (let h = 0; h < H; h++)
            out[((b * T + t) * N + n) * H + h] += weight * value.data[((b * S + s) * K + g) * H + h];
        });
      }
    }
  }
  return out;
}

/** @param {any} tensor @param {number[]} index */
function at({ data, shape }, index) {
  const own = index.slice(4 - shape.length);
  return Number(data[shape.reduce((flat, size, axis) => flat * size + (size === 1 ? 0 : own[axis]), 0)]);
}

/** @param {number[]} shape */
const booleans = (...shape) => ({
  data: Uint8Array.from({ length: shape.reduce((a, n) => a * n, 1) }, () => (random.uniform() < 0.6 ? 1 : 0)),
  shape,
});

const query = random.tensor(2, 7, 4, 8);
const key = random.tensor(2, 11, 2, 8);
const value = random.tensor(2, 11, 2, 8);

/**
 * @param {any} options
 * @param {any} [without]
 * @param {any[]} [tensors]
 */
function check(options, without, tensors = [query, key, value]) {
  const [q, k, v] = tensors;
  const got = dotProductAttention(q, k, v, options);
  assert.deepEqual([got.shape, got.dtype], [q.shape, 'float32']);
  const want = reference(q, k, v, options);
  const worst = largestError(got.data, want);
  assert.ok(worst <= tolerance, `${JSON.stringify(Object.keys(options))} differs by ${worst}`);
  if (without) assert.ok(largestError(reference(q, k, v, without), want) > 1e-3, 'this data cannot tell');
}

describe('dotProductAttention', () => {
  test('takes (B, T, N, H), and (T, N, H) without a batch', () => {
    check({});
    check({}, undefined, [random.tensor(5, 3, 4), random.tensor(9, 3, 4), random.tensor(9, 3, 4)]);
    check({}, undefined, [random.tensor(5, 3, 4), random.tensor(1, 9, 3, 4), random.tensor(9, 3, 4)]);
  });
  test('lets query heads share heads of key and value', () => {
    for (const K of [1, 2, 3, 6])
      check({}, undefined, [random.tensor(2, 5, 6, 8), random.tensor(2, 6, K, 8), random.tensor(2, 6, K, 8)]);
  });
  test('scale, bias and mask count, and broadcast', () => {
    check({ scale: 0.2 }, {});
    for (const shape of [[2, 4, 7, 11], [1, 4, 1, 11], [2, 1, 7, 11], [1, 1, 7, 11], [4, 7, 11], [7, 11], [11]]) {
      check({ bias: random.tensor(...shape) }, {});
      check({ mask: booleans(...shape) }, {});
    }
    check(
      { bias: random.tensor(7, 11), mask: booleans(2, 1, 7, 11), isCausal: true, scale: 0.5 },
      { isCausal: true, scale: 0.5 },
    );
  });
  test('isCausal stands at the upper left', () => {
    check({ isCausal: true }, {});
    check({ isCausal: true }, {}, [random.tensor(1, 9, 2, 4), random.tensor(1, 5, 2, 4), random.tensor(1, 5, 2, 4)]);
  });
  test('localWindowSize: a number for both sides, or left and right, without the query itself', () => {
    check({ localWindowSize: 2 }, {});
    check({ localWindowSize: [3, 0] }, { localWindowSize: 3 });
    check({ localWindowSize: [0, 4] }, { localWindowSize: [4, 0] });
    check({ localWindowSize: [2, 5], isCausal: true }, { localWindowSize: [2, 5] });
    check({ localWindowSize: 0 }, {});
  });
  test('querySeqLengths and keyValueSeqLengths, as Int32Array, numbers or tensor', () => {
    const querySeqLengths = Int32Array.of(3, 7);
    const keyValueSeqLengths = Int32Array.of(11, 4);
    check({ querySeqLengths }, {});
    check({ keyValueSeqLengths }, {});
    check(
      { querySeqLengths, keyValueSeqLengths, isCausal: true, localWindowSize: 5 },
      { isCausal: true, localWindowSize: 5 },
    );
    const want = dotProductAttention(query, key, value, { querySeqLengths, keyValueSeqLengths });
    for (const form of [(/** @type {any} */ x) => Array.from(x), (/** @type {any} */ x) => ({ data: x, shape: [2] })]) {
      const options = { querySeqLengths: form(querySeqLengths), keyValueSeqLengths: form(keyValueSeqLengths) };
      assert.deepEqual(dotProductAttention(query, key, value, options), want);
    }
    check({ querySeqLengths: [2], keyValueSeqLengths: [3] }, {}, [
      random.tensor(5, 3, 4),
      random.tensor(9, 3, 4),
      random.tensor(9, 3, 4),
    ]);
  });
  test('a row that may attend to nothing is zeros', () => {
    const mask = booleans(7, 11);
    mask.data.fill(0, 11, 22);
    check({ mask }, {});
    const { data } = dotProductAttention(query, key, value, { mask });
    assert.ok(data.subarray(32, 64).every((x) => x === 0));
    check({ keyValueSeqLengths: [0, 5] });
  });
  test('null is as none', () => {
    const none = {
      bias: null,
      mask: null,
      scale: null,
      querySeqLengths: null,
      keyValueSeqLengths: null,
      localWindowSize: null,
    };
    assert.deepEqual(dotProductAttention(query, key, value, none), dotProductAttention(query, key, value));
  });
  test('16-bit tensors give their own type', () => {
    for (const dtype of /** @type {const} */ (['float16', 'bfloat16'])) {
      const half = { data: random16(48, dtype, random.uniform), shape: [3, 2, 8], dtype };
      const got = dotProductAttention(half, half, half);
      assert.deepEqual([got.dtype, got.shape, got.data instanceof Uint16Array], [dtype, [3, 2, 8], true]);
      // One key: the value comes back bit for bit.
      const one = { data: half.data.slice(0, 16), shape: [1, 2, 8], dtype };
      assert.deepEqual(dotProductAttention(one, one, one).data, one.data);
    }
  });
});

// What is wrong, query, key, value, options, code, message.
// prettier-ignore
const faults = /** @type {[string, any, any, any, any, string, RegExp][]} */ ([
  ['no key', query, undefined, value, {}, 'type', /key is missing/],
  ['two dimensions', random.tensor(7, 8), key, value, {}, 'shape', /query must have 3 or 4 dimensions.*\[7,8\]/],
  ['tensors of two types', query, key, { ...value, data: new Uint16Array(352), dtype: 'bfloat16' }, {}, 'type', /value is bfloat16 but query is float32/],
  ['another value size', query, key, random.tensor(2, 11, 2, 6), {}, 'shape', /key and value must have the same shape/],
  ['another batch', random.tensor(1, 7, 4, 8), key, value, {}, 'shape', /batch is 1 in query but 2 in key/],
  ['another head size', random.tensor(2, 7, 4, 6), key, value, {}, 'shape', /head size is 6 in query but 8 in key/],
  ['heads that do not divide', random.tensor(2, 7, 3, 8), key, value, {}, 'shape', /query has 3 heads.*2 heads/],
  ['a float mask', query, key, value, { mask: random.tensor(7, 11) }, 'type', /mask must be boolean.*bias/],
  ['a boolean bias', query, key, value, { bias: booleans(7, 11) }, 'type', /bias data must be a Float32Array/],
  ['a mask that does not broadcast', query, key, value, { mask: booleans(11, 7) }, 'shape', /mask shape \[11, 7\] does not broadcast/],
  ['a negative window', query, key, value, { localWindowSize: -1 }, 'option', /localWindowSize must be a whole number, 0 or more/],
  ['a window of one bound', query, key, value, { localWindowSize: [1] }, 'type', /localWindowSize must be a number or \[left, right\]/],
  ['lengths for another batch', query, key, value, { querySeqLengths: [7] }, 'shape', /querySeqLengths has shape \[1\] but the batch is 2/],
  ['a length beyond the keys', query, key, value, { keyValueSeqLengths: [3, 12] }, 'option', /keyValueSeqLengths\[1\] is 12 but must be at most 11/],
  ['a negative length', query, key, value, { querySeqLengths: Int32Array.of(-1, 3) }, 'option', /querySeqLengths\[0\] must be a whole number/],
  ['lengths as floats', query, key, value, { querySeqLengths: new Float32Array(2) }, 'type', /querySeqLengths must be an Int32Array/],
  ['a length for all', query, key, value, { querySeqLengths: 3 }, 'type', /querySeqLengths must be an Int32Array/],
  ['isCausal as a number', query, key, value, { isCausal: 1 }, 'type', /isCausal must be true or false/],
  ['a scale of NaN', query, key, value, { scale: NaN }, 'option', /scale must be finite/],
  ['is_causal', query, key, value, { is_causal: true }, 'unknown-option', /did you mean 'isCausal'\?/],
  ['key_value_seq_lengths', query, key, value, { key_value_seq_lengths: [1, 2] }, 'unknown-option', /did you mean 'keyValueSeqLengths'\?/],
  ['implementation', query, key, value, { implementation: 'xla' }, 'unknown-option', /the options are bias, mask/],
]);

for (const [fault, q, k, v, options, code, message] of faults) {
  test(`${fault}: code ${code}`, () => {
    assertThrows(() => dotProductAttention(q, k, v, options), code, message);
    assert.equal(dotProductAttention(query, key, value).data.length, 448, 'the instance goes on');
  });
}
