// Work in slices: the page draws, and hears the Stop button, between two of them.

/** Milliseconds of work in one slice: about a frame, and a third of what browsers call a long task, because other programs run too. */
const budget = 15;

/**
 * Resolves in a task of its own, after what has been waiting. Not by scheduler.yield(): its continuations come before timers, input
 * and drawing in Chromium, and a chain of them holds all of these up.
 * @returns {Promise<void>}
 */
export function nextTask() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

/** The slices of one run. */
export class Pace {
  /** @type {AbortSignal | undefined} */
  #signal;
  #start = performance.now();
  /** Slices that have ended. */
  slices = 0;
  /** The longest of them, in milliseconds. */
  longest = 0;

  /** @param {AbortSignal} [signal] ends the run between two slices */
  constructor(signal) {
    this.#signal = signal;
  }

  /** Milliseconds left in this slice; none or fewer when it is time to rest. */
  get left() {
    return budget - (performance.now() - this.#start);
  }

  /**
   * Ends the slice.
   * @throws the signal's reason once it is aborted
   */
  async rest() {
    this.#end();
    await nextTask();
    this.#signal?.throwIfAborted();
    this.#start = performance.now();
  }

  /**
   * Waits for something that runs elsewhere; what follows is a new slice.
   * @template T
   * @param {Promise<T>} work
   * @returns {Promise<T>}
   */
  async wait(work) {
    this.#end();
    const result = await work;
    this.#start = performance.now();
    return result;
  }

  /**
   * Runs work in steps to its end, and rests between two of them where the slice is spent.
   * @template T
   * @param {Generator<void, T, void>} work
   * @returns {Promise<T>}
   */
  async follow(work) {
    for (;;) {
      const { done, value } = work.next();
      if (done) return value;
      if (this.left <= 0) await this.rest();
    }
  }

  #end() {
    this.longest = Math.max(this.longest, performance.now() - this.#start);
    this.slices++;
  }
}
