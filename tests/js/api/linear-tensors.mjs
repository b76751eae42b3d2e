// Tensors for the tests of linear attention and state spaces: of any rank and layout, cut into pieces, and compared.

import { largestError } from '../helpers/reference.mjs';

/** @typedef {'bhld' | 'blhd'} Layout */

/**
 * Shapes with the tokens of so many heads; of rank 3 without the batch, of rank 2 without heads too.
 * @param {string} layout
 * @param {number} B
 * @param {number} L
 * @param {number} [rank] of tensors with columns
 * @returns {(heads: number, ...last: number[]) => number[]} `last`: columns, or nothing where each token has one number
 */
export const shapes =
  (layout, B, L, rank = 4) =>
  (heads, ...last) => [
    ...(rank === 2 ? [L] : [B, ...(layout === 'blhd' ? [L, heads] : [heads, L])].slice(4 - rank)),
    ...last,
  ];

/** @param {number[]} shape @param {() => number} next */
export const filled = (shape, next) => ({
  data: Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, next),
  shape,
});

/**
 * Tokens `from` up to `to` of a tensor of one batch row and layout 'blhd'.
 * @param {any} tensor
 * @param {number} from
 * @param {number} to
 */
export function cut({ data, shape }, from, to) {
  const row = data.length / shape[1];
  return { data: data.slice(from * row, to * row), shape: [1, to - from, ...shape.slice(2)] };
}

/**
 * The largest error as a share of the largest number that is wanted, where that is more than 1.
 * @param {ArrayLike<number>} got
 * @param {ArrayLike<number>} want
 */
export function errorBesideLargest(got, want) {
  const largest = Array.from(want).reduce((most, x) => Math.max(most, Math.abs(x)), 1);
  return largestError(
    Array.from(got, (x) => x / largest),
    Array.from(want, (x) => x / largest),
  );
}
