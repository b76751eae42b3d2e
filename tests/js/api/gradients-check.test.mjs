// gradientCheck(): its differences agree with the gradients for every option, and it does not pass what is wrong.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadVariant } from '../helpers/sdpa.mjs';
import { entries, problemOf } from './gradients-options.mjs';

const sdpa = await loadVariant();

const small = { L: 9, S: 13, D: 4, Dv: 3 };

for (const entry of entries) {
  test(`${entry.name}: the gradients pass the check`, () => {
    // Block masks have their tiles of 64, packed sequences rows of their own length.
    const sizes = entry.name === 'blockMask' || entry.name === 'cuSeqlens' ? {} : small;
    const { query, key, value, options } = problemOf([entry], sizes);
    const lengths = options.kvLengths ? { kvLengths: Int32Array.from([13, 5]) } : {};
    const rows = options.queryLengths ? { queryLengths: Int32Array.from([9, 2]) } : {};
    const result = sdpa.gradientCheck(query, key, value, { ...options, ...lengths, ...rows, samples: 5 });
    assert.ok(result.passed, JSON.stringify(result));
    assert.deepEqual(
      Object.keys(result).filter((name) => !['query', 'key', 'value', 'scale', 'passed'].includes(name)),
      ['bias', 'sinks', 'alibiSlopes'].filter((name) => options[name]),
    );
    // float32 leaves far less than what passes.
    const tensors = Object.values(result).filter((x) => typeof x === 'object');
    for (const { maxError, meanError, checked } of tensors) {
      assert.ok(maxError < 1e-5 && meanError <= maxError && checked > 0 && checked <= 5, JSON.stringify(result));
    }
  });
}

test('all options of a model at once pass', () => {
  const { query, key, value } = problemOf([], { ...small, Hkv: 1 });
  const result = sdpa.gradientCheck(query, key, value, {
    causal: true,
    align: 'lower-right',
    softcap: 2,
    sinks: [0.5, -Infinity],
    smoothSoftmax: true,
    alibiSlopes: [0.5, 0.25],
    bias: { data: Float32Array.from({ length: 13 }, (_, j) => (j === 4 ? -Infinity : j / 10)), shape: [13] },
    dropout: { p: 0.2, seed: 3 },
  });
  assert.ok(result.passed, JSON.stringify(result));
  assert.equal(result.sinks?.checked, 2);
  assert.equal(result.bias?.checked, 13);
});

test('the same seed tries the same, another one something else; every element is tried where there are few', () => {
  const { query, key, value } = problemOf([], small);
  const check = (/** @type {any} */ options) => JSON.stringify(sdpa.gradientCheck(query, key, value, options));
  assert.equal(check({ seed: 5 }), check({ seed: 5 }));
  assert.notEqual(check({ seed: 5 }), check({ seed: 6 }));
  assert.notEqual(check({ seed: 5 }), check({ seed: 2 ** 32 + 5 }));
  assert.equal(sdpa.gradientCheck(query, key, value).query.checked, 24);
  assert.equal(sdpa.gradientCheck(query, key, value, { samples: 1000 }).query.checked, 2 * 2 * 9 * 4);
});

test('where float32 does not hold the gradient, or a NaN is in it, the check does not pass', () => {
  const { query, key, value } = problemOf([], small);
  // Scores of some 1e5: their differences, which the weights are made of, are lost in float32.
  assert.equal(sdpa.gradientCheck(query, key, value, { scale: 1e5 }).passed, false);
  const poisoned = { ...query, data: query.data.slice() };
  poisoned.data[3] = NaN;
  assert.equal(sdpa.gradientCheck(poisoned, key, value, { samples: 1000 }).passed, false);
});
