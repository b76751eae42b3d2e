// The sharded cache as callers have it: what KVCache is, with promises.

import { disposeSymbol } from '../dispose.js';
import { disposedError } from '../errors.js';
import { readTokens } from './append.js';
import { readCacheOptions } from './cache-options.js';
import { readIndices, readLength } from './evict.js';
import { ShardGroup } from './shard-group.js';
import { readAttend } from './sharded-attend.js';

/**
 * @typedef {import('../tensor.js').SdpaTensor} SdpaTensor
 * @typedef {import('../tensor.js').TensorLike} TensorLike
 * @typedef {import('./append.js').AppendOptions} AppendOptions
 */

/** Options of attend() of a sharded cache. @typedef {import('./kv-cache.js').AttendOptions & import('../attention-async.js').AsyncOptions} ShardedAttendOptions */

/**
 * Keys and values of the tokens so far, each worker with some of the heads. Made by `sdpa.createShardedKVCache()`. What is called first
 * is done first, also where nothing is awaited, and inputs are copied when the method is called. The properties say what the calls have
 * done that have ended. Each call either does what it says or rejects and changes nothing, on no worker; where a worker is lost, its
 * tokens are, and the call and all later ones reject with the code `disposed`.
 */
export class ShardedKVCache {
  #runtime;
  /** Not to be forgotten before the cache is. */
  #owner;
  /** @type {ShardGroup} */
  #group;

  /**
   * @param {object} owner the instance
   * @param {import('../runtime.js').Runtime} runtime
   * @param {ShardGroup} group
   * @internal
   */
  constructor(owner, runtime, group) {
    this.#runtime = runtime;
    this.#owner = owner;
    this.#group = group;
    group.keepers.watch(this, group);
  }

  #live() {
    if (this.disposed) throw disposedError('this KV cache', !this.#group.closed);
    this.#group.check();
    return this.#group;
  }

  /**
   * @template T
   * @param {(group: ShardGroup) => Promise<T>} work
   * @returns {Promise<T>}
   */
  async #run(work) {
    const group = this.#live();
    // A cache that nobody else has is not to be forgotten while a call runs.
    const call = { cache: this };
    group.calls.add(call);
    try {
      return await work(group);
    } finally {
      group.calls.delete(call);
    }
  }

  /**
   * Resolves once the memory has been taken. Nobody has to await it: the other calls do.
   * @returns {Promise<void>} rejects with `out-of-memory` where it could not be; so does every other call then
   */
  get ready() {
    const ready = this.#run((group) => group.created);
    // Who looks and does not await hears of it from the other calls, not as an unhandled rejection.
    ready.catch(() => {});
    return ready;
  }

  /**
   * KVCache's append().
   * @param {TensorLike | SdpaTensor} key (batch, numKvHeads, n, headDim)
   * @param {TensorLike | SdpaTensor} value (batch, numKvHeads, n, headDimV)
   * @param {AppendOptions} [options]
   * @returns {Promise<void>} rejects with the errors of KVCache's append()
   */
  append(key, value, options) {
    return this.#run((group) =>
      group.append(readTokens(this.#runtime, group.spec, key, value, options, () => void this.#live())),
    );
  }

  /**
   * KVCache's attend(), long ones in slices.
   * @template {ShardedAttendOptions} [O=ShardedAttendOptions]
   * @param {TensorLike | SdpaTensor} query (batch, Hq, L, headDim), with Hq a multiple of numKvHeads
   * @param {O} [options] those of KVCache's attend(), `signal` and `onProgress`. `out` is written while the call runs
   * @returns {Promise<import('../attention.js').AttentionResult<O>>} rejects with the errors of KVCache's attend(), with the signal's
   *   reason, or with what onProgress throws; the cache stays usable
   */
  attend(query, options) {
    return /** @type {any} */ (
      this.#run((group) =>
        group.attend(readAttend(this.#runtime, group, query, options, this.#owner, () => void this.#live())),
      )
    );
  }

  /**
   * KVCache's truncate().
   * @param {number | Int32Array | readonly number[]} length tokens that stay
   * @returns {Promise<void>} rejects with `option` where there are not so many
   */
  truncate(length) {
    return this.#run((group) => {
      const wanted = readLength(length);
      this.#live();
      return group.truncate(wanted);
    });
  }

  /**
   * KVCache's reset().
   * @returns {Promise<void>}
   */
  reset() {
    return this.#run((group) => group.truncate(0));
  }

  /**
   * KVCache's evict().
   * @param {Int32Array | readonly number[]} indices positions, in any order
   * @returns {Promise<void>} rejects with the errors of KVCache's evict()
   */
  evict(indices) {
    return this.#run((group) => {
      const gone = readIndices(group.spec, indices);
      this.#live();
      return group.evict(gone);
    });
  }

  /**
   * KVCache's fork(): a cache with the same tokens on the same workers. Only of a cache with `pageSize`.
   * @returns {Promise<ShardedKVCache>} to be disposed of by itself
   */
  fork() {
    return this.#run(async (group) => new ShardedKVCache(this.#owner, this.#runtime, await group.fork()));
  }

  /** Tokens of the longest row, those that a ring has lost included. */
  get length() {
    return this.#live().rows.longest;
  }

  /** Tokens of each row, those that a ring has lost included: a copy, (batch). */
  get lengths() {
    return this.#live().rows.lengths.slice();
  }

  /** Tokens of a row that the memory taken so far can hold; of a paged cache those of the whole pool. */
  get capacity() {
    return this.#live().memory.capacity;
  }

  /** Bytes of wasm memory, of all workers together; of a paged cache those of the pool, which it shares with its forks. 0 before `ready`. */
  get byteLength() {
    return this.#live().memory.byteLength;
  }

  /** Pieces that the heads are cut into: as many as the instance's `threads`, but no more than there are heads. */
  get shards() {
    return this.#live().shards.length;
  }

  /** How many of them are kept by workers; the others are on the caller's thread. 0 before `ready`. */
  get threads() {
    return this.#live().shards.filter(({ keeper }) => keeper.onWorker).length;
  }

  /** Whether dispose() has been called. */
  get disposed() {
    return this.#group.closed || this.#runtime.disposed;
  }

  /** Frees the memory; calls that run or wait reject with the error `disposed`. Calling it again does nothing. */
  dispose() {
    this.#group.drop();
  }

  /** dispose(), for `using`. */
  [disposeSymbol]() {
    this.dispose();
  }
}

/**
 * @param {import('../runtime.js').Runtime} runtime
 * @param {import('../pool/keepers.js').Keepers} keepers
 * @param {object} owner the instance
 * @param {unknown} options see KVCacheOptions
 * @returns {ShardedKVCache}
 */
export function createShardedKVCache(runtime, keepers, owner, options) {
  void runtime.exports; // throws once the instance is disposed of
  const spec = readCacheOptions(options, 'createShardedKVCache');
  void runtime.exports; // and where the options' getters have done so
  return new ShardedKVCache(owner, runtime, ShardGroup.create(runtime, keepers, owner, spec));
}
