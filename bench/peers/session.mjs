/** One contestant at work on one shape: prepared, checked, then timed in turns. Runs in Node and in the browser. */

import { contestantCalled } from './contestants.mjs';
import { inputsOf, largestErrorOf } from './inputs.mjs';
import { shapeCalled } from './shapes.mjs';

/** No more calls than that in a turn. */
const MOST_CALLS = 400;

export class Session {
  #importLibrary;
  /** @type {import('./contestants.mjs').Task | undefined} */
  #task;

  /** @param {import('./contestants.mjs').ImportLibrary} importLibrary */
  constructor(importLibrary) {
    this.#importLibrary = importLibrary;
  }

  /**
   * @param {string} contestant
   * @param {string} nickname of the shape
   * @param {number} warmUpMs at least so long it runs before any turn
   * @returns {Promise<{ error: number, firstMs: number }>} largest absolute error of the checked rows; time of the first call
   */
  async prepare(contestant, nickname, warmUpMs) {
    const c = shapeCalled(nickname);
    const inputs = inputsOf(c);
    const task = (this.#task = await contestantCalled(contestant).prepare(this.#importLibrary, c, inputs));
    const start = performance.now();
    const raw = await task.run();
    const firstMs = performance.now() - start;
    const error = largestErrorOf(c, inputs, task.result(raw));
    const warm = performance.now();
    while (firstMs + performance.now() - warm < warmUpMs) await task.run();
    return { error, firstMs };
  }

  /**
   * @param {number} leastMs
   * @returns {Promise<number[]>} ms of each call
   */
  async turn(leastMs) {
    const task = this.#task;
    if (!task) throw new Error('prepare() comes first');
    const times = [];
    const start = performance.now();
    do {
      const before = performance.now();
      await task.run();
      times.push(performance.now() - before);
    } while (performance.now() - start < leastMs && times.length < MOST_CALLS);
    return times;
  }
}
