/** Unit normal numbers for the operands. */

import { randomSource } from '../../tests/js/helpers/reference.mjs';

/** A prime, so that no row of a usual size begins at the same number as one nearby. */
const POOL = 65521;

/** @type {Float32Array | undefined} */
let normals;

/**
 * A fixed pool repeated: drawing each of the largest case's 50 million would take longer than timing it.
 * @param {Float32Array} data
 * @param {number} start where in the pool
 */
export function fillNormal(data, start) {
  normals ??= Float32Array.from({ length: POOL }, randomSource(1).normal);
  for (let at = 0, from = start % POOL; at < data.length; from = 0) {
    const part = normals.subarray(from, from + data.length - at);
    data.set(part, at);
    at += part.length;
  }
}
