// Where shards of caches are kept: a worker of its own, so that no other call's failure ends it; or this thread, where no worker starts.

import { rangeError } from '../errors.js';
import { ShardStore } from '../kv-cache/shard-store.js';
import { messageOf } from '../source.js';
import { dropWay } from './hosts.js';
import { nextTask } from './next-task.js';
import { Pace } from './pace.js';
import { errorOf, Station } from './station.js';

/**
 * @typedef {import('../kv-cache/shard-store.js').ShardOrder} ShardOrder
 * @typedef {import('./hosts.js').Way} Way
 * @typedef {{ id: number | null, order: ShardOrder, transfer: ArrayBufferLike[] }} Letter
 */

/** Milliseconds that a worker has to start in: longer than a busy machine takes, as shards stay where they are once they are kept. */
const patience = 3000;

export class Keeper {
  /** Its workers keep it alive, and so the registry that ends them. */
  #home;
  /** @type {Station | null} */
  #station = null;
  /** @type {ShardStore | null} */
  #local = null;
  /** What has not been sent, or done on this thread, yet. @type {Letter[]} */
  #letters = [];
  /** Orders that wait for their answers. @type {Map<number, { resolve: (answer: any) => void, reject: (error: unknown) => void }>} */
  #asked = new Map();
  #next = 0;
  #busy = false;
  /** Whether a worker has started. */
  #started = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** Why it keeps nothing any more. @type {Error | null} */
  lost = null;
  /** Shards that it keeps. */
  shards = 0;
  /** How fast it computes. */
  pace = new Pace();

  /** @param {import('./keepers.js').Keepers} home */
  constructor(home) {
    this.#home = home;
    this.#start();
  }

  /** Whether a worker keeps the shards; false also while none has started. */
  get onWorker() {
    return this.#station?.ready ?? false;
  }

  /** Whether they are kept on this thread. */
  get onThisThread() {
    return this.#local !== null;
  }

  /**
   * @param {ShardOrder} order
   * @param {ArrayBufferLike[]} [transfer] buffers that are given away
   * @returns {Promise<any>} the answer; rejects with the order's error, or with `lost`
   */
  ask(order, transfer = []) {
    if (this.lost) return Promise.reject(this.lost);
    return new Promise((resolve, reject) => {
      const id = this.#next++;
      this.#asked.set(id, { resolve, reject });
      this.#post({ id, order, transfer });
      if (this.#asked.size === 1) this.#station?.mind(true);
    });
  }

  /** An order that nobody waits for and that cannot fail. @param {ShardOrder} order */
  tell(order) {
    if (!this.lost) this.#post({ id: null, order, transfer: [] });
  }

  /** @param {Error} error that orders end with from now on, and those that wait */
  close(error) {
    clearTimeout(this.#timer);
    this.#station?.stop();
    this.#station = this.#local = null;
    this.#letters = [];
    this.lost = error;
    for (const { reject } of this.#asked.values()) reject(error);
    this.#asked.clear();
  }

  /** Starts a worker in the first way that works, or none. */
  #start() {
    const { program } = this.#home;
    const ways = this.#home.ways ?? [];
    this.#station = null;
    while (ways.length > 0) {
      const [way] = ways;
      let lost = false;
      try {
        const station = new Station(way, program, {
          ready: () => this.#ready(),
          answer: (reply) => this.#hear(reply),
          lost: () => {
            lost = true;
            if (this.#station) this.#lose(way);
          },
        });
        if (!lost) {
          this.#station = station;
          station.mind(this.#asked.size > 0);
          this.#timer = setTimeout(() => this.#stay(), patience);
          return;
        }
      } catch {
        // Refused at once.
      }
      // A way that has worked before is not the reason: the host has enough workers.
      if (way.proven) break;
      dropWay(ways, way);
    }
    this.#stay();
  }

  #ready() {
    clearTimeout(this.#timer);
    this.#started = true;
    for (const letter of this.#letters) this.#send(letter);
    this.#letters = [];
  }

  /** Keeps the shards on this thread. */
  #stay() {
    this.#station?.stop();
    this.#station = null;
    this.#local = new ShardStore(this.#home.runtime);
    void this.#obey();
  }

  /** @param {Way} way */
  #lose(way) {
    clearTimeout(this.#timer);
    if (this.#started) {
      this.close(rangeError('disposed', 'a worker has been lost'));
      return;
    }
    // It has never kept anything.
    if (way.proven) this.#stay();
    else {
      dropWay(this.#home.ways, way);
      this.#start();
    }
  }

  /** @param {Letter} letter */
  #post(letter) {
    if (this.onWorker) this.#send(letter);
    else {
      this.#letters.push(letter);
      if (this.#local) void this.#obey();
    }
  }

  /** @param {Letter} letter */
  #send({ id, order, transfer }) {
    this.#station?.post({ type: 'shard', id, order }, transfer);
  }

  /** @param {Extract<import('./worker.js').Reply, { id: number }>} reply */
  #hear(reply) {
    if (reply.type === 'error' && !reply.error.code) {
      // A module that has trapped is not used again.
      this.close(rangeError('disposed', `a worker has failed: ${reply.error.message}`));
    } else if (reply.type === 'error') this.#answer(reply.id, ({ reject }) => reject(errorOf(reply.error)));
    else this.#answer(reply.id, ({ resolve }) => resolve(reply.results));
    if (this.#asked.size === 0) this.#station?.mind(false);
  }

  /**
   * @param {number} id
   * @param {(asked: { resolve: (answer: any) => void, reject: (error: unknown) => void }) => void} end
   */
  #answer(id, end) {
    const asked = this.#asked.get(id);
    this.#asked.delete(id);
    if (asked) end(asked);
  }

  /** Does on this thread what has been asked for, each order in a task of its own. */
  async #obey() {
    if (this.#busy) return;
    this.#busy = true;
    for (;;) {
      const [letter] = this.#letters;
      if (!letter) break;
      await nextTask();
      if (this.#letters[0] !== letter) continue;
      this.#letters.shift();
      const { id, order } = letter;
      try {
        const answer = this.#local?.obey(order);
        if (id !== null) this.#answer(id, ({ resolve }) => resolve(answer));
      } catch (error) {
        if (id === null) this.close(rangeError('disposed', `a shard has failed: ${messageOf(error)}`));
        else this.#answer(id, ({ reject }) => reject(error));
      }
    }
    this.#busy = false;
  }
}
