// A long input of random tokens, whose last tokens each ask for the value of one that came before: the task of bench/alternatives, made in
// slices.
//
// Keys are normal with variance 1; a value is one of `classes` vectors of length 1. A token that asks has twice the key of the token that it
// asks for as its query. What a method gives for it is decoded to the nearest vector; recall is the share of right ones, chance 1 / classes.

import { fillNormal, uniform } from '../../parts/data.js';

export const headDim = 64;
export const classes = 256;
const strength = 2;

/**
 * @typedef {object} Task one sequence, one head
 * @property {number} length tokens
 * @property {Float32Array} query (length, headDim)
 * @property {Float32Array} key likewise
 * @property {Float32Array} value likewise
 * @property {Float32Array} codebook (classes, headDim)
 * @property {{ row: number, token: number, answer: number }[]} needles which row asks, for which token, and the class of its value
 */

/**
 * @param {number} length tokens
 * @param {number} seed
 * @param {import('../../parts/pace.js').Pace} pace
 * @returns {Promise<Task>}
 */
export async function makeTask(length, seed, pace) {
  const next = uniform(seed);
  const draw = async (/** @type {number} */ rows, /** @type {number} */ part) => {
    const data = new Float32Array(rows * headDim);
    await fillNormal({ data }, 10 * seed + part, pace);
    return data;
  };
  const codebook = await draw(classes, 1);
  const vector = (/** @type {number} */ c) => codebook.subarray(c * headDim, (c + 1) * headDim);
  for (let c = 0; c < classes; c++) {
    const norm = Math.hypot(...vector(c));
    vector(c).forEach((number, d) => (vector(c)[d] = number / norm));
  }
  const [query, key] = [await draw(length, 2), await draw(length, 3)];
  const value = new Float32Array(length * headDim);
  const answers = Array.from({ length }, () => Math.floor(next() * classes));
  for (let i = 0; i < length; i++) {
    value.set(vector(answers[i]), i * headDim);
    if (pace.left <= 0) await pace.rest();
  }
  const asking = Math.min(256, length >> 3);
  const needles = Array.from({ length: asking }, (_, k) => {
    const row = length - asking + k;
    const token = Math.floor(next() * (length - asking));
    for (let d = 0; d < headDim; d++) query[row * headDim + d] = strength * key[token * headDim + d];
    return { row, token, answer: answers[token] };
  });
  return { length, query, key, value, codebook, needles };
}

/**
 * @param {Task} task
 * @param {ArrayLike<number>} out (length, headDim)
 * @returns {number} share of the needles whose value is the nearest to what came out
 */
export function recall({ codebook, needles }, out) {
  let right = 0;
  for (const { row, answer } of needles) {
    let [best, most] = [-1, -Infinity];
    for (let c = 0; c < classes; c++) {
      // Of vectors of one length the nearest is the one with the largest product.
      let product = 0;
      for (let d = 0; d < headDim; d++) product += out[row * headDim + d] * codebook[c * headDim + d];
      if (product > most) [best, most] = [c, product];
    }
    if (best === answer) right++;
  }
  return right / needles.length;
}
