// and, or, not of masks, tile by tile: tiles that are empty or full are decided by their numbers, pairs of partial
// tiles by their bits, each different pair once.

import { rangeError, typeError } from '../errors.js';
import { readMask } from './arguments.js';
import { emptyTile, firstPartial, fullTile, tileSize, tileWords } from './block-mask.js';
import { bitsBelow, TileStore } from './tile-store.js';

/** @typedef {import('./block-mask.js').BlockMask} BlockMask */

/**
 * Cells that every mask allows.
 * @param {...BlockMask} masks of equal rows and columns; each batch and number of heads 1 or that of the others
 * @returns {BlockMask}
 * @throws TypeError `type`, RangeError `shape` where sizes differ
 */
export const and = (...masks) => combine('and', masks, emptyTile, (a, b) => a & b);

/**
 * Cells that at least one mask allows.
 * @param {...BlockMask} masks of equal rows and columns; each batch and number of heads 1 or that of the others
 * @returns {BlockMask}
 * @throws TypeError `type`, RangeError `shape` where sizes differ
 */
export const or = (...masks) => combine('or', masks, fullTile, (a, b) => a | b);

/**
 * Cells that the mask does not allow.
 * @param {BlockMask} mask
 * @returns {BlockMask}
 * @throws TypeError `type`
 */
export function not(mask) {
  const { rows, columns, batch, heads, tiles, bits } = readMask('not', mask);
  const store = new TileStore({ rows, columns, batch, heads });
  const words = new Uint32Array(tileWords);
  /** @type {Map<number, number>} */
  const known = new Map();
  forEachTile(store, (at, tileRow, tileColumn, cut) => {
    const tile = tiles[at];
    if (tile < firstPartial) {
      store.tiles[at] = tile === fullTile ? emptyTile : fullTile;
      return;
    }
    store.tiles[at] = remember(known, 4 * tile + cut, () => {
      const from = (tile - firstPartial) * tileWords;
      const low = bitsBelow(store.columnsOf(tileColumn));
      const high = bitsBelow(store.columnsOf(tileColumn) - 32);
      const end = 2 * store.rowsOf(tileRow);
      words.fill(0);
      for (let k = 0; k < end; k += 2) {
        words[k] = low & ~bits[from + k];
        words[k + 1] = high & ~bits[from + k + 1];
      }
      return store.partial(words, 0);
    });
  });
  return store.finish();
}

/**
 * @param {string} name
 * @param {unknown[]} masks
 * @param {number} deciding the tile (empty or full) that decides the result whatever the other is; its opposite
 *   leaves the other as it is
 * @param {(a: number, b: number) => number} operation on words
 */
function combine(name, masks, deciding, operation) {
  if (masks.length === 0) throw typeError('type', `${name} takes one mask or more, got none`);
  const read = masks.map((mask) => readMask(name, mask));
  for (const mask of read.slice(1)) checkSizes(name, read, mask);
  return read.reduce((a, b) => pair(a, b, deciding, operation));
}

/**
 * @param {string} name
 * @param {BlockMask[]} masks
 * @param {BlockMask} mask
 */
function checkSizes(name, [first, ...others], mask) {
  if (mask.rows !== first.rows || mask.columns !== first.columns) {
    const sizes = `${first.rows} x ${first.columns} and ${mask.rows} x ${mask.columns}`;
    throw rangeError('shape', `${name} takes masks of one size, got ${sizes} (rows x columns)`);
  }
  for (const dimension of /** @type {const} */ (['batch', 'heads'])) {
    const sizes = [first, ...others].map((other) => other[dimension]).filter((size) => size !== 1);
    const different = sizes.find((size) => size !== sizes[0]);
    if (different === undefined) continue;
    throw rangeError(
      'shape',
      `${name} takes masks with a ${dimension} of 1 or the same, got ${sizes[0]} and ${different}`,
    );
  }
}

