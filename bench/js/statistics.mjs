/** @param {readonly number[]} values at least one @returns {number} */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/**
 * @param {ArrayLike<number>} found
 * @param {ArrayLike<number>} want as long as it, or shorter
 * @returns {number} largest absolute difference; Infinity where one is NaN
 */
export function largestDifference(found, want) {
  let worst = 0;
  for (let i = 0; i < want.length; i++) {
    const difference = Math.abs(found[i] - want[i]);
    if (Number.isNaN(difference)) return Infinity;
    worst = Math.max(worst, difference);
  }
  return worst;
}

/**
 * @param {ArrayLike<number>} found
 * @param {Float64Array} want
 * @returns {number} largest difference as a share of the largest number that is wanted
 */
export const relativeDifference = (found, want) =>
  largestDifference(found, want) / want.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
