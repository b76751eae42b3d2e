// A ring: the first `globalKeys` tokens of each batch row stay where they are, the others go round in the places behind them. Token j
// keeps its position j for good.

import { Rows } from './rows.js';
import { Storage } from './storage.js';

/**
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('./cache-options.js').CacheSpec} CacheSpec
 * @typedef {import('./rows.js').Run} Run
 */

/** (batch, heads, globalKeys + window, dim). */
export class RingRows extends Rows {
  /** @type {Storage} */
  #storage;
  /** Of each batch row: of the tokens from globalKeys on, those from here on are held. */
  #heldFrom;

  /** @param {Runtime} runtime @param {CacheSpec} spec */
  constructor(runtime, spec) {
    super(runtime, spec);
    this.#heldFrom = new Int32Array(spec.batch);
    this.#storage = new Storage(runtime, spec, spec.batch, spec.globalKeys + spec.window);
  }

  /** @override */
  get storage() {
    return this.#storage;
  }

  /** @override @returns {import('./rows.js').KeyMap} */
  get map() {
    const { window, globalKeys } = this.spec;
    const heldFrom = this.#heldFrom;
    return { pages: null, pagesPerRow: 0, pageSize: 0, ringBegin: globalKeys, ringSize: window, heldFrom };
  }

  /**
   * @override
   * @param {number} b
   * @param {number} position
   * @param {number} count
   */
  runs(b, position, count) {
    const { window, globalKeys } = this.spec;
    const end = position + count;
    /** @type {Run[]} */
    const runs = [];
    const add = (/** @type {number} */ row, /** @type {number} */ from, /** @type {number} */ to) => {
      if (from < to) runs.push({ outer: b, row, count: to - from, skip: from - position });
    };
    add(position, position, Math.min(end, globalKeys));
    const first = Math.max(position, globalKeys, end - window);
    if (first >= end) return runs;
    const place = (first - globalKeys) % window;
    const seam = Math.min(end, first + window - place);
    add(globalKeys + place, first, seam);
    add(globalKeys, seam, end);
    return runs;
  }

  /** @override @param {Int32Array} counts */
  commit(counts) {
    super.commit(counts);
    for (let b = 0; b < counts.length; b++) {
      this.#heldFrom[b] = Math.max(this.#heldFrom[b], this.lengths[b] - this.spec.window);
    }
  }

  /** What the ring has lost does not come back. @override @param {number} b @param {number} length */
  shorten(b, length) {
    super.shorten(b, length);
    this.#heldFrom[b] = Math.min(this.#heldFrom[b], length);
  }
}
