// One comparison for all case tests: NaN equals NaN, an infinity only itself, all else within the bound.
import assert from 'node:assert/strict';

const LOWEST_FLOAT32 = -3.4028234663852886e38;

/**
 * Asserts |got - want| <= bound(want) everywhere.
 * @param {string} label
 * @param {ArrayLike<number>} got
 * @param {ArrayLike<number>} want
 * @param {(want: number) => number} bound
 */
export function assertClose(label, got, want, bound) {
  assert.equal(got.length, want.length, `${label}: ${got.length} values, ${want.length} expected`);
  for (let i = 0; i < want.length; ++i) {
    const same = Object.is(got[i], want[i]) || got[i] === want[i];
    if (!same && !(Math.abs(got[i] - want[i]) <= bound(want[i]))) {
      assert.fail(`${label}: element ${i} is ${got[i]}, expected ${want[i]} within ${bound(want[i])}`);
    }
  }
}

/** Bound of the operator cases: atol + rtol * |want|. */
export function operatorBound({ atol, rtol }) {
  return (want) => atol + rtol * Math.abs(want);
}

/** Expected raw scores with the lowest float32 read as -Infinity, which it stands for in some sources. */
export function readLowestAsMasked(values) {
  return values.map((x) => (x <= LOWEST_FLOAT32 ? -Infinity : x));
}
