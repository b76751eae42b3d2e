// One asynchronous call: what is left of it, and how it ends.

/**
 * @typedef {import('../options.js').AttentionCall} AttentionCall
 * @typedef {import('./deal.js').Deal} Deal
 * @typedef {import('./deal.js').Slice} Slice
 */

/** Query rows (B·Hq·L) that are done, of all. @typedef {{ done: number, total: number }} Progress */

/**
 * What slices are made of.
 * @typedef {object} JobInputs
 * @property {(unit: import('./deal.js').Unit, own: boolean) => import('./slice-runner.js').Keys} keys
 * @property {(slice: Slice, own: boolean) => import('./slice-runner.js').SliceWork} work
 * @property {(own: boolean) => import('../options.js').Blocks | null} blocks
 * @property {() => void} release
 */

/**
 * @template Results what a slice gives
 * @template T what the call gives
 */
export class Job {
  #onProgress;
  #done = 0;
  /** @type {(value: T) => void} */
  #resolve = () => {};
  /** @type {(error: unknown) => void} */
  #reject = () => {};

  /**
   * @param {{ inputs: JobInputs, deal: Deal, total: number, onProgress: ((progress: Progress) => void) | undefined, owner: object }} settings
   *   `total` query rows
   */
  constructor({ inputs, deal, total, onProgress, owner }) {
    this.inputs = inputs;
    this.deal = deal;
    /** Query rows of the call. */
    this.total = total;
    this.#onProgress = onProgress;
    /** Whether the promise is settled. */
    this.settled = false;
    /** Whose call it is: not to be forgotten before it ends. */
    this.owner = owner;
    /** @type {Promise<T>} */
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /**
   * Puts a slice's results where they belong.
   * @abstract
   * @param {Slice} _slice
   * @param {Results} _results
   * @returns {number} query rows that are done by it
   */
  put(_slice, _results) {
    throw new Error('not implemented');
  }

  /**
   * What the call gives once all slices have been put.
   * @abstract
   * @returns {T}
   */
  result() {
    throw new Error('not implemented');
  }

  /**
   * Takes a slice's results; the last one ends the call.
   * @param {Slice} slice
   * @param {Results} results
   */
  finish(slice, results) {
    if (this.settled) return;
    try {
      this.#done += this.put(slice, results);
      this.#onProgress?.({ done: this.#done, total: this.total });
      // The callback may have ended the call itself.
      if (this.settled || this.#done < this.total) return;
      const result = this.result();
      this.#settle(() => this.#resolve(result));
    } catch (error) {
      this.fail(error);
    }
  }

  /**
   * Ends the call with an error; does nothing where it has ended.
   * @param {unknown} error
   */
  fail(error) {
    this.#settle(() => this.#reject(error));
  }

  /** @param {() => void} end */
  #settle(end) {
    if (this.settled) return;
    this.settled = true;
    this.inputs.release();
    end();
  }
}

/**
 * Query rows of a call.
 * @param {AttentionCall} call
 */
export const rowsOf = ({ batch, numHeads, seqlenQ }) => batch * numHeads * seqlenQ;
