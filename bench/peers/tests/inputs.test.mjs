// What contestants are given, the check of what they answer, and the plain ones among them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { causalBias, inputsOf, largestErrorOf, repeatHeads, swapHeadsAndRows } from '../inputs.mjs';
import { naiveAttention, tiledAttention } from '../plain-attention.mjs';
import { isWrong } from '../summary.mjs';
import { shape } from './small-shape.mjs';

for (const [name, attention] of /** @type {const} */ ([
  ['naive', naiveAttention],
  ['tiled', tiledAttention],
])) {
  for (const part of [
    {},
    { option: /** @type {const} */ ('causal'), seqlenQ: 70, seqlenKv: 70 },
    { seqlenQ: 1, seqlenKv: 131 },
  ]) {
    test(`${name} plain attention agrees with float64: ${JSON.stringify(part)}`, () => {
      const c = shape(part);
      const inputs = inputsOf(c);
      assert.ok(largestErrorOf(c, inputs, attention(c, inputs)) < 1e-6);
    });
  }
}

test('a result that ignores the causal mask, mixes up heads, or has NaN anywhere is wrong', () => {
  const c = shape({ option: 'causal' });
  const inputs = inputsOf(c);
  const right = naiveAttention(c, inputs);
  assert.ok(!isWrong(largestErrorOf(c, inputs, right)));
  assert.ok(isWrong(largestErrorOf(c, inputs, naiveAttention(shape(), inputs))));
  const rotated = Float32Array.from(right, (_, n) => right[(n + 37 * 8) % right.length]);
  assert.ok(isWrong(largestErrorOf(c, inputs, rotated)));
  // Row 1 is not among those that are compared.
  assert.ok(isWrong(largestErrorOf(c, inputs, right.with(8, NaN))));
  assert.throws(() => largestErrorOf(c, inputs, right.subarray(8)), /numbers/);
});

test('layouts for other libraries: swapping twice gives the original, heads are repeated in groups', () => {
  const data = Float32Array.from({ length: 2 * 3 * 5 * 4 }, (_, n) => n);
  const swapped = swapHeadsAndRows(data, 2, 3, 5, 4);
  assert.equal(swapped[4], 5 * 4, 'the second head’s first row comes second');
  assert.deepEqual(swapHeadsAndRows(swapped, 2, 5, 3, 4), data);
  const c = shape({ batch: 2, numHeads: 4, numKvHeads: 2, seqlenKv: 1, headDim: 1 });
  assert.deepEqual([...repeatHeads(c, Float32Array.of(1, 2, 3, 4))], [1, 1, 2, 2, 3, 3, 4, 4]);
  assert.deepEqual([...causalBias(shape({ seqlenQ: 2, seqlenKv: 3 }), -9)], [0, 0, -9, 0, 0, 0]);
});
