// Rows in pages out of a pool. Forks share pages, and a page is copied before a cache writes into it that others use too.

import { PagePool } from './page-pool.js';
import { noStep, Rows } from './rows.js';

/**
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('./cache-options.js').CacheSpec} CacheSpec
 * @typedef {import('./rows.js').Run} Run
 * @typedef {import('./rows.js').Step} Step
 */

export class PagedRows extends Rows {
  /** @type {PagePool} */
  #pool;
  /** @type {{ pages: number[][] }} */
  #table;
  /** The table as the kernel reads it, (batch, pagesPerRow); null where it has to be written again. @type {Int32Array | null} */
  #flat = null;

  /**
   * @param {Runtime} runtime
   * @param {CacheSpec} spec
   * @param {PagedRows} [origin] the rows whose tokens these share at first
   */
  constructor(runtime, spec, origin) {
    super(runtime, spec);
    this.#pool = origin ? origin.#pool : new PagePool(runtime, spec);
    this.#table = { pages: Array.from(this.lengths, (_, b) => (origin ? [...origin.#table.pages[b]] : [])) };
    if (origin) this.lengths.set(origin.lengths);
    for (const row of this.#table.pages) for (const page of row) this.#pool.share(page);
    this.#pool.join(this, this.#table);
  }

  /** @override */
  get storage() {
    return this.#pool.storage;
  }

  /** Tokens of the whole pool: one row could have them all. @override */
  get capacity() {
    return this.#pool.size * this.spec.pageSize;
  }

  /** @override @returns {import('./rows.js').KeyMap} */
  get map() {
    const { pages } = this.#table;
    const { pageSize } = this.spec;
    if (!this.#flat) {
      const perRow = Math.max(1, ...pages.map((row) => row.length));
      this.#flat = new Int32Array(pages.length * perRow);
      for (const [b, row] of pages.entries()) this.#flat.set(row, b * perRow);
    }
    const pagesPerRow = this.#flat.length / pages.length;
    return { pages: this.#flat, pagesPerRow, pageSize, ringBegin: 0, ringSize: 0, heldFrom: null };
  }

  /** @param {number} length tokens */
  #pagesFor(length) {
    return Math.ceil(length / this.spec.pageSize);
  }

  /** @override @param {Int32Array} counts */
  prepare(counts) {
    super.prepare(counts);
    const { lengths } = this;
    const ends = lengths.map((length, b) => length + counts[b]);
    return this.#ownPages(
      (b) => (counts[b] > 0 ? lengths[b] : ends[b]),
      ends,
      (b) => counts[b],
    );
  }

  /** @override @param {number} first @param {Int32Array} lengths */
  own(first, lengths) {
    return this.#ownPages(
      () => first,
      lengths,
      () => 0,
    );
  }

  /**
   * Gives each row pages of its own for the tokens from `first` up to its end: new ones where it has none, copies where it
   * shares them.
   * @param {(b: number) => number} first
   * @param {Int32Array} ends
   * @param {(b: number) => number} added tokens, for the error
   * @returns {Step}
   */
  #ownPages(first, ends, added) {
    const pool = this.#pool;
    const { pages } = this.#table;
    const { fixed, pageSize } = this.spec;
    /** @type {{ b: number, index: number }[]} */
    const wanted = [];
    for (let b = 0; b < pages.length; b++) {
      if (first(b) >= ends[b]) continue;
      for (let index = Math.floor(first(b) / pageSize); index < this.#pagesFor(ends[b]); index++) {
        if (index >= pages[b].length || pool.isShared(pages[b][index])) wanted.push({ b, index });
      }
      if (fixed && wanted.length > pool.free) {
        const why = `its pool is fixed at ${pool.size} pages of ${pageSize} tokens, ${this.capacity} in all, and ${pool.free} of them are free`;
        throw this.full(b, added(b), why);
      }
    }
    if (wanted.length === 0) return noStep;
    const grown = pool.reserve(wanted.length);
    // What is replaced stays in use until that is settled: another cache may let go of it meanwhile.
    const before = pages.map((row) => [...row]);
    const shared = wanted.filter(({ b, index }) => index < before[b].length).map(({ b, index }) => before[b][index]);
    for (const { b, index } of wanted) {
      pages[b][index] = index < pages[b].length ? pool.copy(pages[b][index]) : pool.take();
    }
    this.#flat = null;
    const settle = () => {
      for (const page of shared) pool.letGo(page);
      grown.settle();
    };
    const undo = () => {
      for (const { b, index } of wanted) pool.letGo(pages[b][index]);
      for (const [b, row] of before.entries()) pages[b] = row;
      this.#flat = null;
      grown.undo();
    };
    return { settle, undo };
  }

  /**
   * @override
   * @param {number} b
   * @param {number} position
   * @param {number} count
   */
  runs(b, position, count) {
    const { pageSize } = this.spec;
    const row = this.#table.pages[b];
    /** @type {Run[]} */
    const runs = [];
    for (let skip = 0; skip < count;) {
      const at = position + skip;
      const within = at % pageSize;
      const piece = Math.min(count - skip, pageSize - within);
      runs.push({ outer: row[(at - within) / pageSize], row: within, count: piece, skip });
      skip += piece;
    }
    return runs;
  }

  /** @override @param {number} b @param {number} length */
  shorten(b, length) {
    super.shorten(b, length);
    const row = this.#table.pages[b];
    for (const page of row.splice(this.#pagesFor(length))) this.#pool.letGo(page);
    this.#flat = null;
  }

  /** @override */
  dispose() {
    this.#pool.leave(this.#table);
  }

  /** Rows with the same tokens. */
  fork() {
    return new PagedRows(this.runtime, this.spec, this);
  }
}
