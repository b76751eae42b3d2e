// The batch rows of a cache: how many tokens each has, and where in memory a token lies. The base of the three kinds, and the plain one.

import { rangeError } from '../errors.js';
import { mostTokens } from './cache-options.js';
import { Storage } from './storage.js';

/**
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('./cache-options.js').CacheSpec} CacheSpec
 */

/**
 * Tokens of a batch row that lie side by side in memory.
 * @typedef {object} Run
 * @property {number} outer batch row or page
 * @property {number} row the first token's place in it
 * @property {number} count tokens
 * @property {number} skip tokens between the one that was asked for and the first of these
 */

/**
 * How the kernel finds a token beyond the strides: see AttentionCall.
 * @typedef {object} KeyMap
 * @property {Int32Array | null} pages
 * @property {number} pagesPerRow
 * @property {number} pageSize
 * @property {number} ringBegin
 * @property {number} ringSize
 * @property {Int32Array | null} heldFrom
 */

/**
 * A change that memory has been taken for, and that may still be called off: one of the two is called, once.
 * @typedef {{ settle(): void, undo(): void }} Step
 */

/** Where nothing was taken. @type {Step} */
export const noStep = { settle() {}, undo() {} };

/** @type {KeyMap} */
const noMap = { pages: null, pagesPerRow: 0, pageSize: 0, ringBegin: 0, ringSize: 0, heldFrom: null };

export class Rows {
  /** @param {Runtime} runtime @param {CacheSpec} spec */
  constructor(runtime, spec) {
    this.runtime = runtime;
    this.spec = spec;
    /** Tokens of each batch row, those that a ring has lost included. */
    this.lengths = new Int32Array(spec.batch);
  }

  /** Tokens of the longest batch row. */
  get longest() {
    let most = 0;
    for (const length of this.lengths) if (length > most) most = length;
    return most;
  }

  /** @returns {Storage} */
  get storage() {
    throw new Error('a kind of cache names its storage');
  }

  /** @returns {KeyMap} */
  get map() {
    return noMap;
  }

  /** Tokens of a row that the memory taken so far holds. */
  get capacity() {
    return this.storage.rows;
  }

  /**
   * Takes the memory for so many more tokens of each row. Afterwards they can be written.
   * @param {Int32Array} counts
   * @returns {Step}
   * @throws RangeError `capacity` or `out-of-memory`, with nothing changed
   */
  prepare(counts) {
    for (let b = 0; b < counts.length; b++) {
      if (this.lengths[b] + counts[b] > mostTokens)
        throw this.full(b, counts[b], `a row has at most ${mostTokens} tokens`);
    }
    return noStep;
  }

  /**
   * Where tokens lie that prepare() has made room for.
   * @param {number} b batch row
   * @param {number} position of the first token
   * @param {number} count
   * @returns {Run[]} in order; a ring leaves out what it does not keep
   */
  runs(b, position, count) {
    return count > 0 ? [{ outer: b, row: position, count, skip: 0 }] : [];
  }

  /**
   * Counts tokens that have been written.
   * @param {Int32Array} counts
   */
  commit(counts) {
    for (let b = 0; b < counts.length; b++) this.lengths[b] += counts[b];
  }

  /**
   * Makes the tokens from `first` up to the new end of each row this cache's own, to be overwritten.
   * @param {number} _first
   * @param {Int32Array} _lengths the new lengths
   * @returns {Step}
   * @throws RangeError `capacity` or `out-of-memory`, with nothing changed
   */
  own(_first, _lengths) {
    return noStep;
  }

  /**
   * Copies tokens of a batch row to an earlier place in it.
   * @param {number} b
   * @param {number} from
   * @param {number} to
   * @param {number} count
   */
  move(b, from, to, count) {
    const { storage } = this;
    const sources = this.runs(b, from, count);
    const targets = this.runs(b, to, count);
    // Pages end at other tokens on the two sides.
    for (let done = 0, s = 0, t = 0; done < count;) {
      const source = sources[s];
      const target = targets[t];
      const fromSkip = done - source.skip;
      const toSkip = done - target.skip;
      const piece = Math.min(source.count - fromSkip, target.count - toSkip);
      storage.copyRows(storage, source.outer, source.row + fromSkip, target.outer, target.row + toSkip, piece);
      done += piece;
      if (fromSkip + piece === source.count) s++;
      if (toSkip + piece === target.count) t++;
    }
  }

  /**
   * Forgets the tokens of a row from `length` on.
   * @param {number} b
   * @param {number} length
   */
  shorten(b, length) {
    this.lengths[b] = length;
  }

  dispose() {
    this.storage.release();
  }

  /**
   * @param {number} b
   * @param {number} count tokens to append; 0 where tokens of the row only move
   * @param {string} why
   */
  full(b, count, why) {
    const wish = count > 0 ? `cannot take ${count} more` : 'needs pages of its own for those that move';
    const message = `the cache is full: batch row ${b} has ${this.lengths[b]} tokens and ${wish}, because ${why}`;
    return rangeError('capacity', message);
  }
}

/** (batch, heads, capacity, dim), of a capacity that doubles or is fixed. */
export class PlainRows extends Rows {
  /** @type {Storage} */
  #storage;

  /** @param {Runtime} runtime @param {CacheSpec} spec */
  constructor(runtime, spec) {
    super(runtime, spec);
    this.#storage = new Storage(runtime, spec, spec.batch, spec.capacity);
  }

  /** @override */
  get storage() {
    return this.#storage;
  }

  /** @override @param {Int32Array} counts */
  prepare(counts) {
    super.prepare(counts);
    const { spec, lengths, capacity } = this;
    let needed = 0;
    for (let b = 0; b < counts.length; b++) {
      const length = lengths[b] + counts[b];
      if (spec.fixed && length > capacity) throw this.full(b, counts[b], `its capacity is fixed at ${capacity}`);
      if (length > needed) needed = length;
    }
    return needed > capacity ? this.#grow(needed) : noStep;
  }

  /**
   * @param {number} needed tokens of each row
   * @returns {Step}
   */
  #grow(needed) {
    const old = this.#storage;
    let rows = old.rows;
    while (rows < needed) rows *= 2;
    const fresh = new Storage(this.runtime, this.spec, this.spec.batch, rows);
    for (let b = 0; b < this.spec.batch; b++) fresh.copyRows(old, b, 0, b, 0, this.lengths[b]);
    this.#storage = fresh;
    return {
      settle: () => old.release(),
      undo: () => {
        this.#storage = old;
        fresh.release();
      },
    };
  }
}
