/**
 * The task of the bench of alternatives: a long input of random tokens, some of which, near its end, each ask for the value of one that came
 * before.
 * No package and nothing of Node: the page may use it as well.
 *
 * Keys are unit normal, a token's value is one of CLASSES unit vectors. A token that asks has twice the key of the token that it asks for
 * as its query: in exact attention that key's score is 16 on average (D = 64), those of the others are normal with a deviation of 2. What
 * a method gives for it is decoded to the nearest of the vectors; recall is the share of these that are right. Chance is 1 / CLASSES.
 */

export const CLASSES = 256;
export const HEAD_DIM = 64;
export const STRENGTH = 2;

/**
 * @typedef {object} Task one sequence, one head
 * @property {number} length tokens
 * @property {Float32Array} query (length, HEAD_DIM)
 * @property {Float32Array} key likewise
 * @property {Float32Array} value likewise
 * @property {Float32Array} codebook (CLASSES, HEAD_DIM)
 * @property {{ row: number, token: number, answer: number }[]} needles which row asks, for which token, and the class of its value
 */

/**
 * Numbers from a seed, the same everywhere.
 * @param {number} seed
 */
function makeRandom(seed) {
  let state = Math.imul(seed, 0x9e3779b1) >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return { below: (/** @type {number} */ n) => Math.floor(uniform() * n), normal };
}

/**
 * @param {number} length tokens; 16 or more
 * @param {number} [seed]
 * @returns {Task}
 */
export function makeTask(length, seed = 1) {
  const random = makeRandom(seed);
  const normals = (/** @type {number} */ rows) => Float32Array.from({ length: rows * HEAD_DIM }, random.normal);
  const codebook = normals(CLASSES);
  for (let c = 0; c < CLASSES; c++) {
    const row = codebook.subarray(c * HEAD_DIM, (c + 1) * HEAD_DIM);
    const norm = Math.hypot(...row);
    for (let d = 0; d < HEAD_DIM; d++) row[d] /= norm;
  }
  const query = normals(length);
  const key = normals(length);
  const value = new Float32Array(length * HEAD_DIM);
  const classes = Array.from({ length }, () => random.below(CLASSES));
  for (const [i, c] of classes.entries()) {
    value.set(codebook.subarray(c * HEAD_DIM, (c + 1) * HEAD_DIM), i * HEAD_DIM);
  }
  const asking = Math.min(256, length >> 3);
  // Not the last ones: patterns that let a last block see everything would have them for nothing.
  const first = length - asking - Math.min(64, length >> 3);
  const needles = Array.from({ length: asking }, (_, k) => {
    const row = first + k;
    const token = random.below(first);
    for (let d = 0; d < HEAD_DIM; d++) query[row * HEAD_DIM + d] = STRENGTH * key[token * HEAD_DIM + d];
    return { row, token, answer: classes[token] };
  });
  return { length, query, key, value, codebook, needles };
}

/**
 * @param {Task} task
 * @param {ArrayLike<number>} out (length, HEAD_DIM)
 * @returns {number} share of the needles whose value is the nearest to what came out
 */
export function recall({ codebook, needles }, out) {
  let right = 0;
  for (const { row, answer } of needles) {
    let best = -1;
    let most = -Infinity;
    for (let c = 0; c < CLASSES; c++) {
      // Of vectors of one length the nearest is the one with the largest product.
      let product = 0;
      for (let d = 0; d < HEAD_DIM; d++) product += out[row * HEAD_DIM + d] * codebook[c * HEAD_DIM + d];
      if (product > most) [best, most] = [c, product];
    }
    if (best === answer) right++;
  }
  return right / needles.length;
}
