/**
 * Calls with the stack moved on by some words. The speed of a loop that keeps values on the stack depends on where they lie, by
 * a tenth and in rare places by a factor; one process has the same place for ever, so that its timings would say nothing of others'.
 * @template T
 * @param {number} words
 * @param {() => T} call
 * @returns {T}
 */
export function atDepth(words, call) {
  // More arguments than parameters are pushed all the same.
  return Reflect.apply(call, undefined, Array(words).fill(0));
}
