// One call of scaledDotProductAttention beside its reference.

import assert from 'node:assert/strict';
import { torchFunctional } from 'sdpa/torch';
import { largestError } from '../helpers/reference.mjs';
import { torchReference } from './torch-reference.mjs';

const tolerance = 2e-6;

/** What the library gets of a mask that says `bool`. @param {any} mask */
export const given = (mask) => mask && { data: mask.data, shape: mask.shape };

/**
 * @param {any} sdpa a loaded instance
 * @returns a function that computes, compares, and checks that options matter on the data
 */
export function makeCheck(sdpa) {
  const { scaledDotProductAttention } = torchFunctional(sdpa);
  /**
   * @param {any} query
   * @param {any} key
   * @param {any} value
   * @param {any} [options]
   * @param {any} [without] options that must make a difference
   */
  return function check(query, key, value, options = {}, without = undefined) {
    const { dropout, attnMask, ...rest } = options;
    const got = scaledDotProductAttention(query, key, value, {
      ...rest,
      ...(attnMask && { attnMask: given(attnMask) }),
      ...(dropout && { dropoutP: dropout.p, seed: dropout.seed }),
    });
    const want = torchReference(query, key, value, options);
    assert.deepEqual(got.shape, want.shape);
    assert.equal(got.dtype, 'float32');
    const worst = largestError(got.data, want.data);
    assert.ok(worst <= tolerance, `differs by ${worst}`);
    if (without) {
      const other = torchReference(query, key, value, without);
      assert.ok(largestError(other.data, want.data) > 1e-3, 'this data cannot tell whether the option is used');
    }
  };
}
