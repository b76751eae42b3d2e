// int8 storage: one float32 scale for each token and head, symmetric around 0.

/** The largest whole number that a scale stands before. */
const most = 127;

/** The smallest float32 that is not subnormal, and the step of those that are. */
const smallestNormal = 2 ** -126;
const subnormalStep = 2 ** -149;

/** Added and taken away again, leaves a double of small magnitude rounded to the nearest even integer. */
const roundToInteger = 1.5 * 2 ** 52;

/**
 * The scale of a row: max|x|/127 in float32, so that the row's largest number is 127 steps. Where that is subnormal it is rounded up: a
 * step too small for the row would need numbers above 127.
 * @param {number} top max|x|, finite
 * @returns {number} 0 for a row of zeros
 */
function scaleOf(top) {
  const scale = Math.fround(top / most);
  return scale < smallestNormal ? Math.ceil(top / most / subnormalStep) * subnormalStep : scale;
}

/**
 * Quantizes one row: q = x/scale rounded to nearest, ties to even, so |x - q·scale| <= scale/2.
 * @param {Float32Array} values
 * @param {number} at start of the row
 * @param {number} dim its elements
 * @param {Int8Array} target written at the same place
 * @returns {number} the scale; NaN where an element is not finite, and then nothing is written
 */
export function quantizeRow(values, at, dim, target) {
  let top = 0;
  for (let d = 0; d < dim; d++) {
    const size = Math.abs(values[at + d]);
    if (!(size < Infinity)) return NaN;
    if (size > top) top = size;
  }
  const scale = scaleOf(top);
  if (scale === 0) {
    target.fill(0, at, at + dim);
    return 0;
  }
  for (let d = 0; d < dim; d++) target[at + d] = values[at + d] / scale + roundToInteger - roundToInteger;
  return scale;
}
