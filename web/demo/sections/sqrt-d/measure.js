// What a scale does to one problem: logits, weights and gradients by the library.

import { fillNormal } from '../../parts/data.js';

export const sizes = { queries: 128, keys: 64, valueDim: 64 };

/** Queries whose weights are drawn. */
export const drawn = 32;

/** Head sizes of the slider. */
export const headDims = Array.from({ length: 9 }, (_, i) => 2 ** (i + 2));

/**
 * @typedef {object} Measured
 * @property {Float32Array} logits (queries, keys): query · key times the scale
 * @property {Float32Array} weights (drawn, keys), of the first queries
 * @property {number} deviation of the logits
 * @property {number} entropy of a row's weights in nats, mean over the rows
 * @property {number} largest weight of a row, mean over the rows
 * @property {number} gradient length of the gradient with respect to the logits of a query, median over the queries: the few that
 *   hesitate between two keys would hide what happens to the others in a mean
 */

/**
 * @typedef {{ data: Float32Array, shape: number[] }} Matrix
 * @typedef {{ query: Matrix, key: Matrix, value: Matrix, dOut: Matrix }} Inputs query and key with the largest head size
 */

/**
 * Normal numbers with variance 1, the same each time.
 * @param {import('../../parts/pace.js').Pace} pace
 * @returns {Promise<Inputs>}
 */
export async function drawInputs(pace) {
  const { queries, keys, valueDim } = sizes;
  const headDim = headDims[headDims.length - 1];
  let seed = 0;
  const draw = async (/** @type {number} */ rows, /** @type {number} */ columns) => {
    const matrix = { data: new Float32Array(rows * columns), shape: [rows, columns] };
    await fillNormal(matrix, ++seed, pace);
    return matrix;
  };
  return {
    query: await draw(queries, headDim),
    key: await draw(keys, headDim),
    value: await draw(keys, valueDim),
    dOut: await draw(queries, valueDim),
  };
}

/**
 * @param {Matrix} matrix
 * @param {number} columns that are left, the first
 */
function narrow({ data, shape: [rows, all] }, columns) {
  const narrowed = new Float32Array(rows * columns);
  for (let i = 0; i < rows; i++) narrowed.set(data.subarray(i * all, i * all + columns), i * columns);
  return { data: narrowed, shape: [rows, columns] };
}

/**
 * The gradient of the logits is that of a bias of zeros, which is added to them.
 * @param {import('sdpa').Sdpa} sdpa
 * @param {Inputs} inputs
 * @param {number} headDim
 * @param {number} scale
 * @returns {Measured}
 */
export function measure(sdpa, { query: wideQuery, key: wideKey, value, dOut }, headDim, scale) {
  const { queries, keys } = sizes;
  const [query, key] = [narrow(wideQuery, headDim), narrow(wideKey, headDim)];
  const { out, lse, scores } = sdpa.attention(query, key, value, { scale, returnLse: true, scores: 'scaled' });
  const first = Array.from({ length: drawn }, (_, i) => i);
  const { rows, stats } = sdpa.attentionWeights(query, key, { scale, lse, rows: first, stats: true });
  const bias = { data: new Float32Array(queries * keys), shape: [queries, keys] };
  const { dBias } = sdpa.attentionBackward(query, key, value, { out, lse, dOut }, { scale, bias });
  return {
    logits: scores.data,
    weights: rows.data,
    deviation: Math.sqrt(mean(scores.data.map((number) => number ** 2)) - mean(scores.data) ** 2),
    entropy: mean(stats.entropy.data),
    largest: mean(stats.maxWeight.data),
    gradient: median(
      Array.from({ length: queries }, (_, i) => Math.hypot(...dBias.data.subarray(i * keys, (i + 1) * keys))),
    ),
  };
}

/** @param {Float32Array} numbers */
const mean = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;

/** @param {number[]} numbers */
const median = (numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1];

/**
 * @param {Float32Array} numbers
 * @param {number} bins
 * @returns {{ middles: number[], counts: number[] }} bins of equal width, about zero
 */
export function histogram(numbers, bins) {
  const reach = Math.max(1e-6, ...numbers.map(Math.abs));
  // A width of two digits, so that the middles are round.
  const width = Number(((2 * reach) / bins).toPrecision(2));
  const half = (bins - 1) / 2;
  const counts = Array(bins).fill(0);
  for (const number of numbers) counts[Math.min(bins - 1, Math.max(0, Math.round(number / width + half)))]++;
  return { middles: counts.map((_, k) => Number(((k - half) * width).toPrecision(3))), counts };
}

/**
 * @param {number} headDim
 * @param {number} exponent
 * @returns {number} the scale: headDim^−exponent
 */
export const scaleOf = (headDim, exponent) => headDim ** -exponent;

/** @param {number} headDim @param {number} exponent */
export const codeFor = (headDim, exponent) => `
import { load } from 'sdpa';

const sdpa = await load();
const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
const draw = (...shape) => ({ data: Float32Array.from({ length: shape[0] * shape[1] }, normal), shape });
const [q, k, v, dOut] = [draw(1, ${headDim}), draw(64, ${headDim}), draw(64, 64), draw(1, 64)];
const options = { scale: ${exponent === 0 ? 1 : `${headDim} ** -${exponent}`}, bias: draw(1, 64) }; // the gradient of a bias is that of the logits
options.bias.data.fill(0);
const { out, lse } = sdpa.attention(q, k, v, { ...options, returnLse: true });
console.log(Math.hypot(...sdpa.attentionBackward(q, k, v, { out, lse, dOut }, options).dBias.data));`;
