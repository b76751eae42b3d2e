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

/**
 * Spans of `count` places from `first` on, `step` apart.
 * @param {number} first
 * @param {number} count
 * @param {number} step
 * @returns {number[]}
 */
export function spaced(first, count, step) {
  if (step === 1) return [first, first + count];
  /** @type {number[]} */
  const spans = [];
  for (let k = 0; k < count; k++) spans.push(first + k * step, first + k * step + 1);
  return spans;
}

/**
 * Spans of the keys p - left·dilation, …, p - dilation, p, p + dilation, …, p + right·dilation of 0 ... end - 1.
 * @param {number} p
 * @param {number} left keys before the own position
 * @param {number} right keys behind it
 * @param {number} dilation
 * @param {number} end
 * @returns {number[]}
 */
export function near(p, left, right, dilation, end) {
  const before = Math.min(left, Math.floor(p / dilation));
  const behind = Math.min(right, Math.floor((end - 1 - p) / dilation));
  return spaced(p - before * dilation, before + 1 + behind, dilation);
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
