// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): random words by counter,
// the same everywhere.

/**
 * The upper half of a product of two 32-bit words.
 * @param {number} a
 * @param {number} b
 */
function high(a, b) {
  const aLow = a & 0xffff;
  const aHigh = a >>> 16;
  const bLow = b & 0xffff;
  const bHigh = b >>> 16;
  const middle = aHigh * bLow + ((aLow * bLow) >>> 16);
  const carry = aLow * bHigh + (middle % 0x10000);
  return (aHigh * bHigh + Math.floor(middle / 0x10000) + Math.floor(carry / 0x10000)) >>> 0;
}

/**
 * @param {number} k0 key, low word
 * @param {number} k1 key, high word
 * @param {number} c0 counter
 * @param {number} c1
 * @param {number} c2
 * @param {number} c3
 * @param {number} [word] which of the four words
 * @returns {number} 0 ... 2^32 - 1
 */
export function philox(k0, k1, c0, c1, c2, c3, word = 0) {
  for (let round = 0; round < 10; round++) {
    const high0 = high(0xd2511f53, c0 >>> 0);
    const high1 = high(0xcd9e8d57, c2 >>> 0);
    const low0 = Math.imul(0xd2511f53, c0);
    const low1 = Math.imul(0xcd9e8d57, c2);
    [c0, c1, c2, c3] = [high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0];
    k0 = (k0 + 0x9e3779b9) | 0;
    k1 = (k1 + 0xbb67ae85) | 0;
  }
  return [c0, c1, c2, c3][word] >>> 0;
}
