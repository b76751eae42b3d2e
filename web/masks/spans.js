// Masks whose rows are a few spans of columns each. Two running sums over a row of tiles, how many rows touch each
// tile and how many cover it, tell empty, full and partial tiles apart, so that cells are looked at in partial tiles
// only.
//
// Time: O(spans + tiles + 64 · partial tiles).

import { emptyTile, fullTile, tileSize, tileWords } from './block-mask.js';
import { bitsBelow, TileStore } from './tile-store.js';

/** @typedef {import('./block-mask.js').MaskSizes} MaskSizes */

/** The spans of up to 64 rows: ascending and apart from each other within a row. */
class Spans {
  #columns;
  #from = new Int32Array(256);
  #to = new Int32Array(256);
  /** Where each row's spans begin, and the next row's. */
  #begin = new Int32Array(tileSize + 1);
  #row = 0;
  #count = 0;
  /** The first span of each row that may reach into the tile at hand or the ones on its right. */
  #cursor = new Int32Array(tileSize);

  /** @param {number} columns */
  constructor(columns) {
    this.#columns = columns;
  }

  clear() {
    this.#row = 0;
    this.#count = 0;
  }

  endRow() {
    this.#cursor[this.#row] = this.#begin[this.#row];
    this.#begin[++this.#row] = this.#count;
  }

  /**
   * Adds columns `from` to `to`, without `to`, to the row at hand; what lies outside of the mask is cut off. `from`
   * must not be below that of the span before.
   * @param {number} from
   * @param {number} to
   */
  add(from, to) {
    const start = Math.max(from, 0);
    const end = Math.min(to, this.#columns);
    if (start >= end) return;
    const last = this.#count - 1;
    if (last >= this.#begin[this.#row] && start <= this.#to[last]) {
      if (end > this.#to[last]) this.#to[last] = end;
      return;
    }
    if (this.#count === this.#from.length) {
      this.#from = doubled(this.#from);
      this.#to = doubled(this.#to);
    }
    this.#from[this.#count] = start;
    this.#to[this.#count++] = end;
  }

  /**
   * @param {Int32Array} touched by tile column: receives what the number of spans that reach into it changes by, from
   *   the tile before
   * @param {Int32Array} covered the same for the number of spans that hold all of it
   */
  count(touched, covered) {
    touched.fill(0);
    covered.fill(0);
    for (let k = 0; k < this.#count; k++) {
      const from = this.#from[k];
      const to = this.#to[k];
      touched[Math.floor(from / tileSize)]++;
      touched[Math.ceil(to / tileSize)]--;
      const first = Math.ceil(from / tileSize);
      // The last tile is cut where the columns end.
      const end = to === this.#columns ? Math.ceil(to / tileSize) : Math.floor(to / tileSize);
      if (first >= end) continue;
      covered[first]++;
      covered[end]--;
    }
  }

  /**
   * The bits of one tile. Tiles must be asked for from left to right.
   * @param {number} tileColumn
   * @param {Uint32Array} words receives them
   */
  pack(tileColumn, words) {
    const start = tileColumn * tileSize;
    words.fill(0);
    for (let r = 0; r < this.#row; r++) {
      const end = this.#begin[r + 1];
      let k = this.#cursor[r];
      while (k < end && this.#to[k] <= start) k++;
      this.#cursor[r] = k;
      for (; k < end && this.#from[k] < start + tileSize; k++) {
        const from = this.#from[k] - start;
        const to = this.#to[k] - start;
        words[2 * r] |= bitsBelow(to) & ~bitsBelow(from);
        words[2 * r + 1] |= bitsBelow(to - 32) & ~bitsBelow(from - 32);
      }
    }
  }
}

/** @param {Int32Array} array */
function doubled(array) {
  const grown = new Int32Array(2 * array.length);
  grown.set(array);
  return grown;
}

/**
 * @param {MaskSizes} sizes
 * @param {(spans: Spans, row: number, batchRow: number, head: number) => void} addRow adds the spans of one row in
 *   ascending order; called for every row from 0 on, for each head of each batch row
 */
export function fromSpans(sizes, addRow) {
  const store = new TileStore(sizes);
  const { tiles, tileRows, tileColumns } = store;
  if (tiles.length === 0) return store.finish();
  const spans = new Spans(sizes.columns);
  const touched = new Int32Array(tileColumns + 1);
  const covered = new Int32Array(tileColumns + 1);
  const words = new Uint32Array(tileWords);
  let at = 0;
  for (let b = 0; b < sizes.batch; b++) {
    for (let h = 0; h < sizes.heads; h++) {
      for (let tileRow = 0; tileRow < tileRows; tileRow++) {
        const rows = store.rowsOf(tileRow);
        spans.clear();
        for (let r = 0; r < rows; r++) {
          addRow(spans, tileRow * tileSize + r, b, h);
          spans.endRow();
        }
        spans.count(touched, covered);
        let touches = 0;
        let covers = 0;
        for (let tileColumn = 0; tileColumn < tileColumns; tileColumn++, at++) {
          touches += touched[tileColumn];
          covers += covered[tileColumn];
          if (covers === rows) tiles[at] = fullTile;
          else if (touches === 0) tiles[at] = emptyTile;
          else {
            spans.pack(tileColumn, words);
            tiles[at] = store.partial(words, 0);
          }
        }
      }
    }
  }
  return store.finish();
}
