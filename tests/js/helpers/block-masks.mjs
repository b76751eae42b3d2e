// Block masks whose cells are known, for the reference.

import { masks } from 'sdpa';

const cells = new WeakMap();

/**
 * @param {{ data: Uint8Array, shape: number[] }} dense non-zero = attend; rank 2 to 4
 * @returns {import('sdpa').BlockMask}
 */
export function blockMaskOf(dense) {
  const mask = masks.fromDense(dense);
  cells.set(mask, dense);
  return mask;
}

/**
 * Random cells whose tiles of 64 × 64 are empty, full or mixed, about as often.
 * @param {{ uniform: () => number }} random
 * @param {number[]} shape of rank 4
 */
export function randomBlocks({ uniform }, [batch, heads, rows, columns]) {
  const data = new Uint8Array(batch * heads * rows * columns);
  for (let plane = 0; plane < batch * heads; plane++) {
    for (let top = 0; top < rows; top += 64) {
      for (let left = 0; left < columns; left += 64) {
        const share = [0, 1, 0.5][Math.floor(uniform() * 3)];
        for (let i = top; i < Math.min(rows, top + 64); i++) {
          for (let j = left; j < Math.min(columns, left + 64); j++) {
            data[(plane * rows + i) * columns + j] = uniform() < share ? 1 : 0;
          }
        }
      }
    }
  }
  return { data, shape: [batch, heads, rows, columns] };
}

/**
 * Options as the reference takes them.
 * @param {any} options
 */
export const forReference = (options) =>
  options.blockMask ? { ...options, blockMask: cells.get(options.blockMask) } : options;
