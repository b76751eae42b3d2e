// A call against the float64 reference.

import assert from 'node:assert/strict';
import { forReference } from './block-masks.mjs';
import { largestError, referenceAttention } from './reference.mjs';

export const tolerance = 2e-6;

/**
 * @param {import('sdpa').Sdpa} sdpa
 * @returns a function that computes, compares out, lse and all four stages of the scores, and checks that the options matter on this data
 */
export function makeCheck(sdpa) {
  /**
   * @param {any} query
   * @param {any} key
   * @param {any} value
   * @param {any} options
   * @param {any} [without] the options among which nothing of the tested one is left; undefined = the test is about something else
   */
  return (query, key, value, options, without) => {
    const want = referenceAttention(query, key, value, forReference(options));
    const got = sdpa.attention(query, key, value, { ...options, returnLse: true });
    assert.deepEqual(got.out.shape, want.shape);
    assert.equal(got.out.dtype, 'float32');
    const worst = largestError(got.out.data, want.out);
    assert.ok(worst <= tolerance, `out differs by ${worst}`);
    assert.ok(largestError(got.lse.data, want.lse) <= tolerance, 'lse differs');
    for (const stage of /** @type {const} */ (['scaled', 'capped', 'biased', 'weights'])) {
      const with_ = sdpa.attention(query, key, value, { ...options, scores: stage });
      assert.ok(largestError(with_.scores.data, want.scores[stage]) <= tolerance, `scores '${stage}' differ`);
      assert.deepEqual(with_.out.data, got.out.data, 'asking for scores changes the result');
    }
    if (without) {
      const ignored = referenceAttention(query, key, value, forReference(without));
      assert.ok(largestError(ignored.out, want.out) > 1e-3, 'this data cannot tell whether the option is used');
    }
    return got;
  };
}
