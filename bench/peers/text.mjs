/** A shape's results as lines on the terminal. */

import { digits } from '../js/text.mjs';
import { NOISY } from './load.mjs';

/** @typedef {import('./summary.mjs').Entry} Entry */
/** @typedef {import('./summary.mjs').ShapeResult} ShapeResult */

/** @param {Entry} entry */
function outcome({ failed, wrong, error, ms, gflops, turns, calls, noisy, discarded }) {
  if (failed !== undefined) return `fails: ${failed}`;
  if (wrong !== undefined) return `wrong: error ${wrong === null ? 'not finite' : wrong.toExponential(1)}`;
  if (ms === undefined || gflops === undefined) return 'not measured';
  return [
    `${digits(ms)} ms`.padStart(10),
    `${digits(gflops)} GFLOP/s`.padStart(15),
    `  ${calls} calls in ${turns} turns`,
    ...(error === undefined ? [] : [`, error ${error.toExponential(1)}`]),
    ...(discarded ? [`, ${discarded} turns thrown away`] : []),
    ...(noisy ? [`, noisy: others used more than ${100 * NOISY} % of the machine`] : []),
  ].join('');
}

/** @param {string} engine @param {ShapeResult} result @returns {string} */
export function shapeText(engine, { nickname, name, entries }) {
  const fastest = [...entries].sort((a, b) => (a.ms ?? Infinity) - (b.ms ?? Infinity));
  return [
    `${nickname} in ${engine}  (${name})`,
    ...fastest.map((entry) => `  ${entry.contestant.padEnd(30)}${outcome(entry)}`),
  ].join('\n');
}
