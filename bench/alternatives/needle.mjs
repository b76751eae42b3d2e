/**
 * The task of the bench of alternatives: a long input of random tokens, some of which, near its end, each ask for the value of one that came
 * before.
 * No import, no package and nothing of Node: the page takes this file along.
 *
 * Keys are unit normal, a token's value is one of CLASSES unit vectors. A token that asks has twice the key of the token that it asks for
 * as its query: in exact attention that key's score is 16 on average (D = 64), those of the others are normal with a deviation of 2. What
 * a method gives for it is decoded to the nearest of the vectors; recall is the share of these that are right. Chance is 1 / CLASSES.
 */

export const CLASSES = 256;
export const HEAD_DIM = 64;
const STRENGTH = 2;

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
 * Makes the task of normal numbers that are drawn already, token by token, so that a page can rest in between.
 * @param {object} drawn
 * @param {Float32Array} drawn.codebook (CLASSES, HEAD_DIM); its vectors are brought to length 1
 * @param {Float32Array} drawn.query (length, HEAD_DIM); rows that ask are written over
 * @param {Float32Array} drawn.key likewise, as it stays
 * @param {() => number} drawn.uniform in [0, 1)
 * @param {number} drawn.behind tokens behind the last one that asks
 * @returns {Generator<void, Task, void>}
 */
export function* needleTask({ codebook, query, key, uniform, behind }) {
  const below = (/** @type {number} */ n) => Math.floor(uniform() * n);
  const vector = (/** @type {number} */ c) => codebook.subarray(c * HEAD_DIM, (c + 1) * HEAD_DIM);
  for (let c = 0; c < CLASSES; c++) {
    const row = vector(c);
    const norm = Math.hypot(...row);
    for (let d = 0; d < HEAD_DIM; d++) row[d] /= norm;
  }
  const length = key.length / HEAD_DIM;
  const value = new Float32Array(key.length);
  const classes = Array.from({ length }, () => below(CLASSES));
  for (const [i, c] of classes.entries()) {
    value.set(vector(c), i * HEAD_DIM);
    yield;
  }
  const asking = Math.min(256, length >> 3);
  const first = length - asking - behind;
  const needles = Array.from({ length: asking }, (_, k) => {
    const row = first + k;
    const token = below(first);
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
