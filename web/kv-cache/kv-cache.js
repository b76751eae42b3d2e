// The cache as callers have it: keys and values of the tokens so far, kept in wasm memory.

import { disposeSymbol } from '../dispose.js';
import { disposedError, rangeError } from '../errors.js';
import { append } from './append.js';
import { attend } from './attend.js';
import { checkFork } from './cache-options.js';
import { evict, truncate } from './evict.js';

/**
 * @typedef {import('../options.js').AttentionOptions} AttentionOptions
 * @typedef {import('../tensor.js').SdpaTensor} SdpaTensor
 * @typedef {import('../tensor.js').TensorLike} TensorLike
 * @typedef {import('./append.js').AppendOptions} AppendOptions
 * @typedef {import('./paged-rows.js').PagedRows} PagedRows
 * @typedef {import('./rows.js').Rows} Rows
 */

/**
 * Options of attend(): those of attention() but for what the cache knows itself.
 * @typedef {import('../options.js').Without<AttentionOptions, 'align' | 'queryOffset' | 'kvLengths' | 'cuSeqlens'>} AttendOptions
 */

/**
 * What a cache is made of; null for anything else than a cache.
 * @type {(cache: any) => Rows | null}
 */
export let rowsOf;

/**
 * Keys and values of the tokens so far. Made by `sdpa.createKVCache()`. Each batch row has a length of its own; token j of a row stands at
 * position j. Each method either does what it says or throws and changes nothing.
 */
export class KVCache {
  /** Null once disposed of. @type {Rows | null} */
  #rows;
  /** Counts the changes. */
  #changes = 0;

  static {
    rowsOf = (cache) => (cache instanceof KVCache ? cache.#live() : null);
  }

  /**
   * @param {Rows} rows
   * @internal
   */
  constructor(rows) {
    this.#rows = rows;
  }

  #live() {
    if (!this.#rows || this.#rows.runtime.disposed) throw disposedError('this KV cache', this.#rows !== null);
    return this.#rows;
  }

  /**
   * Writes tokens behind the last ones of each row. float32, float16 and bfloat16 are taken and kept in the cache's type; of a ring the oldest
   * tokens beyond its window are lost.
   * @param {TensorLike | SdpaTensor} key (batch, numKvHeads, n, headDim); without batch where that is 1, and without heads too where both are
   * @param {TensorLike | SdpaTensor} value (batch, numKvHeads, n, headDimV)
   * @param {AppendOptions} [options]
   * @throws RangeError `shape` where the sizes are not the cache's, `capacity` where a fixed cache is full, `out-of-memory`, and `option`
   *   where an int8 cache is given NaN or Infinity
   */
  append(key, value, options) {
    append(this.#live(), key, value, options, () => this.#live());
    this.#changes++;
  }

  /**
   * attention() of the queries over the tokens of the cache, with the last query of each row at its last token: query i of a row of n
   * tokens stands at position n - L + i (n - queryLengths[b] + i where those are given), and sees the tokens up to its own unless
   * `causal: false`. Mask, bias, blockMask and segmentIds count keys by position, up to `length`; of a ring only what it still holds is
   * seen. `scores` has a column for each position, at every stage -Infinity (as a weight 0) where the row has no such token or has lost
   * it. A row without tokens gives zeros and lse -Infinity.
   * @template {AttendOptions} [O={}]
   * @param {TensorLike | SdpaTensor} query (batch, Hq, L, headDim), with Hq a multiple of numKvHeads
   * @param {O} [options] those of attention() but align, queryOffset, kvLengths and cuSeqlens, which the cache sets itself
   * @returns {import('../attention.js').AttentionResult<O>}
   */
  attend(query, options) {
    const changes = this.#changes;
    const unchanged = () => {
      this.#live();
      if (changes !== this.#changes)
        throw rangeError('option', 'the cache was changed while the arguments of attend were read');
    };
    return /** @type {any} */ (attend(this.#live(), query, options, unchanged));
  }

  /**
   * Forgets tokens at the end. What a ring has lost does not come back.
   * @param {number | Int32Array | readonly number[]} length tokens that stay: at most so many of each row, or (batch) as many of each
   * @throws RangeError `option` where there are not so many
   */
  truncate(length) {
    truncate(this.#live(), length, () => void this.#live());
    this.#changes++;
  }

  /** Forgets every token. The memory stays, and pages go back to their pool. */
  reset() {
    const rows = this.#live();
    for (let b = 0; b < rows.spec.batch; b++) rows.shorten(b, 0);
    this.#changes++;
  }

  /**
   * Takes tokens out of every row; the later ones move down and stand at the positions before. A row that is too short to have a
   * position is left as it is there.
   * @param {Int32Array | readonly number[]} indices positions, in any order
   * @throws RangeError `option` where a position is beyond the longest row, and for a cache with `window` or `rope`, whose tokens cannot
   *   change their positions; `capacity` or `out-of-memory` where shared pages have to be copied and cannot
   */
  evict(indices) {
    evict(this.#live(), indices, () => void this.#live());
    this.#changes++;
  }

  /**
   * A cache with the same tokens, which shares this one's pages until one of the two writes into them. Only of a cache with `pageSize`.
   * @returns {KVCache} to be disposed of by itself
   */
  fork() {
    const rows = this.#live();
    checkFork(rows.spec);
    return new KVCache(/** @type {PagedRows} */ (rows).fork());
  }

  /** Tokens of the longest row, those that a ring has lost included. */
  get length() {
    return this.#live().longest;
  }

  /** Tokens of each row, those that a ring has lost included: a copy, (batch). */
  get lengths() {
    return this.#live().lengths.slice();
  }

  /** Tokens of a row that the memory taken so far can hold; of a paged cache those of the whole pool, which one row could have. */
  get capacity() {
    return this.#live().capacity;
  }

  /** Bytes of wasm memory for keys, values and scales; of a paged cache those of the pool, which it shares with its forks. */
  get byteLength() {
    return this.#live().storage.byteLength;
  }

  /** Whether dispose() has been called. */
  get disposed() {
    return this.#rows === null || this.#rows.runtime.disposed;
  }

  /** Frees the memory; that of a pool when the last of its caches is disposed of. Calling it again does nothing. */
  dispose() {
    this.#rows?.dispose();
    this.#rows = null;
    this.#changes++;
  }

  /** dispose(), for `using`. */
  [disposeSymbol]() {
    this.dispose();
  }
}
