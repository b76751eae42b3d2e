/** From turns to the numbers of a table. */

import { flops } from '../js/cases.mjs';
import { median } from '../js/statistics.mjs';
import { NOISY } from './load.mjs';

/** @typedef {{ ms: number[], otherLoad: number | undefined }} Turn */

/** Quiet turns suffice from that number on; the others are then thrown away. */
const ENOUGH_QUIET = 3;

/**
 * Largest absolute error on unit normal data with which a result counts as right. The same for all: an order of magnitude
 * above what float32 gives.
 */
export const TOLERANCE = 1e-5;

/**
 * @typedef {object} Entry a contestant at a shape
 * @property {string} contestant
 * @property {string} library
 * @property {string} way
 * @property {string} [failed] why there are no timings
 * @property {number | null} [wrong] largest error of a result that is no result; null where it is not finite
 * @property {number} [error] largest absolute error of the rows that were compared with float64
 * @property {number} [ms] median of the turns' medians
 * @property {number} [msMin] fastest call
 * @property {number} [gflops]
 * @property {number} [turns] that count
 * @property {number} [calls] in them
 * @property {number} [discarded] turns that were thrown away because other processes ran
 * @property {boolean} [noisy] whether other processes ran in turns that count
 * @property {number} [grown] bytes by which the process grew until the first result
 */

/** @typedef {{ name: string, nickname: string, flops: number, entries: Entry[] }} ShapeResult */

/** @param {Turn} turn */
const isQuiet = ({ otherLoad }) => otherLoad === undefined || otherLoad < NOISY;

/**
 * @param {readonly Turn[]} turns at least one
 * @returns {Required<Pick<Entry, 'ms' | 'msMin' | 'turns' | 'calls' | 'discarded' | 'noisy'>>}
 */
export function summarise(turns) {
  const quiet = turns.filter(isQuiet);
  const counted = quiet.length >= ENOUGH_QUIET || quiet.length === turns.length ? quiet : turns;
  const calls = counted.flatMap(({ ms }) => ms);
  return {
    ms: median(counted.map(({ ms }) => median(ms))),
    msMin: Math.min(...calls),
    turns: counted.length,
    calls: calls.length,
    discarded: turns.length - counted.length,
    noisy: !counted.every(isQuiet),
  };
}

/**
 * @param {number | undefined} error of the rows that were checked, if any were
 * @returns {boolean} also for NaN
 */
export const isWrong = (error) => error !== undefined && !(error <= TOLERANCE);

/** @param {import('../js/cases.mjs').Case} c @param {number} ms */
export const gflops = (c, ms) => flops(c) / ms / 1e6;
