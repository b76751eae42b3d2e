// Attention in windows by its definition, pixel by pixel in float64: for each query every pixel of the image is asked whether it stands in
// the same window of the shifted, padded image, and whether the shift kept the two as they were to each other.

import { widen } from '../helpers/reference.mjs';

/** @param {number | number[]} setting */
const both = (setting) => (typeof setting === 'number' ? [setting, setting] : setting);

/**
 * @param {number} length
 * @param {number} side
 * @param {number} shift
 * @returns {(a: number, b: number) => boolean}
 */
function alongAxis(length, side, shift) {
  const padded = Math.ceil(length / side) * side;
  const by = padded === side ? 0 : shift;
  const shifted = (/** @type {number} */ at) => (at - by + padded) % padded;
  const window = (/** @type {number} */ at) => Math.floor(shifted(at) / side);
  return (a, b) => window(a) === window(b) && shifted(a) - shifted(b) === a - b;
}

/**
 * @param {any} tensor of rank 4
 * @param {boolean} inside whether heads are inside of tokens
 */
function reader({ data, shape, dtype }, inside) {
  const [, one, two, dim] = shape;
  const [heads, tokens] = inside ? [two, one] : [one, two];
  return (/** @type {number} */ b, /** @type {number} */ h, /** @type {number} */ i) => {
    const at = (inside ? (b * tokens + i) * heads + h : (b * heads + h) * tokens + i) * dim;
    return Float64Array.from({ length: dim }, (_, k) => widen(data[at + k], dtype));
  };
}

/** What a number becomes after each operation. @typedef {(x: number) => number} Rounding */

/** @param {Float64Array} a @param {Float64Array} b @param {Rounding} round */
const dot = (a, b, round) => a.reduce((sum, x, k) => round(sum + round(x * b[k])), 0);

/** @param {Float64Array} a @param {Rounding} round */
const unit = (a, round) => {
  const norm = Math.max(round(Math.sqrt(dot(a, a, round))), 1e-12);
  return a.map((x) => round(x / norm));
};

/**
 * @param {any} query
 * @param {any} key
 * @param {any} value
 * @param {any} options
 * @param {Rounding} [round] Math.fround: plainly in float32, for the error that this has
 * @returns {{ out: Float64Array, lse: Float64Array, shape: number[] }}
 */
export function windowReference(query, key, value, options, round = (x) => x) {
  const { height, width, windowSize, shift = 0, relativeBias, similarity = 'dot', layout = 'bhld', softcap } = options;
  const [rows, columns] = both(windowSize);
  const inside = layout === 'blhd';
  const [q, k, v] = [query, key, value].map((tensor) => reader(tensor, inside));
  const [B, one, two, D] = query.shape;
  const [Hq, L] = inside ? [two, one] : [one, two];
  const Hkv = key.shape[inside ? 2 : 1];
  const Dv = value.shape[3];
  const down = alongAxis(height, rows, both(shift)[0]);
  const across = alongAxis(width, columns, both(shift)[1]);
  const scale = options.scale ?? 1 / Math.sqrt(D);
  const cosines = similarity === 'cosine';
  const logits = cosines && (options.logitScale.data ?? options.logitScale);
  const out = new Float64Array(B * Hq * L * Dv);
  const lse = new Float64Array(B * Hq * L);
  for (let b = 0; b < B; b++) {
    for (let h = 0; h < Hq; h++) {
      const g = Math.floor(h / (Hq / Hkv));
      const keys = Array.from({ length: L }, (_, j) => (cosines ? unit(k(b, g, j), round) : k(b, g, j)));
      for (let i = 0; i < L; i++) {
        const [yi, xi] = [Math.floor(i / width), i % width];
        const row = cosines ? unit(q(b, h, i), round) : q(b, h, i);
        const factor = round(cosines ? Math.exp(Math.min(logits[h], Math.log(100))) : scale);
        /** @type {[number, number][]} */
        const seen = [];
        for (let j = 0; j < L; j++) {
          const [yj, xj] = [Math.floor(j / width), j % width];
          if (!down(yi, yj) || !across(xi, xj)) continue;
          let score = round(factor * dot(row, keys[j], round));
          if (softcap) score = round(softcap * Math.tanh(score / softcap));
          if (relativeBias) {
            const at = (yi - yj + rows - 1) * (2 * columns - 1) + (xi - xj + columns - 1);
            score = round(score + widen(relativeBias.data[at * Hq + h], relativeBias.dtype));
          }
          seen.push([j, score]);
        }
        const most = Math.max(...seen.map(([, score]) => score));
        const sum = seen.reduce((all, [, score]) => round(all + round(Math.exp(score - most))), 0);
        lse[(b * Hq + h) * L + i] = round(most + Math.log(sum));
        const at = (inside ? (b * L + i) * Hq + h : (b * Hq + h) * L + i) * Dv;
        for (const [j, score] of seen) {
          const weight = round(round(Math.exp(score - most)) / sum);
          v(b, g, j).forEach((x, c) => (out[at + c] = round(out[at + c] + round(weight * x))));
        }
      }
    }
  }
  const shape = [...query.shape];
  shape[3] = Dv;
  return { out, lse, shape };
}
