// A block mask: which cells (query row i, key column j) are allowed, kept by tiles of 64 x 64 cells, so that a tile that is
// wholly allowed or wholly hidden is one number.

import { rangeError, show, typeError } from '../errors.js';

/** Rows and columns of a tile. It is the kernel's tile: 64 columns are two words of 32 bits. */
export const tileSize = 64;

/** Words of one partial tile: two for each row. */
export const tileWords = 2 * tileSize;

/** What a tile's number says: 0 = no cell is allowed, 1 = all are, n + firstPartial = those of the n-th partial tile. */
export const emptyTile = 0;
export const fullTile = 1;
export const firstPartial = 2;

/** @param {number} cells rows or columns */
export const tilesAlong = (cells) => Math.ceil(cells / tileSize);

/**
 * Sizes of a mask.
 * @typedef {object} MaskSizes
 * @property {number} rows query length L
 * @property {number} columns key length S
 * @property {number} batch 1 where every batch row has the same mask
 * @property {number} heads 1 where every head has the same mask
 */

/**
 * Whether it is a mask itself, and not an object that merely inherits from one.
 * @type {(mask: any) => mask is BlockMask}
 */
export let isBlockMask;

/**
 * Which keys each query may attend to, by tiles of 64 x 64. Made by `masks.*`, passed to attention() as `blockMask`;
 * cannot be changed. Its memory is 4 bytes for each tile and 512 bytes for each partial tile that differs from the
 * others.
 */
export class BlockMask {
  static {
    isBlockMask = (mask) => typeof mask === 'object' && mask !== null && #tiles in mask;
  }

  /** @type {Uint32Array} */
  #tiles;
  /** @type {Uint32Array} */
  #bits;

  /**
   * @param {MaskSizes} sizes
   * @param {Uint32Array} tiles (batch, heads, tile rows, tile columns): 0, 1 or the number of a partial tile + 2
   * @param {Uint32Array} bits (partial tiles, 64 rows, 2): bit k of word w of a row is column 32·w + k of the tile; bits beyond
   *   the mask's rows and columns are 0
   * @internal
   */
  constructor({ rows, columns, batch, heads }, tiles, bits) {
    /** Query length L. @type {number} */
    this.rows = rows;
    /** Key length S. @type {number} */
    this.columns = columns;
    /** 1 where every batch row has the same mask. @type {number} */
    this.batch = batch;
    /** 1 where every head has the same mask. @type {number} */
    this.heads = heads;
    this.#tiles = tiles;
    this.#bits = bits;
    Object.freeze(this);
  }

  /** Not a copy: to be read only. @internal */
  get tiles() {
    return this.#tiles;
  }

  /** Not a copy: to be read only. Equal partial tiles share their bits. @internal */
  get bits() {
    return this.#bits;
  }

  /**
   * Whether query i may attend to key j.
   * @param {number} i row, 0 ... rows - 1
   * @param {number} j column, 0 ... columns - 1
   * @param {number} [b] batch row; any where `batch` is 1
   * @param {number} [h] head; any where `heads` is 1
   * @returns {boolean}
   * @throws RangeError `option` outside of the mask
   */
  allows(i, j, b = 0, h = 0) {
    checkIndex('row', i, this.rows);
    checkIndex('column', j, this.columns);
    checkIndex('batch row', b, this.batch === 1 ? Infinity : this.batch);
    checkIndex('head', h, this.heads === 1 ? Infinity : this.heads);
    const plane = (this.batch === 1 ? 0 : b) * this.heads + (this.heads === 1 ? 0 : h);
    const row = plane * tilesAlong(this.rows) + Math.floor(i / tileSize);
    const tile = this.#tiles[row * tilesAlong(this.columns) + Math.floor(j / tileSize)];
    if (tile < firstPartial) return tile === fullTile;
    const word = (tile - firstPartial) * tileWords + 2 * (i % tileSize) + ((j >> 5) & 1);
    return ((this.#bits[word] >>> (j & 31)) & 1) === 1;
  }
}

/**
 * @param {string} what
 * @param {number} index
 * @param {number} count
 */
function checkIndex(what, index, count) {
  if (typeof index !== 'number') throw typeError('type', `${what} must be a number, got ${show(index)}`);
  if (!Number.isSafeInteger(index) || index < 0 || index >= count) {
    throw rangeError('option', `${what} ${index} is not in the mask: it has ${count} (counted from 0)`);
  }
}
