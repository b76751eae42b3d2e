/** How the caches keep numbers, worked out once more for the check of what is computed from them. */

/** Added and taken away again, leaves a number of small magnitude rounded to the nearest even whole one. */
const TO_WHOLE = 1.5 * 2 ** 52;

/** @param {number} x @returns {number} */
const nearestEven = (x) => x + TO_WHOLE - TO_WHOLE;

/**
 * @param {number} x of magnitude below 65520
 * @returns {number} the nearest of the IEEE binary16 numbers: 11 significant bits, in steps of 2^-24 at the least
 */
export function toHalf(x) {
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(x))), -14);
  const step = 2 ** (exponent - 10);
  return nearestEven(x / step) * step;
}

/**
 * @param {ArrayLike<number>} row of one token and head
 * @returns {Float64Array} whole numbers of -127 … 127 times the row's float32 scale, max|x|/127
 */
export function toInt8Row(row) {
  const numbers = Float64Array.from(row);
  const scale = Math.fround(numbers.reduce((most, x) => Math.max(most, Math.abs(x)), 0) / 127);
  return scale === 0 ? numbers : numbers.map((x) => nearestEven(x / scale) * scale);
}
