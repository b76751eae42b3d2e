/**
 * A loop for which the registers do not suffice keeps vectors on the stack, which the engine aligns to 8 bytes only: it is a tenth
 * slower in half of all places, and takes four times as long where such a vector lies across two pages, as in 2 % of the places in
 * which a process's stack may happen to begin.
 */

/** Places of the stack to time something at, odd and even ones, few of which can be slow at once. */
export const POSITIONS = 8;

/** Words, odd, that spread the positions over a page of 512. */
const STRIDE = 61;

/**
 * Calls with the stack moved on.
 * @template T
 * @param {number} position 0 … POSITIONS - 1, or more, which begins anew
 * @param {() => T} call
 * @returns {T}
 */
export function atPosition(position, call) {
  // More arguments than parameters are pushed all the same.
  return Reflect.apply(call, undefined, Array((position % POSITIONS) * STRIDE).fill(0));
}
