// Lists of spans, [from, to, from, to, …] in ascending order of `from`, and tokens that see all and are seen by all.

import { wholeNumbers } from './arguments.js';

/** @typedef {{ add(from: number, to: number): void }} Spans */

/**
 * Adds the spans of two lists in ascending order, cut off at `end`.
 * @param {Spans} spans
 * @param {readonly number[]} a
 * @param {readonly number[]} b
 * @param {number} end
 */
export function addBoth(spans, a, b, end) {
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    const isA = j >= b.length || (i < a.length && a[i] <= b[j]);
    const list = isA ? a : b;
    const k = isA ? i : j;
    if (list[k] >= end) return;
    spans.add(list[k], Math.min(list[k + 1], end));
    if (isA) i += 2;
    else j += 2;
  }
}

/** Tokens that see all and are seen by all. */
export class GlobalTokens {
  #isGlobal;
  /** Runs of neighbours. @type {number[]} */
  spans = [];

  /**
   * @param {string} name of the option
   * @param {unknown} given indices; undefined = none
   * @param {number} size tokens
   */
  constructor(name, given, size) {
    this.#isGlobal = new Uint8Array(size);
    const tokens = wholeNumbers(name, given ?? [], 0, size - 1).sort();
    for (const token of tokens) {
      if (this.#isGlobal[token]) continue;
      this.#isGlobal[token] = 1;
      const last = this.spans.length - 1;
      if (last > 0 && this.spans[last] === token) this.spans[last]++;
      else this.spans.push(token, token + 1);
    }
  }

  /** @param {number} token */
  has(token) {
    return this.#isGlobal[token] === 1;
  }
}
