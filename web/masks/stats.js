// How much of a mask's work is left.

import { readMask } from './arguments.js';
import { emptyTile, firstPartial, fullTile, tilesAlong, tileSize, tileWords } from './block-mask.js';

/**
 * Numbers of a mask, over all its batch rows and heads.
 * @typedef {object} MaskStats
 * @property {number} tiles of 64 x 64 cells, those at the edges cut
 * @property {number} full tiles in which every cell is allowed: computed without looking at the mask
 * @property {number} partial tiles in which some cells are allowed
 * @property {number} skipped tiles in which no cell is allowed: not computed, and their keys not read
 * @property {number} cells that are allowed
 * @property {number} density share of the cells that is allowed, 0 ... 1; 0 where there are no cells
 */

/**
 * Counts the tiles and cells of a mask.
 * @param {import('./block-mask.js').BlockMask} mask
 * @returns {MaskStats}
 * @throws TypeError `type`
 */
export function stats(mask) {
  const { rows, columns, batch, heads, tiles, bits } = readMask('stats', mask);
  const tileRows = tilesAlong(rows);
  const tileColumns = tilesAlong(columns);
  const cellsOf = new Uint32Array(bits.length / tileWords);
  for (let k = 0; k < bits.length; k++) cellsOf[Math.floor(k / tileWords)] += countBits(bits[k]);
  let full = 0;
  let skipped = 0;
  let cells = 0;
  for (let at = 0; at < tiles.length;) {
    const height = Math.min(tileSize, rows - (Math.floor(at / tileColumns) % tileRows) * tileSize);
    for (let j = 0; j < columns; j += tileSize, at++) {
      const tile = tiles[at];
      if (tile === emptyTile) skipped++;
      else if (tile >= firstPartial) cells += cellsOf[tile - firstPartial];
      else if (tile === fullTile) {
        full++;
        cells += height * Math.min(tileSize, columns - j);
      }
    }
  }
  const partial = tiles.length - full - skipped;
  const all = batch * heads * rows * columns;
  return { tiles: tiles.length, full, partial, skipped, cells, density: all === 0 ? 0 : cells / all };
}

/** @param {number} word */
function countBits(word) {
  let x = word - ((word >>> 1) & 0x55555555);
  x = (x & 0x33333333) + ((x >>> 2) & 0x33333333);
  return Math.imul((x + (x >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