/**
 * @param {BlockMask} a
 * @param {BlockMask} b
 * @param {number} deciding
 * @param {(a: number, b: number) => number} operation
 */
function pair(a, b, deciding, operation) {
  const size = (/** @type {number} */ x, /** @type {number} */ y) => (x === 1 ? y : x);
  const batch = size(a.batch, b.batch);
  const heads = size(a.heads, b.heads);
  const store = new TileStore({ rows: a.rows, columns: a.columns, batch, heads });
  const plane = store.tileRows * store.tileColumns;
  const words = new Uint32Array(tileWords);
  const [tilesA, bitsA, tilesB, bitsB] = [a.tiles, a.bits, b.tiles, b.bits];
  /** @type {Map<number, number>[]} numbers of a's tiles, of b's, and of pairs, to those of the result */
  const [knownA, knownB, known] = [new Map(), new Map(), new Map()];
  const manyB = bitsB.length / tileWords + firstPartial;
  /** @param {Map<number, number>} taken @param {number} tile @param {Uint32Array} bits */
  const take = (taken, tile, bits) =>
    tile < firstPartial ? tile : remember(taken, tile, () => store.partial(bits, (tile - firstPartial) * tileWords));

  let planeA = 0;
  let planeB = 0;
  forEachTile(store, (at, tileRow, tileColumn, cut) => {
    const inPlane = at % plane;
    if (inPlane === 0) {
      planeA = planeOf(a, at / plane, heads) * plane;
      planeB = planeOf(b, at / plane, heads) * plane;
    }
    const tileA = tilesA[planeA + inPlane];
    const tileB = tilesB[planeB + inPlane];
    if (tileA < firstPartial) store.tiles[at] = tileA === deciding ? deciding : take(knownB, tileB, bitsB);
    else if (tileB < firstPartial) store.tiles[at] = tileB === deciding ? deciding : take(knownA, tileA, bitsA);
    else {
      // Whether the result is full depends on how much of the tile exists.
      store.tiles[at] = remember(known, 4 * (tileA * manyB + tileB) + cut, () => {
        const fromA = (tileA - firstPartial) * tileWords;
        const fromB = (tileB - firstPartial) * tileWords;
        for (let k = 0; k < tileWords; k++) words[k] = operation(bitsA[fromA + k], bitsB[fromB + k]);
        return store.code(words, store.rowsOf(tileRow), store.columnsOf(tileColumn));
      });
    }
  });
  return store.finish();
}

/**
 * @param {BlockMask} mask
 * @param {number} plane of the result: batch row · heads + head
 * @param {number} heads of the result
 */
function planeOf(mask, plane, heads) {
  const b = mask.batch === 1 ? 0 : Math.floor(plane / heads);
  const h = mask.heads === 1 ? 0 : plane % heads;
  return b * mask.heads + h;
}

/**
 * @param {TileStore} store
 * @param {(at: number, tileRow: number, tileColumn: number, cut: number) => void} action `cut`: 1 in the last tile
 *   column, 2 in the last tile row, added up: tiles with the same have the same cells
 */
function forEachTile(store, action) {
  const { tileRows, tileColumns, tiles } = store;
  const lastRow = store.sizes.rows % tileSize === 0 ? -1 : tileRows - 1;
  const lastColumn = store.sizes.columns % tileSize === 0 ? -1 : tileColumns - 1;
  for (let at = 0; at < tiles.length;) {
    for (let tileRow = 0; tileRow < tileRows; tileRow++) {
      const below = tileRow === lastRow ? 2 : 0;
      for (let tileColumn = 0; tileColumn < tileColumns; tileColumn++, at++) {
        action(at, tileRow, tileColumn, below + (tileColumn === lastColumn ? 1 : 0));
      }
    }
  }
}

/**
 * @param {Map<number, number>} known
 * @param {number} key
 * @param {() => number} make
 */
function remember(known, key, make) {
  let tile = known.get(key);
  if (tile === undefined) known.set(key, (tile = make()));
  return tile;
}
