// Sums and maxima of cells, put together from slices: those of one cell in the order of their rows, in double precision, as the module
// does it by itself.

import { kinds } from './kinds.js';

/** @typedef {import('./kinds.js').Request} Request */

/** Sums of a slice of one head: `starts` of its cells and the end, counted from its first row; (cells, width) numbers from `at` on. @typedef {{ row: number, starts: Int32Array, data: Float32Array | Float64Array, at: number }} Part */

export class CellSums {
  #request;
  #rowCells;
  /** (heads, cells, width) */
  #sums;
  /** First row that is missing, of each head. */
  #next;
  /** Slices that came before their turn, by head and first row. @type {Map<string, Part>} */
  #early = new Map();

  /**
   * @param {Request} request
   * @param {number} heads of all batch entries
   * @param {number} seqlenQ
   */
  constructor(request, heads, seqlenQ) {
    this.#request = request;
    this.#rowCells = request.rowCells ?? Int32Array.of(0, seqlenQ);
    this.#sums = new Float64Array(heads * request.lines * request.width);
    this.#next = new Int32Array(heads);
  }

  /**
   * @param {number} head
   * @param {Part} part
   */
  add(head, part) {
    if (part.row !== this.#next[head]) {
      const { data, at, starts } = part;
      const own = data.slice(at, at + (starts.length - 1) * this.#request.width);
      this.#early.set(`${head} ${part.row}`, { ...part, data: own, at: 0 });
      return;
    }
    /** @type {Part | undefined} */
    let next = part;
    while (next) {
      this.#put(head, next);
      this.#next[head] = next.row + next.starts[next.starts.length - 1];
      const name = `${head} ${this.#next[head]}`;
      next = this.#early.get(name);
      this.#early.delete(name);
    }
  }

  /**
   * @param {number} head
   * @param {Part} part
   */
  #put(head, { row, starts, data, at }) {
    const { kind, lines, width } = this.#request;
    let cell = 0;
    for (let n = 0; n + 1 < starts.length; n++, at += width) {
      while (this.#rowCells[cell + 1] <= row + starts[n]) cell++;
      const to = (head * lines + cell) * width;
      for (let c = 0; c < width; c++) {
        const x = data[at + c];
        if (kind !== kinds.max) this.#sums[to + c] += x;
        else if (x > this.#sums[to + c] || Number.isNaN(x)) this.#sums[to + c] = x;
      }
    }
  }

  /** @returns {Float32Array} (heads, cells, width) */
  values() {
    const { kind, lines, width, columnCells } = this.#request;
    return Float32Array.from(this.#sums, (sum, i) => {
      if (kind !== kinds.mean || !columnCells) return sum;
      const c = i % width;
      const r = Math.floor(i / width) % lines;
      return sum / ((this.#rowCells[r + 1] - this.#rowCells[r]) * (columnCells[c + 1] - columnCells[c]));
    });
  }
}
