// A short name for the bits of a result: equal bits, equal hash.

/** Numbers between two looks at the clock. */
const chunk = 1 << 16;

/**
 * FNV-1a (Fowler, Noll, Vo) over 32-bit words instead of bytes, twice with different starts: 64 bits.
 * @param {Float32Array} numbers
 * @param {import('../../parts/pace.js').Pace} pace
 * @returns {Promise<string>} 16 hexadecimal digits
 */
export async function hashBits(numbers, pace) {
  const words = new Int32Array(numbers.buffer, numbers.byteOffset, numbers.length);
  let [first, second] = [0x811c9dc5, 0x01234567];
  for (let at = 0; at < words.length;) {
    for (const end = Math.min(words.length, at + chunk); at < end; at++) {
      first = Math.imul(first ^ words[at], 0x01000193);
      second = Math.imul(second ^ words[at], 0x01000193) ^ (second >>> 15);
    }
    if (pace.left <= 0) await pace.rest();
  }
  return [first, second].map((half) => (half >>> 0).toString(16).padStart(8, '0')).join('');
}
