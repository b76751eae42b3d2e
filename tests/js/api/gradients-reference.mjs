// Gradients of attention by their formulas, cell by cell in float64, from the matrices of the reference; and a comparison with them.
// Tensors are (B, H, L, D).

import assert from 'node:assert/strict';
import { forReference } from '../helpers/block-masks.mjs';
import { isDropped, referenceAttention, widen } from '../helpers/reference.mjs';

/**
 * @typedef {object} Gradients
 * @property {Float64Array} dQuery
 * @property {Float64Array} dKey
 * @property {Float64Array} dValue
 * @property {Float64Array} [dBias]
 * @property {Float64Array} [dSinks]
 * @property {Float64Array} [dAlibiSlopes]
 * @property {Float64Array} dScale one number
 */

/**
 * @param {any} query
 * @param {any} key
 * @param {any} value
 * @param {{ dOut: any, dLse?: any }} upstream
 * @param {any} options those of attention(), layout apart
 * @returns {{ exact: Gradients, sizes: Gradients }} `sizes`: the same sums over the absolute values of their terms
 */
export function referenceGradients(query, key, value, upstream, options) {
  const given = forReference(options);
  const forward = referenceAttention(query, key, value, given);
  const distances = options.alibiSlopes && distancesOf(query, key, value, given);
  const sum = (/** @type {boolean} */ signed) =>
    sums(query, key, value, upstream, options, forward, distances, signed ? (x) => x : Math.abs);
  return { exact: sum(true), sizes: sum(false) };
}

/**
 * |p - j| of every cell that takes part: what a slope of 1 takes from a score.
 * @param {any} query
 * @param {any} key
 * @param {any} value
 * @param {any} options
 */
function distancesOf(query, key, value, options) {
  const count = query.shape[1];
  const biased = (/** @type {number} */ slope) =>
    referenceAttention(query, key, value, { ...options, alibiSlopes: new Array(count).fill(slope) }).scores.biased;
  const none = biased(0);
  return biased(1).map((s, n) => (s === -Infinity ? 0 : none[n] - s));
}

/**
 * @param {any} query
 * @param {any} key
 * @param {any} value
 * @param {{ dOut: any, dLse?: any }} upstream
 * @param {any} options
 * @param {import('../helpers/reference.mjs').Reference} forward
 * @param {Float64Array | undefined} distances
 * @param {(x: number) => number} term
 * @returns {Gradients}
 */
function sums(query, key, value, { dOut, dLse }, options, { out, lse, scores }, distances, term) {
  const [B, Hq, L, D] = query.shape;
  const [, Hkv, S] = key.shape;
  const Dv = value.shape[3];
  const { scale = 1 / Math.sqrt(D), softcap = 0, bias, sinks, alibiSlopes, dropout } = options;
  const [q, k, v] = [query, key, value].map(({ data, dtype }) => Float64Array.from(data, (x) => widen(x, dtype)));
  const zeros = (/** @type {any} */ like) => new Float64Array((like.data ?? like).length);
  /** @type {Gradients} */
  const d = { dQuery: zeros(query), dKey: zeros(key), dValue: zeros(value), dScale: new Float64Array(1) };
  if (bias) d.dBias = zeros(bias);
  if (sinks) d.dSinks = zeros(sinks);
  if (alibiSlopes) d.dAlibiSlopes = zeros(alibiSlopes);
  const biasAt = bias && broadcastIndex(bias.shape);
  const headAt = (/** @type {any} */ numbers, /** @type {number} */ b, /** @type {number} */ h) =>
    (numbers.data ?? numbers).length === Hq ? h : b * Hq + h;

  for (let b = 0; b < B; b++) {
    for (let h = 0; h < Hq; h++) {
      const g = b * Hkv + Math.floor(h / (Hq / Hkv));
      for (let i = 0; i < L; i++) {
        const row = (b * Hq + h) * L + i;
        let delta = dLse ? term(-dLse.data[row]) : 0;
        // Where a row sees nothing out is 0, whatever stands in dOut.
        for (let c = 0; c < Dv; c++)
          if (out[row * Dv + c] !== 0) delta += term(dOut.data[row * Dv + c] * out[row * Dv + c]);
        for (let j = 0; j < S; j++) {
          const cell = row * S + j;
          if (scores.biased[cell] === -Infinity) continue;
          const weight = Math.exp(scores.biased[cell] - lse[row]);
          let dWeight = 0;
          if (!dropout || !isDropped(dropout, b, h, i, j)) {
            const kept = 1 / (1 - (dropout?.p ?? 0));
            for (let c = 0; c < Dv; c++) {
              const upstreamOf = dOut.data[row * Dv + c] * kept;
              dWeight += term(upstreamOf * v[(g * S + j) * Dv + c]);
              d.dValue[(g * S + j) * Dv + c] += term(weight * upstreamOf);
            }
          }
          const dScore = weight * (dWeight + (term === Math.abs ? delta : -delta));
          if (d.dBias) d.dBias[biasAt(b, h, i, j)] += dScore;
          if (d.dAlibiSlopes && distances) d.dAlibiSlopes[headAt(alibiSlopes, b, h)] += term(-dScore * distances[cell]);
          const slope = softcap > 0 ? 1 - (scores.capped[cell] / softcap) ** 2 : 1;
          let product = 0;
          for (let c = 0; c < D; c++) {
            const [x, y] = [q[row * D + c], k[(g * S + j) * D + c]];
            product += term(x * y);
            d.dQuery[row * D + c] += term(dScore * slope * scale * y);
            d.dKey[(g * S + j) * D + c] += term(dScore * slope * scale * x);
          }
          d.dScale[0] += dScore * slope * product;
        }
        if (d.dSinks && lse[row] !== -Infinity) {
          const at = headAt(sinks, b, h);
          const s = (sinks.data ?? sinks)[at];
          // Beside smoothSoftmax the sink has its own share of the weight: exp(s - lse) either way.
          d.dSinks[at] += term(-Math.exp(s - lse[row]) * delta);
        }
      }
    }
  }
  return d;
}

/**
 * @param {number[]} shape
 * @returns {(...index: number[]) => number}
 */
function broadcastIndex(shape) {
  const padded = [...Array(4 - shape.length).fill(1), ...shape];
  return (...index) => padded.reduce((at, size, r) => at * size + (size === 1 ? 0 : index[r]), 0);
}

/** Of what was added up, in units of float32's rounding: products, the weight's own error, and the sum. */
const roundings = 32;

/**
 * Each gradient to within 32·2^-24 of the sum of the absolute values of its terms; exactly 0 where there are none.
 * @param {any} got a result of attentionBackward()
 * @param {{ exact: any, sizes: any }} want
 */
export function assertGradients(got, { exact, sizes }) {
  const numbers = (/** @type {any} */ x) => (typeof x === 'number' ? [x] : x.data);
  assert.deepEqual(Object.keys(got).sort(), Object.keys(exact).sort());
  for (const name of Object.keys(exact)) {
    const values = numbers(got[name]);
    assert.equal(values.length, exact[name].length, name);
    for (let n = 0; n < values.length; n++) {
      const error = Math.abs(values[n] - exact[name][n]);
      const limit = roundings * 2 ** -24 * sizes[name][n];
      if (!(error <= limit)) {
        assert.fail(`${name}[${n}] is ${values[n]}, not ${exact[name][n]}: the error ${error} is more than ${limit}`);
      }
    }
  }
}
