// How large slices are made: by what the last ones took.

/** Milliseconds of a slice: short enough that an abort, or a page that computes on its own thread, never waits for long. */
const sliceTime = 12;

/** Milliseconds below which a slice is not worth its message. */
const leastTime = 1;

/** Parts that the rest of a call is cut into for each thread, so that all end at about the same time. */
const partsPerThread = 3;

export class Pace {
  /** Multiply-adds in a millisecond; a low guess, as the first slices may be short but not long. */
  #rate = 2e6;

  /**
   * @param {number} cost of a slice
   * @param {number} milliseconds that it took, 0 where the clock is too coarse
   */
  record(cost, milliseconds) {
    const seen = cost / Math.max(milliseconds, leastTime / 8);
    // One slice that waited for another program, or whose clock stood still, is no new speed.
    const bounded = Math.min(this.#rate * 4, Math.max(this.#rate / 2, seen));
    this.#rate = bounded > this.#rate ? bounded : (this.#rate + bounded) / 2;
  }

  /** Cost below which parts are put together. */
  get grain() {
    return this.#rate * leastTime;
  }

  /**
   * Cost of the next slice.
   * @param {number} left cost of what is left of the call
   * @param {number} threads that share it
   */
  target(left, threads) {
    const share = left / (threads * partsPerThread);
    return Math.min(this.#rate * sliceTime, Math.max(this.grain, share));
  }

  /**
   * Threads that a call can be shared by.
   * @param {number} cost of the call
   */
  parts(cost) {
    return Math.ceil(cost / this.grain);
  }
}
