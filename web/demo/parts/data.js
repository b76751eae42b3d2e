// Numbers drawn from the standard normal distribution, the same for the same seed.

/** Numbers drawn before the clock is looked at again. */
const chunk = 4096;

/**
 * Uniform in [0, 1), 32 bits: Mulberry32, a counter in steps of an odd constant with mixed bits.
 * @param {number} seed
 * @returns {() => number}
 */
export function uniform(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Standard normal by the method of Box and Muller (1958).
 * @param {number} seed
 * @returns {() => number}
 */
export function normal(seed) {
  const next = uniform(seed);
  let spare = NaN;
  return () => {
    if (!Number.isNaN(spare)) {
      const kept = spare;
      spare = NaN;
      return kept;
    }
    // 1 - u is never 0, so the logarithm is finite.
    const radius = Math.sqrt(-2 * Math.log(1 - next()));
    const angle = 2 * Math.PI * next();
    spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  };
}

/**
 * Fills a float32 tensor with normal numbers, in slices.
 * @param {{ readonly data: Float32Array }} tensor its data is taken anew in each slice
 * @param {number} seed
 * @param {import('./pace.js').Pace} pace
 * @param {(fraction: number) => void} [onProgress]
 */
export async function fillNormal(tensor, seed, pace, onProgress) {
  const next = normal(seed);
  let { data } = tensor;
  const count = data.length;
  for (let at = 0; at < count;) {
    const end = Math.min(count, at + chunk);
    while (at < end) data[at++] = next();
    if (pace.left <= 0) {
      onProgress?.(at / count);
      await pace.rest();
      ({ data } = tensor);
    }
  }
}
