// Pages of a fixed number of tokens, which several caches share. A page counts the batch rows that use it, and goes back when the last
// one lets go.

import { rangeError } from '../errors.js';
import { noStep } from './rows.js';
import { Storage } from './storage.js';

/**
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('./cache-options.js').CacheSpec} CacheSpec
 */

/** The pages of each batch row of one cache, in order. @typedef {{ pages: number[][] | null }} PageTable */

/** More than a model's caches have; their list is an array of JavaScript's own. */
const mostPages = 2 ** 24;

/**
 * @param {number} pages
 * @param {number} pageSize
 */
function checkPages(pages, pageSize) {
  if (pages <= mostPages) return;
  throw rangeError(
    'capacity',
    `the cache needs ${pages} pages of pageSize ${pageSize}, and at most ${mostPages} are kept: make the pages larger`,
  );
}

export class PagePool {
  #runtime;
  #spec;
  /** @type {Storage} */
  #storage;
  /** How many batch rows use each page. @type {number[]} */
  #users = [];
  /** Pages that nobody uses; the last one is taken first. @type {number[]} */
  #free = [];
  /** Tables of the caches that have not been disposed of. */
  #tables = 0;
  /** Lets go of the pages of caches that were forgotten. @type {FinalizationRegistry<PageTable> | null} */
  #registry;

  /** @param {Runtime} runtime @param {CacheSpec} spec */
  constructor(runtime, spec) {
    this.#runtime = runtime;
    this.#spec = spec;
    const pages = spec.batch * Math.ceil(spec.capacity / spec.pageSize);
    checkPages(pages, spec.pageSize);
    this.#storage = new Storage(runtime, spec, pages, spec.pageSize);
    this.#add(pages);
    this.#registry =
      typeof FinalizationRegistry === 'function' ? new FinalizationRegistry((table) => this.leave(table)) : null;
  }

  get storage() {
    return this.#storage;
  }

  /** Pages, used or not. */
  get size() {
    return this.#users.length;
  }

  /** Pages that nobody uses. */
  get free() {
    return this.#free.length;
  }

  /** @param {number} size pages that there are from now on */
  #add(size) {
    for (let page = size - 1; page >= this.#users.length; page--) this.#free.push(page);
    while (this.#users.length < size) this.#users.push(0);
  }

  /**
   * Makes sure of so many pages for take(), doubling the pool until it has them.
   * @param {number} count
   * @returns {import('./rows.js').Step} to be undone only when nobody has a page any more that came with it
   * @throws RangeError `out-of-memory`, with nothing changed
   */
  reserve(count) {
    if (count <= this.#free.length) return noStep;
    const old = this.#storage;
    const before = this.size;
    const needed = before - this.#free.length + count;
    let size = before;
    while (size < needed) size *= 2;
    checkPages(size, this.#spec.pageSize);
    const fresh = new Storage(this.#runtime, this.#spec, size, this.#spec.pageSize);
    for (let page = 0; page < before; page++) {
      if (this.#users[page] > 0) fresh.copyRows(old, page, 0, page, 0, this.#spec.pageSize);
    }
    this.#storage = fresh;
    this.#add(size);
    return {
      settle: () => old.release(),
      undo: () => {
        this.#storage = old;
        this.#users.length = before;
        this.#free = this.#free.filter((page) => page < before);
        fresh.release();
      },
    };
  }

  /** @returns {number} a page that reserve() has made sure of, with one user */
  take() {
    const page = /** @type {number} */ (this.#free.pop());
    this.#users[page] = 1;
    return page;
  }

  /** @param {number} page gets one more user */
  share(page) {
    this.#users[page]++;
  }

  /** @param {number} page */
  isShared(page) {
    return this.#users[page] > 1;
  }

  /** @param {number} page loses a user */
  letGo(page) {
    this.#users[page]--;
    if (this.#users[page] === 0) this.#free.push(page);
  }

  /**
   * @param {number} page
   * @returns {number} another one that holds the same, taken out of what reserve() has made sure of
   */
  copy(page) {
    const own = this.take();
    this.#storage.copyRows(this.#storage, page, 0, own, 0, this.#spec.pageSize);
    return own;
  }

  /**
   * A cache uses the pool from now on, until leave() or until it is forgotten.
   * @param {object} owner
   * @param {PageTable} table which must not lead to the owner
   */
  join(owner, table) {
    this.#tables++;
    this.#registry?.register(owner, table, table);
  }

  /** @param {PageTable} table the second time nothing happens */
  leave(table) {
    if (!table.pages) return;
    this.#registry?.unregister(table);
    for (const row of table.pages) for (const page of row) this.letGo(page);
    table.pages = null;
    if (--this.#tables === 0) this.#storage.release();
  }
}
