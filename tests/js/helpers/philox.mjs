// Philox 4x32-10, as Salmon, Moraes, Dror and Shaw describe it ("Parallel random numbers: as easy as 1, 2, 3", 2011).

const multipliers = [0xd2511f53n, 0xcd9e8d57n];
const steps = [0x9e3779b9, 0xbb67ae85];

/**
 * @param {readonly number[]} counter four 32-bit words
 * @param {readonly number[]} key two
 * @returns {number[]} four
 */
export function philox(counter, key) {
  let [c0, c1, c2, c3] = counter;
  let [k0, k1] = key;
  for (let round = 0; round < 10; round++) {
    const a = multipliers[0] * BigInt(c0);
    const b = multipliers[1] * BigInt(c2);
    const [high0, low0] = [Number(a >> 32n), Number(a & 0xffffffffn)];
    const [high1, low1] = [Number(b >> 32n), Number(b & 0xffffffffn)];
    [c0, c1, c2, c3] = [(high1 ^ c1 ^ k0) >>> 0, low1, (high0 ^ c3 ^ k1) >>> 0, low0];
    k0 = (k0 + steps[0]) >>> 0;
    k1 = (k1 + steps[1]) >>> 0;
  }
  return [c0, c1, c2, c3];
}
