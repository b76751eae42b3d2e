/** What is timed together within one build's process, and what is known of each call. */

import { Problem } from './problem.mjs';

/** @typedef {import('sdpa').Sdpa} Sdpa */

/**
 * @typedef {object} Facts of one call
 * @property {number} error largest error of what was checked: absolute, of gradients and pooled weights as a share of the largest
 * @property {number} [share] of the plain call's cells, where they are fewer: the share of its time to hope for
 * @property {ReturnType<Sdpa['masks']['stats']>} [tiles] of a block mask
 * @property {number} [held] bytes of a cache
 * @property {number} [bytes] that have to move at the least
 * @property {number} [flops] multiplications and additions, where they are not those of the case
 * @property {number} [extra] bytes that were allocated at once beside inputs and the plain call's result
 */

/**
 * @typedef {object} Subject
 * @property {Record<string, () => void>} calls by kind; those that take longest last
 * @property {Record<string, Facts>} facts
 * @property {boolean} [slow] whether a call takes seconds
 * @property {() => void} dispose
 */

/**
 * Checks each call's result.
 * @param {Sdpa} sdpa
 * @param {import('./cases.mjs').Case} c of the plain call
 * @param {({ kind: string, problem: Problem } & Partial<Facts>)[]} others
 * @returns {Subject} the others and `plain`
 */
export function besidePlain(sdpa, c, others) {
  const all = [...others, { kind: 'plain', problem: new Problem(sdpa, c) }];
  return {
    calls: Object.fromEntries(all.map(({ kind, problem }) => [kind, () => problem.run()])),
    facts: Object.fromEntries(
      all.map(({ kind, problem, ...known }) => {
        problem.run();
        return [kind, { ...known, error: problem.check() }];
      }),
    ),
    dispose: () => all.forEach(({ problem }) => problem.dispose()),
  };
}
