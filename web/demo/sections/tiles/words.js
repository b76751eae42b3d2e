// Each step in words.

import { fixed } from '../../parts/format.js';
import { sizes } from './example.js';

/** @param {number} number */
export const digits = (number) => (number === -Infinity ? '−∞' : fixed(number, 2));

/**
 * @param {readonly import('./steps.js').Step[]} steps
 * @param {number} at
 * @param {readonly import('./steps.js').Tile[]} tiles
 * @returns {string}
 */
export function describe(steps, at, tiles) {
  const { kind, tile, rows, cells } = steps[at];
  const { rowTile, keyTile } = sizes;
  if (kind === 'start')
    return 'Nothing has been computed. Each query keeps a maximum, a sum and an output: four numbers, however many keys there are.';
  if (kind === 'end')
    return 'All tiles are done. Each output is divided by its sum, and that is the attention. No more than one tile of scores existed at any time.';
  const { firstRow, firstKey } = tiles[tile];
  const place = `Tile ${tile + 1} of ${tiles.length}, queries ${firstRow} to ${firstRow + rowTile - 1}, keys ${firstKey} to ${firstKey + keyTile - 1}`;
  if (kind === 'skip')
    return `${place}: none of these keys may be seen. The tile is skipped, and its keys are not read.`;
  if (kind === 'scores') {
    const count = cells.filter((cell) => !Number.isNaN(cell)).length;
    return `${place}: ${count} scores, query · key times the scale. This is all there is of the matrix now.`;
  }
  if (kind === 'sum')
    return `${place}: e to the power of score minus maximum. These are added to the sums, and times their values to the outputs; then the tile is forgotten.`;
  const before = steps[at - 1].rows;
  const risen = rows.flatMap((row, i) =>
    row.max > before[i].max && before[i].max !== -Infinity
      ? [
          `query ${i}, from ${digits(before[i].max)} to ${digits(row.max)}: what it has is multiplied by ${digits(row.factor)}`,
        ]
      : [],
  );
  const isFirst = rows.some((row, i) => row.max > before[i].max && before[i].max === -Infinity);
  if (risen.length > 0) return `${place}: a larger maximum for ${risen.join('; ')}.`;
  return isFirst
    ? `${place}: the first maxima. There is nothing to rescale yet.`
    : `${place}: no score is above the maximum that its query has. Nothing is rescaled.`;
}
