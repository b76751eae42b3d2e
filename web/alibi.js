// Slopes of ALiBi, the bias -slope·|distance| (arXiv 2108.12409).

import { outOfMemory } from './errors.js';
import { whole } from './option-values.js';

/**
 * Slopes for the option `alibiSlopes`, of H heads with n the largest power of two up to H: 2^(-8(h + 1)/n) for h < n, and between
 * those, for the heads that are left, 2^(-4(2(h - n) + 1)/n), as the authors' code has it.
 * @param {number} numHeads H, 1 or more
 * @returns {Float32Array} (H)
 * @throws TypeError or RangeError with a `code`
 */
export function alibiSlopes(numHeads) {
  whole('numHeads', numHeads, 1);
  let slopes;
  try {
    slopes = new Float32Array(numHeads);
  } catch (cause) {
    throw outOfMemory(numHeads * 4, 0, `slopes of ${numHeads} heads`, cause);
  }
  const n = 2 ** (31 - Math.clz32(numHeads));
  return slopes.map((_, h) => 2 ** (h < n ? (-8 * (h + 1)) / n : (-4 * (2 * (h - n) + 1)) / n));
}
