// The shards of one cache, seen from the caller's thread: what is done on all of them together, in order, and wholly or not at all.

import { rangeError } from '../errors.js';
import { checkFork } from './cache-options.js';
import { checkIndices, lengthsAfter, lengthsWithout } from './evict.js';
import { cutHeads } from './cut-heads.js';
import { firstCapacity } from './make-rows.js';
import { Rows } from './rows.js';
import { beginAttend, sendSlices } from './sharded-attend.js';

/**
 * @typedef {import('../pool/keeper.js').Keeper} Keeper
 * @typedef {import('../pool/keepers.js').Keepers} Keepers
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('./cache-options.js').CacheSpec} CacheSpec
 * @typedef {import('./shard-store.js').ShardMemory} ShardMemory
 * @typedef {import('./shard-store.js').ShardOrder} ShardOrder
 */

/** Key heads first … first + heads - 1, which `keeper` has under `number`. @typedef {{ keeper: Keeper, number: number, first: number, heads: number }} Shard */

/** What a cache shares with its forks: the last change that took memory, and the memory of all of them. @typedef {{ change: Promise<unknown>, memory: ShardMemory }} Family */

export class ShardGroup {
  #runtime;
  #family;
  /** What has been asked for last. @type {Promise<unknown>} */
  #turn = Promise.resolve();
  /** Why nothing can be done any more. @type {Error | null} */
  #error = null;
  /** Ways to end what has not ended. @type {Set<(error: Error) => void>} */
  #open = new Set();

  /**
   * @param {Runtime} runtime
   * @param {Keepers} keepers
   * @param {CacheSpec} spec
   * @param {Shard[]} shards
   * @param {Family} family
   */
  constructor(runtime, keepers, spec, shards, family) {
    this.#runtime = runtime;
    this.#family = family;
    this.keepers = keepers;
    this.spec = spec;
    this.shards = shards;
    /** How many tokens there are. */
    this.rows = new Rows(runtime, spec);
    /** Calls of the cache that have not ended. @type {Set<object>} */
    this.calls = new Set();
    /** Whether it has been disposed of. */
    this.closed = false;
    /** @type {Promise<void>} */
    this.created = Promise.resolve();
    for (const { keeper } of shards) keeper.shards++;
  }

  /**
   * @param {Runtime} runtime
   * @param {Keepers} keepers
   * @param {object} owner the instance
   * @param {CacheSpec} spec
   */
  static create(runtime, keepers, owner, spec) {
    const { numKvHeads } = spec;
    const chosen = keepers.choose(owner, numKvHeads);
    const cut = (/** @type {number} */ i) => Math.floor((i * numKvHeads) / chosen.length);
    const shards = chosen.map((keeper, i) => ({
      keeper,
      number: keepers.number,
      first: cut(i),
      heads: cut(i + 1) - cut(i),
    }));
    const memory = { capacity: firstCapacity(spec), byteLength: 0 };
    const group = new ShardGroup(runtime, keepers, spec, shards, { change: Promise.resolve(), memory });
    group.created = group.#inTurn(() => group.#create());
    group.created.catch(() => {}); // every later call says the same
    return group;
  }

  /** Capacity and bytes, of all shards together. */
  get memory() {
    return this.#family.memory;
  }

