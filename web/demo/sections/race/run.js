// One race: each method alone, on an instance of its own, one after the other.

import { load } from 'sdpa';
import { Pace } from '../../parts/pace.js';
import { headDim, makeTask, recall } from './task.js';

export const seed = 1;

/**
 * @typedef {object} Outcome
 * @property {string} name
 * @property {number} milliseconds with the rests between the slices
 * @property {number} bytes at the most, of query, key, value and result too, in the library's memory
 * @property {number} recall
 */

/**
 * @param {readonly import('./methods.js').Method[]} methods
 * @param {number} length
 * @param {object} options
 * @param {AbortSignal} [options.signal]
 * @param {(name: string | null, fraction: number) => void} [options.onProgress] null: the task is being made
 * @param {(outcome: Outcome) => void} options.onOutcome
 */
export async function race(methods, length, { signal, onProgress, onOutcome }) {
  const pace = new Pace(signal);
  onProgress?.(null, 0);
  const task = await makeTask(length, seed, pace);
  const shape = [length, headDim];
  const matrix = (/** @type {Float32Array} */ data) => ({ data, shape });
  const inputs = { query: matrix(task.query), key: matrix(task.key), value: matrix(task.value), length };
  for (const method of methods) {
    onProgress?.(method.name, 0);
    // Its memory is then the method's alone.
    const sdpa = await pace.wait(load({ threads: 0 }));
    try {
      await pace.rest();
      await warm(method, sdpa, pace);
      const start = performance.now();
      const work = method.run(sdpa, inputs, {
        signal,
        pace,
        onProgress: (fraction) => onProgress?.(method.name, fraction),
      });
      const out = await pace.wait(work);
      const milliseconds = performance.now() - start;
      signal?.throwIfAborted();
      await pace.rest();
      onOutcome({ name: method.name, milliseconds, bytes: sdpa.memory().peak, recall: recall(task, out) });
    } finally {
      sdpa.dispose();
    }
  }
}

/** Engines compile when code runs first: a short input goes before. */
const warmLength = 512;

/**
 * @param {import('./methods.js').Method} method
 * @param {import('sdpa').Sdpa} sdpa
 * @param {Pace} pace
 */
async function warm(method, sdpa, pace) {
  const small = () => ({ data: new Float32Array(warmLength * headDim), shape: [warmLength, headDim] });
  await pace.wait(method.run(sdpa, { query: small(), key: small(), value: small(), length: warmLength }, { pace }));
  await pace.rest();
}
