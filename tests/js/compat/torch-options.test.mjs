// torchFunctional(sdpa).scaledDotProductAttention: each option by PyTorch's rules.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { torchFunctional } from 'sdpa/torch';
import { largestError, randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { given, makeCheck } from './torch-check.mjs';

const sdpa = await loadVariant();
const { scaledDotProductAttention } = torchFunctional(sdpa);
const check = makeCheck(sdpa);
const random = randomSource(22);

/** @param {number[]} shape @param {number} share of true */
const booleans = (shape, share = 0.6) => ({
  data: Uint8Array.from({ length: shape.reduce((a, n) => a * n, 1) }, () => (random.uniform() < share ? 1 : 0)),
  shape,
  bool: true,
});

describe('isCausal', () => {
  test('is a lower triangle from the upper left, whatever the lengths', () => {
    for (const [L, S] of [
      [5, 9],
      [9, 5],
      [7, 7],
      [1, 6],
    ]) {
      const [query, key, value] = [random.tensor(2, L, 8), random.tensor(2, S, 8), random.tensor(2, S, 8)];
      check(query, key, value, { isCausal: true }, L < S ? {} : undefined);
      const triangle = {
        data: Uint8Array.from({ length: L * S }, (_, x) => Number(x % S <= Math.floor(x / S))),
        shape: [L, S],
      };
      const masked = scaledDotProductAttention(query, key, value, { attnMask: triangle });
      const causal = scaledDotProductAttention(query, key, value, { isCausal: true });
      assert.ok(largestError(masked.data, causal.data) <= 1e-6);
    }
  });
});

describe('attnMask', () => {
  const query = random.tensor(2, 3, 4, 8);
  const key = random.tensor(2, 3, 7, 8);
  const value = random.tensor(2, 3, 7, 8);
  const shapes = [
    [],
    [1],
    [7],
    [4, 7],
    [4, 1],
    [1, 7],
    [3, 4, 7],
    [1, 4, 7],
    [3, 1, 1],
    [2, 3, 4, 7],
    [2, 1, 1, 7],
    [1, 3, 4, 1],
    [2, 1, 4, 7],
  ];
  for (const shape of shapes) {
    test(`of shape [${shape}], boolean and float`, () => {
      const full = shape[shape.length - 1] === 7;
      check(query, key, value, { attnMask: booleans(shape) });
      check(query, key, value, { attnMask: random.tensor(...shape), scale: 0.2 }, full ? { scale: 0.2 } : undefined);
    });
  }

  test('broadcasts over leading dimensions of any number, some of them full', () => {
    const [q, k] = [random.tensor(2, 3, 2, 4, 8), random.tensor(2, 3, 2, 7, 8)];
    for (const shape of [
      [2, 3, 2, 4, 7],
      [2, 1, 2, 4, 7],
      [1, 3, 1, 4, 7],
      [3, 1, 1, 7],
      [2, 1, 1, 1, 7],
      [2, 4, 7],
    ]) {
      check(q, k, k, { attnMask: random.tensor(...shape) }, {});
      check(q, k, k, { attnMask: booleans(shape, 0.5) }, {});
    }
    check(random.tensor(4, 8), random.tensor(7, 8), random.tensor(7, 8), { attnMask: booleans([4, 7]) }, {});
    check(random.tensor(4, 8), k, k, { attnMask: booleans([3, 1, 1, 7]) }, {});
  });

  test('true attends: an array of booleans is the same as bytes', () => {
    const bytes = booleans([4, 7]);
    const flags = { data: Array.from(bytes.data, Boolean), shape: [4, 7] };
    assert.deepEqual(
      scaledDotProductAttention(query, key, value, { attnMask: flags }),
      scaledDotProductAttention(query, key, value, { attnMask: given(bytes) }),
    );
  });

  test('floats of 0 and 1 are added, and a 16-bit mask is a float mask', () => {
    const ones = random.tensor(4, 7);
    ones.data.forEach((x, i) => (ones.data[i] = x > 0 ? 1 : 0));
    check(query, key, value, { attnMask: ones }, { attnMask: { ...ones, bool: true } });
    const half = {
      data: new Uint16Array(28).map((_, i) => (ones.data[i] ? 0x3c00 : 0)),
      shape: [4, 7],
      dtype: 'float16',
    };
    assert.deepEqual(
      scaledDotProductAttention(query, key, value, { attnMask: half }),
      scaledDotProductAttention(query, key, value, { attnMask: ones }),
    );
  });

  test('-Infinity in a float mask is as false, and a row without a true is zeros', () => {
    const mask = booleans([4, 7]);
    mask.data.fill(0, 7, 14);
    const floats = { data: Float32Array.from(mask.data, (x) => (x ? 0 : -Infinity)), shape: [4, 7] };
    check(query, key, value, { attnMask: mask }, {});
    check(query, key, value, { attnMask: floats }, {});
    const { data } = scaledDotProductAttention(query, key, value, { attnMask: given(mask) });
    assert.ok(data.subarray(8, 16).every((x) => x === 0));
  });

  test('null is as none', () => {
    const want = scaledDotProductAttention(query, key, value);
    assert.deepEqual(scaledDotProductAttention(query, key, value, { attnMask: null, scale: null }), want);
    assert.deepEqual(scaledDotProductAttention(query, key, value, { attnMask: null, isCausal: false }), want);
  });
});

describe('scale', () => {
  const [query, key] = [random.tensor(2, 3, 8), random.tensor(2, 5, 8)];
  for (const scale of [0.3, 0, -1]) {
    test(`${scale} is used as given`, () => check(query, key, random.tensor(2, 5, 8), { scale }, {}));
  }
});

describe('dropoutP', () => {
  const [query, key, value] = [random.tensor(2, 3, 20, 8), random.tensor(2, 3, 30, 8), random.tensor(2, 3, 30, 8)];
  test('drops the same weights for the same seed, others for another', () => {
    for (const seed of [0, 1, 2 ** 53 - 1]) check(query, key, value, { dropout: { p: 0.4, seed } }, {});
    const first = scaledDotProductAttention(query, key, value, { dropoutP: 0.4, seed: 3 });
    assert.deepEqual(scaledDotProductAttention(query, key, value, { dropoutP: 0.4, seed: 3 }), first);
    assert.notDeepEqual(scaledDotProductAttention(query, key, value, { dropoutP: 0.4, seed: 4 }), first);
  });
  test('draws a seed for each call where none is given', () => {
    const [a, b] = [1, 2].map(() => scaledDotProductAttention(query, key, value, { dropoutP: 0.5 }).data);
    assert.notDeepEqual(a, b);
  });
  test('is off at 0, whatever the seed, and drops everything at 1', () => {
    const want = scaledDotProductAttention(query, key, value);
    assert.deepEqual(scaledDotProductAttention(query, key, value, { dropoutP: 0, seed: 5 }), want);
    const { data } = scaledDotProductAttention(query, key, value, { dropoutP: 1, seed: 5 });
    assert.ok(data.every((x) => x === 0));
  });
});
