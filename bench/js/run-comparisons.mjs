/** Runs the comparisons that are asked for, and prints each as it is there. */

import { comparisonName, SETS } from './comparisons.mjs';
import { measureComparisons } from './measure-comparisons.mjs';
import { comparisonText } from './text-comparisons.mjs';

/** @typedef {import('./process.mjs').BenchProcess} BenchProcess */

/** @type {readonly string[]} */
export const COMPARISON_NAMES = SETS.flatMap((set) => set.kinds.map((kind) => comparisonName(set, kind)));

/**
 * @param {readonly BenchProcess[]} builds
 * @param {number} turns
 * @param {RegExp} filter
 * @param {(text: string) => void} print
 * @returns {Promise<import('./measure-comparisons.mjs').Comparisons | undefined>} undefined where none is asked for
 */
export async function runComparisons(builds, turns, filter, print) {
  // Without SIMD nobody is in a hurry, and its calls take long.
  const fast = builds.filter(({ variant }) => variant !== 'scalar');
  if (!fast.length) return undefined;
  /** @type {import('./measure-comparisons.mjs').Comparisons | undefined} */
  let found;
  for (const set of SETS) {
    const kinds = set.kinds.filter((kind) => filter.test(comparisonName(set, kind)));
    if (!kinds.length) continue;
    const results = await measureComparisons(set, kinds, fast, turns);
    found = { ...found, [set.group]: [...(found?.[set.group] ?? []), ...results] };
    for (const result of results) print(comparisonText(result));
  }
  return found;
}
