// The keepers of one instance, which all of its sharded caches share.

import { rangeError } from '../errors.js';
import { Buffers } from './buffers.js';
import { findWays, mostThreads } from './hosts.js';
import { Keeper } from './keeper.js';

/** What is let go once nobody has it any more. @typedef {{ drop(): void }} Forgettable */

export class Keepers {
  /** @type {number | 'auto'} */
  #threads;
  /** @type {Keeper[]} */
  #all = [];
  /** @type {FinalizationRegistry<Forgettable> | null} */
  #registry = null;
  /** Numbers that have been given to shards. */
  #numbers = 0;
  /** Ways of starting workers that have not failed. @type {import('./hosts.js').Way[] | null} */
  ways = null;
  /** Where copies of inputs come from. */
  buffers = new Buffers();

  /**
   * @param {import('../runtime.js').Runtime} runtime
   * @param {import('./station.js').Program} program
   * @param {number | 'auto'} threads
   */
  constructor(runtime, program, threads) {
    this.runtime = runtime;
    this.program = program;
    this.#threads = threads;
  }

  /** A number that no other shard has. */
  get number() {
    return this.#numbers++;
  }

  /**
   * Keepers for the shards of a cache: those that have the fewest, and new ones while there may be more.
   * @param {object} owner the instance; once it is forgotten, the workers end
   * @param {number} most
   * @returns {Keeper[]} one or more
   */
  choose(owner, most) {
    const threads = (this.#threads = mostThreads(this.#threads));
    if (!this.ways) {
      this.ways = threads > 0 ? findWays(this.program.workerText) : [];
      this.watch(owner, { drop: () => this.close(rangeError('disposed', 'the sdpa instance has been forgotten')) });
    }
    const { length: ways } = this.ways;
    this.#all = this.#all.filter((keeper) => !keeper.lost);
    // Where a worker did not start in time, the next cache tries again.
    const usable = this.#all.filter((keeper) => !keeper.onThisThread || ways === 0);
    usable.sort((a, b) => a.shards - b.shards);
    const count = Math.max(1, Math.min(most, threads));
    const chosen = usable.filter((keeper) => keeper.shards === 0).slice(0, count);
    const busy = usable.filter((keeper) => keeper.shards > 0);
    for (let more = Math.max(1, threads) - usable.length; chosen.length < count && more > 0; more--) {
      const keeper = new Keeper(this);
      this.#all.push(keeper);
      chosen.push(keeper);
    }
    return [...chosen, ...busy.slice(0, count - chosen.length)];
  }

  /**
   * Lets go of `held`, which must not lead to `owner`, once `owner` has been forgotten.
   * @param {object} owner
   * @param {Forgettable} held
   */
  watch(owner, held) {
    if (typeof FinalizationRegistry !== 'function') return;
    this.#registry ??= new FinalizationRegistry((forgotten) => forgotten.drop());
    this.#registry.register(owner, held);
  }

  /**
   * Ends the workers and all that they do.
   * @param {Error} error that it ends with
   */
  close(error) {
    for (const keeper of this.#all) keeper.close(error);
    this.#all = [];
    this.buffers.clear();
  }
}