  /** @throws why nothing can be done any more */
  check() {
    const lost = this.#error ? undefined : this.shards.find(({ keeper }) => keeper.lost);
    if (lost) this.#fail(this.#lossOf(lost));
    if (this.#error) throw this.#error;
  }

  /** Frees the memory, and ends the calls that have not ended. */
  drop() {
    this.closed = true;
    this.#fail(rangeError('disposed', 'this KV cache has been disposed of while the call ran'));
  }

  /** @param {import('./append.js').Tokens} given copied before it returns */
  append({ keys, values, tokens, blhd, added }) {
    const { spec } = this;
    const copies = added.some((count) => count > 0)
      ? this.shards.map((shard) => {
          /** @param {import('../operand.js').Operand} operand @param {number} dim */
          const cut = (operand, dim) =>
            cutHeads(this.#runtime, operand, shard, { ...spec, tokens, dim, blhd }, this.keepers.buffers);
          return { key: cut(keys, spec.headDim), value: cut(values, spec.headDimV) };
        })
      : [];
    return this.#inTurn(async () => {
      if (copies.length === 0) return;
      await this.#agree(({ number }, i) => {
        const { key, value } = copies[i];
        return {
          order: { what: 'append', cache: number, key, value, tokens, added },
          transfer: [key.data.buffer, value.data.buffer],
        };
      });
      this.rows.commit(added);
    });
  }

  /** @param {number[]} gone positions, in order */
  evict(gone) {
    return this.#inTurn(async () => {
      const { lengths, longest } = this.rows;
      checkIndices(gone, longest);
      if (gone.length === 0) return;
      await this.#agree(({ number }) => ({ order: { what: 'evict', cache: number, gone }, transfer: [] }));
      lengths.set(lengthsWithout(lengths, gone));
    });
  }

  /** @param {number | Int32Array} wanted tokens that stay */
  truncate(wanted) {
    return this.#inTurn(async () => {
      const lengths = lengthsAfter(this.rows, wanted);
      for (const { keeper, number } of this.shards) {
        keeper.tell({ what: 'shorten', cache: number, lengths: lengths.slice() });
      }
      this.rows.lengths.set(lengths);
    });
  }

  /** @param {import('./sharded-attend.js').AttendGiven} given */
  async attend(given) {
    const { signal } = given;
    /** @type {import('../pool/attention-job.js').AttentionJob | null} */
    let job = null;
    let stop = (/** @type {unknown} */ _error) => {};
    const stopped = new Promise((_, reject) => (stop = reject));
    const fail = (/** @type {unknown} */ error) => {
      job?.fail(error);
      stop(error);
    };
    const abort = () => fail(signal?.reason);
    const turn = this.#inTurn(async () => {
      const begun = beginAttend(this.#runtime, this.rows, given);
      if ('result' in begun) return begun;
      job = begun.job;
      job.promise.catch(() => {}); // an abort may come before somebody waits for it
      // Later changes wait until the last slice is on its way.
      await Promise.all(this.shards.map((shard) => sendSlices(begun.job, given.call, shard, this.keepers.buffers)));
      return { result: begun.job.promise };
    });
    signal?.addEventListener('abort', abort);
    this.#open.add(fail);
    try {
      // In an object, so that the turn does not last until the result is there.
      const { result } = await Promise.race([turn, stopped]);
      return await Promise.race([result, stopped]);
    } catch (error) {
      fail(error);
      this.check();
      throw error;
    } finally {
      this.#open.delete(fail);
      signal?.removeEventListener('abort', abort);
    }
  }

  /** @returns {Promise<ShardGroup>} with the same tokens */
  async fork() {
    checkFork(this.spec);
    return this.#inTurn(async () => {
      const shards = this.shards.map((shard) => ({ ...shard, number: this.keepers.number }));
      shards.forEach(({ keeper, number }, i) =>
        keeper.tell({ what: 'fork', cache: number, from: this.shards[i].number }),
      );
      const group = new ShardGroup(this.#runtime, this.keepers, this.spec, shards, this.#family);
      group.rows.lengths.set(this.rows.lengths);
      return group;
    });
  }

  /**
   * Does something once everything has been done that was asked for before.
   * @template T
   * @param {() => Promise<T>} work
   * @returns {Promise<T>}
   */
  #inTurn(work) {
    return new Promise((resolve, reject) => {
      this.#open.add(reject);
      this.#turn = this.#turn.then(async () => {
        try {
          this.check();
          resolve(await work());
        } catch (error) {
          reject(error);
        }
        this.#open.delete(reject);
      });
    });
  }

  async #create() {
    const { rope } = this.spec;
    const answers = await Promise.allSettled(
      this.shards.map(({ keeper, number, first, heads }) => {
        const spec = { ...this.spec, numKvHeads: heads, firstHead: first, rope: rope && rope.angles };
        return keeper.ask({ what: 'create', cache: number, spec });
      }),
    );
    const failed = answers.find(isRejected);
    this.check();
    if (failed) {
      this.#fail(failed.reason);
      throw failed.reason;
    }
    this.#count(answers);
  }

  /**
   * Has each shard take memory for a change; where all of them could, all carry it out, and else none does.
   * @param {(shard: Shard, i: number) => { order: ShardOrder, transfer: ArrayBufferLike[] }} orderOf
   */
  #agree(orderOf) {
    // Changes of forks come one after the other, as they take pages from the same pool.
    const change = this.#family.change.then(() => this.#vote(orderOf));
    this.#family.change = change.catch(() => {});
    return change;
  }

  /** @param {(shard: Shard, i: number) => { order: ShardOrder, transfer: ArrayBufferLike[] }} orderOf */
  async #vote(orderOf) {
    this.check();
    const answers = await Promise.allSettled(
      this.shards.map((shard, i) => {
        const { order, transfer } = orderOf(shard, i);
        return shard.keeper.ask(order, transfer);
      }),
    );
    const failed = answers.find(isRejected);
    this.shards.forEach(({ keeper, number }, i) => {
      if (!isRejected(answers[i])) keeper.tell({ what: 'settle', cache: number, carryOut: !failed });
    });
    this.check();
    if (failed) throw failed.reason;
    this.#count(answers);
  }

  /** @param {PromiseSettledResult<ShardMemory>[]} answers */
  #count(answers) {
    const all = answers.map((answer) => /** @type {PromiseFulfilledResult<ShardMemory>} */ (answer).value);
    this.memory.capacity = all[0].capacity;
    this.memory.byteLength = all.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /** @param {Error} error */
  #fail(error) {
    if (this.#error) return;
    this.#error = error;
    for (const { keeper, number } of this.shards) {
      keeper.tell({ what: 'drop', cache: number });
      keeper.shards--;
    }
    for (const end of this.#open) end(error);
    this.#open.clear();
  }

  /** @param {Shard} shard whose keeper has been lost */
  #lossOf({ keeper, first, heads }) {
    const cause = /** @type {Error} */ (keeper.lost);
    // The instance was disposed of.
    if (this.#runtime.disposed) return cause;
    const which = heads > 1 ? `heads ${first} to ${first + heads - 1}` : `head ${first}`;
    return rangeError('disposed', `the tokens of ${which} of this KV cache are lost: ${cause.message}`, { cause });
  }
}

/** @param {PromiseSettledResult<unknown>} answer @returns {answer is PromiseRejectedResult} */
const isRejected = (answer) => answer.status === 'rejected';
