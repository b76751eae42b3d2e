// Queries and keys of one head whose attention has a shape that can be recognised, for any number of tokens.

import { fillNormal, uniform } from '../../parts/data.js';

export const headDim = 32;

/** By their numbers. */
export const headNames = ['Neighbours', 'Documents', 'Anchors', 'Repeats'];

/** What there is to see, in their order. */
export const headWords = [
  'Each token looks at those just before it, which gives a diagonal.',
  'Several texts in one sequence: tokens look within their own, which gives blocks.',
  'A few tokens at which all others look, which gives upright lines.',
  'One passage comes three times: each copy looks back at the same place in those before it, which gives slanted lines.',
];

/**
 * @typedef {{ data: Float32Array, shape: [number, number], dtype: 'float32' }} Matrix
 * @typedef {{ query: Matrix, key: Matrix }} Head
 */

/**
 * @param {number} head
 * @param {number} tokens
 * @param {import('../../parts/pace.js').Pace} pace
 * @returns {Promise<Head>}
 */
export async function makeHead(head, tokens, pace) {
  const draw = async (/** @type {number} */ seed) => {
    const data = new Float32Array(tokens * headDim);
    await fillNormal({ data }, seed, pace);
    return /** @type {Matrix} */ ({ data, shape: [tokens, headDim], dtype: 'float32' });
  };
  const [query, key] = [await draw(11 + head), await draw(21 + head)];
  await pace.follow([neighbours, documents, anchors, repeats][head](query, key));
  return { query, key };
}

/** Rows between two looks at the clock. */
const chunk = 512;

/** Cosines of the distance, of many wavelengths: large only where they agree. @param {Matrix} query @param {Matrix} key */
function* neighbours(query, key) {
  const pairs = headDim / 2;
  for (let i = 0; i < query.shape[0]; i++) {
    for (let m = 0; m < pairs; m++) {
      const angle = i / 3 ** (1 + (m * 7) / pairs);
      for (const { data } of [query, key]) {
        data[i * headDim + 2 * m] = 1.9 * Math.cos(angle) + 0.1 * data[i * headDim + 2 * m];
        data[i * headDim + 2 * m + 1] = 1.9 * Math.sin(angle) + 0.1 * data[i * headDim + 2 * m + 1];
      }
    }
    if (i % chunk === 0) yield;
  }
}

/** Tokens of one document share a direction. @param {Matrix} query @param {Matrix} key */
function* documents(query, key) {
  const [tokens] = query.shape;
  const next = uniform(31);
  const sign = () => (next() < 0.5 ? -1 : 1);
  let end = 0;
  let direction = new Float32Array(headDim);
  for (let i = 0; i < tokens; i++) {
    if (i === end) {
      end += Math.max(8, Math.round(tokens * (0.01 + 0.09 * next())));
      direction = Float32Array.from(direction, sign);
    }
    for (let d = 0; d < headDim; d++) {
      for (const { data } of [query, key]) data[i * headDim + d] = 1.1 * direction[d] + 0.7 * data[i * headDim + d];
    }
    if (i % chunk === 0) yield;
  }
}

/** A few keys that every query looks at. @param {Matrix} query @param {Matrix} key */
function* anchors(query, key) {
  const [tokens] = query.shape;
  const next = uniform(32);
  const places = new Set([0, ...Array.from({ length: 11 }, () => Math.floor(next() * tokens))]);
  for (let i = 0; i < tokens; i++) {
    for (let d = 0; d < headDim; d++) query.data[i * headDim + d] = 1 + 0.5 * query.data[i * headDim + d];
    const pull = places.has(i) ? 2.1 : 0;
    for (let d = 0; d < headDim; d++) key.data[i * headDim + d] = pull + 0.5 * key.data[i * headDim + d];
    if (i % chunk === 0) yield;
  }
}

/** A passage that comes three times: each token looks for what followed it before. @param {Matrix} query @param {Matrix} key */
function* repeats(query, key) {
  const [tokens] = query.shape;
  const [from, length] = [Math.floor(tokens * 0.12), Math.floor(tokens * 0.14)];
  const copies = [0.45, 0.74].map((share) => Math.floor(tokens * share));
  for (const to of copies)
    query.data.copyWithin(to * headDim, from * headDim, Math.min(tokens, from + length) * headDim);
  for (let i = 0; i < tokens; i++) {
    const row = query.data.subarray(i * headDim, (i + 1) * headDim);
    const scale = Math.sqrt(17 * Math.sqrt(headDim)) / Math.hypot(...row);
    for (let d = 0; d < headDim; d++) row[d] *= scale;
    // The key of a token tells of the one before.
    if (i + 1 < tokens) key.data.set(row, (i + 1) * headDim);
    if (i % chunk === 0) yield;
  }
}
