// The tiles of a mask that is being made: the table of numbers, and the bits of the partial tiles, each different tile once.

import { outOfMemory } from '../errors.js';
import { countElements } from '../tensor.js';
import { BlockMask, emptyTile, firstPartial, fullTile, tilesAlong, tileSize, tileWords } from './block-mask.js';

/** @typedef {import('./block-mask.js').MaskSizes} MaskSizes */

/** What is larger than a wasm memory can be no call takes, whatever the engine would give. */
const mostBytes = 2 ** 32 - 1;

/**
 * @template {Uint8Array | Int32Array | Uint32Array} A
 * @param {new (length: number) => A} Kind
 * @param {number} count elements
 * @param {string} what
 * @returns {A}
 */
export function allocate(Kind, count, what) {
  const needed = count * /** @type {any} */ (Kind).BYTES_PER_ELEMENT;
  if (needed > mostBytes) throw outOfMemory(needed, mostBytes, what);
  try {
    return new Kind(count);
  } catch (cause) {
    throw outOfMemory(needed, mostBytes, what, cause);
  }
}

/**
 * The bits of the columns below `count` in a word of 32.
 * @param {number} count any whole number
 */
export const bitsBelow = (count) => (count >= 32 ? 0xffffffff : count > 0 ? (1 << count) - 1 : 0);

export class TileStore {
  #bits = new Uint32Array(8 * tileWords);
  /** Partial tiles so far. */
  #count = 0;
  /** The last partial tile with a hash; `#before` leads to the others. @type {Map<number, number>} */
  #last = new Map();
  /** @type {number[]} */
  #before = [];

  /** @param {MaskSizes} sizes */
  constructor(sizes) {
    const { rows, columns, batch, heads } = sizes;
    this.sizes = sizes;
    this.tileRows = tilesAlong(rows);
    this.tileColumns = tilesAlong(columns);
    const shape = [batch, heads, this.tileRows, this.tileColumns];
    /** All empty to begin with. */
    this.tiles = allocate(
      Uint32Array,
      countElements('block mask tiles', shape),
      `a block mask of ${rows} x ${columns}`,
    );
  }

  /** Rows of tile row `tileRow` that exist. @param {number} tileRow */
  rowsOf(tileRow) {
    return Math.min(tileSize, this.sizes.rows - tileRow * tileSize);
  }

  /** Columns of tile column `tileColumn` that exist. @param {number} tileColumn */
  columnsOf(tileColumn) {
    return Math.min(tileSize, this.sizes.columns - tileColumn * tileSize);
  }

  /**
   * The number of a tile with these bits.
   * @param {Uint32Array} words of the tile, bits beyond the mask 0
   * @param {number} rows of the tile that exist
   * @param {number} columns of the tile that exist
   * @returns {number}
   */
  code(words, rows, columns) {
    const low = bitsBelow(columns) >>> 0;
    const high = bitsBelow(columns - 32) >>> 0;
    let any = 0;
    let full = true;
    for (let r = 0; r < rows; r++) {
      any |= words[2 * r] | words[2 * r + 1];
      full &&= words[2 * r] === low && words[2 * r + 1] === high;
    }
    return any === 0 ? emptyTile : full ? fullTile : this.partial(words, 0);
  }

  /**
   * The number of a tile that is known to be neither empty nor full.
   * @param {Uint32Array} words
   * @param {number} at where in `words` the tile begins
   * @returns {number}
   */
  partial(words, at) {
    let hash = 0;
    for (let k = 0; k < tileWords; k++) {
      hash = Math.imul(hash ^ words[at + k], 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    const last = this.#last.get(hash);
    for (let n = last; n !== undefined && n >= 0; n = this.#before[n]) {
      if (this.#equals(n, words, at)) return n + firstPartial;
    }
    const n = this.#count++;
    if (this.#count * tileWords > this.#bits.length) {
      const grown = allocate(Uint32Array, 2 * this.#bits.length, `a block mask with ${this.#count} partial tiles`);
      grown.set(this.#bits);
      this.#bits = grown;
    }
    this.#bits.set(words.subarray(at, at + tileWords), n * tileWords);
    this.#before.push(last ?? -1);
    this.#last.set(hash, n);
    return n + firstPartial;
  }

  /**
   * @param {number} n
   * @param {Uint32Array} words
   * @param {number} at
   */
  #equals(n, words, at) {
    const bits = this.#bits;
    const start = n * tileWords;
    for (let k = 0; k < tileWords; k++) if (bits[start + k] !== words[at + k]) return false;
    return true;
  }

  /** The mask that has been written. The store is done with then. */
  finish() {
    return new BlockMask(this.sizes, this.tiles, this.#bits.slice(0, this.#count * tileWords));
  }
}
