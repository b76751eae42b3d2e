// What the section shows of rotary embeddings, all of it measured on what sdpa.rope() gives.

import { normal } from '../../parts/data.js';

/** Columns of the small example, and of the curves. */
export const smallDim = 8;
export const curveDim = 64;

/** Tokens that the model of the example was trained on: what is stretched. */
export const trained = 4096;

/**
 * @typedef {'half' | 'interleaved'} Pairing
 * @typedef {'none' | 'linear' | 'ntk' | 'yarn' | 'llama3'} Stretch
 * @typedef {{ base: number, pairing: Pairing, stretch: Stretch, factor: number }} Setting
 */

/**
 * The option `scaling` of rope().
 * @param {Stretch} stretch
 * @param {number} factor
 * @returns {import('sdpa').RopeOptions['scaling']}
 */
export function scalingOf(stretch, factor) {
  if (stretch === 'none') return undefined;
  if (stretch === 'yarn') return { type: stretch, factor, originalMaxPosition: trained };
  if (stretch === 'llama3')
    return { type: stretch, factor, lowFreqFactor: 1, highFreqFactor: 4, originalMaxPosition: trained };
  return { type: stretch, factor };
}

/**
 * @param {Setting} setting
 * @returns {import('sdpa').RopeOptions}
 */
export const optionsOf = ({ base, pairing, stretch, factor }) => ({
  base,
  pairing,
  scaling: scalingOf(stretch, factor),
});

/**
 * The two columns of a pair.
 * @param {Pairing} pairing
 * @param {number} pair
 * @param {number} dim
 * @returns {[number, number]}
 */
export const columnsOf = (pairing, pair, dim) =>
  pairing === 'half' ? [pair, pair + dim / 2] : [2 * pair, 2 * pair + 1];

/**
 * @param {number} dim
 * @param {number} seed
 * @returns {Float32Array} the same for the same seed
 */
export const vector = (dim, seed) => Float32Array.from({ length: dim }, normal(seed));

/**
 * One vector at several positions.
 * @param {import('sdpa').Sdpa} sdpa
 * @param {Float32Array} x
 * @param {readonly number[]} positions
 * @param {Setting} setting
 * @returns {Float32Array[]}
 */
export function turned(sdpa, x, positions, setting) {
  const data = new Float32Array(positions.length * x.length);
  positions.forEach((_, i) => data.set(x, i * x.length));
  const given = { data, shape: [positions.length, x.length] };
  const { data: rows } = sdpa.rope(given, { ...optionsOf(setting), positions: Int32Array.from(positions) });
  return positions.map((_, i) => rows.subarray(i * x.length, (i + 1) * x.length));
}

/**
 * @param {ArrayLike<number>} a
 * @param {ArrayLike<number>} b
 */
export function dot(a, b) {
  let sum = 0;
  for (let d = 0; d < a.length; d++) sum += a[d] * b[d];
  return sum;
}

/**
 * q · k for a vector with itself, by distance, as a share of that at distance 0 without stretch.
 * @param {import('sdpa').Sdpa} sdpa
 * @param {readonly number[]} distances
 * @param {Setting} setting
 * @returns {number[]}
 */
export function byDistance(sdpa, distances, setting) {
  const x = vector(curveDim, 5);
  const [first] = turned(sdpa, x, [0], setting);
  const whole = dot(x, x);
  return turned(sdpa, x, distances, setting).map((row) => dot(first, row) / whole);
}

/**
 * Tokens in which each pair turns once round, from the angle at position 1.
 * @param {import('sdpa').Sdpa} sdpa
 * @param {Setting} setting
 * @returns {number[]} (curveDim / 2)
 */
export function wavelengths(sdpa, setting) {
  return Array.from({ length: curveDim / 2 }, (_, pair) => {
    const [first, second] = columnsOf(setting.pairing, pair, curveDim);
    const unit = new Float32Array(curveDim);
    unit[first] = 1;
    const [row] = turned(sdpa, unit, [1], setting);
    return (2 * Math.PI) / Math.atan2(row[second], row[first]);
  });
}
