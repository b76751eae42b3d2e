/** Medians of calls on arrays and on workers, as the results file has them. */

import { availableParallelism } from 'node:os';
import { ARRAYS_CASE, caseName } from './cases.mjs';
import { otherLoad } from './pace.mjs';
import { median } from './statistics.mjs';

/** @typedef {import('./cases.mjs').Case} Case */
/** @typedef {import('./process.mjs').BenchProcess} BenchProcess */
/** @typedef {import('sdpa').Variant} Variant */

/** @typedef {{ variant: Variant, resident: number, arrays: number, ratio: number, otherLoad: number }} ArraysTiming ms a call; `ratio`: median of the turns' arrays / resident */

/** @typedef {{ variant: Variant, sync: number, one: number, two: number, ratio: number, otherLoad: number }} WorkersTiming ms of attention(), attentionAsync() on one worker and on two, or of attend() of caches; `ratio`: median of the turns' one / two */

/** @template T @typedef {{ name: string, nickname: string, timings: T[] }} CallResult */

/** @param {Case} c */
export const arraysName = (c) => caseName(c).replace('prefill', 'arrays');

/** @param {Case} c */
export const workersName = (c) => caseName(c).replace('prefill', 'workers').replace('decode', 'sharded');

/** @returns {string | undefined} why workers cannot be compared here */
export const noWorkers = () =>
  availableParallelism() < 2 ? 'two workers need two processors, and there is one' : undefined;

/**
 * @param {readonly BenchProcess[]} builds
 * @param {number} turns
 * @returns {Promise<CallResult<ArraysTiming>>}
 */
export async function measureArrays(builds, turns) {
  /** @type {ArraysTiming[]} */
  const timings = [];
  for (const build of builds) {
    const { turns: found, load } = await build.ask('arrays', turns);
    timings.push({
      variant: build.variant,
      resident: median(found.map(({ resident }) => resident)),
      arrays: median(found.map(({ arrays }) => arrays)),
      ratio: median(found.map(({ resident, arrays }) => arrays / resident)),
      otherLoad: otherLoad([load]),
    });
  }
  return { name: arraysName(ARRAYS_CASE), nickname: ARRAYS_CASE.nickname, timings };
}

/**
 * @param {Case} c
 * @param {readonly BenchProcess[]} builds
 * @param {number} turns
 * @returns {Promise<CallResult<WorkersTiming>>}
 */
export async function measureWorkers(c, builds, turns) {
  /** @type {WorkersTiming[]} */
  const timings = [];
  for (const build of builds) {
    const { turns: found, load } = await build.ask('workers', { name: caseName(c), turns });
    timings.push({
      variant: build.variant,
      sync: median(found.map(({ sync }) => sync)),
      one: median(found.map(({ one }) => one)),
      two: median(found.map(({ two }) => two)),
      ratio: median(found.map(({ one, two }) => one / two)),
      otherLoad: otherLoad([load]),
    });
  }
  return { name: workersName(c), nickname: c.nickname, timings };
}
