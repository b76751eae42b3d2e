// How large slices are made: by the share of the call, and no longer than the last ones let expect.

/** Milliseconds of a slice: short enough that an abort, or a page that computes on its own thread, never waits for long. */
const sliceTime = 12;

/** Multiply-adds below which a slice is not worth its message: some tenths of a millisecond with SIMD, some milliseconds without. */
const leastCost = 8e6;

/** Parts that the rest of a call is cut into for each thread, so that all end at about the same time. */
const partsPerThread = 3;

/** Slices that a worker has at a time: one that it computes, and one so that it need not wait for the next. */
export const slicesAhead = 2;

/** Milliseconds that the coarsest clocks do not tell from none. */
const clockStep = 0.125;

export class Pace {
  /** Multiply-adds in a millisecond; a low guess, as the first slices may be short but not long. */
  #rate = 2e6;

  /** Cost up to which parts are put together. */
  grain = leastCost;

  /**
   * @param {number} cost of a slice
   * @param {number} milliseconds that it took, 0 where the clock is too coarse
   */
  record(cost, milliseconds) {
    const seen = cost / Math.max(milliseconds, clockStep);
    // One slice that waited for another program, or whose clock stood still, is no new speed.
    const bounded = Math.min(this.#rate * 4, Math.max(this.#rate / 2, seen));
    this.#rate = bounded > this.#rate ? bounded : (this.#rate + bounded) / 2;
  }

  /**
   * Cost of the next slice.
   * @param {number} left cost of what is left of the call
   * @param {number} threads that share it
   */
  target(left, threads) {
    return Math.min(this.#rate * sliceTime, Math.max(leastCost, left / (threads * partsPerThread)));
  }

  /**
   * Threads that a call can be shared by.
   * @param {number} cost of the call
   */
  parts(cost) {
    return Math.ceil(cost / leastCost);
  }
}
