/** Several calls timed in the same turns, so that a slow moment of the machine meets all of them, within one build's process. */

import { callsPerTurn, repeatFor, startMeter, WARM_UP_MS } from './pace.mjs';
import { atPosition } from './stack.mjs';
import { median } from './statistics.mjs';

/** @typedef {Record<string, number>} TogetherTurn ms of each call by its name */

/** @typedef {{ turns: TogetherTurn[], load: import('./pace.mjs').Load }} Together */

/**
 * @param {Record<string, () => void>} calls by name; the first ones warm the engine up for those behind them
 * @param {number} turns each has all calls, and begins with another one each time
 * @param {number} [warmUp] ms; 0 where they have run before and take longer than a turn
 * @returns {Together}
 */
export function timeTogether(calls, turns, warmUp = WARM_UP_MS) {
  const timed = Object.entries(calls).map(([name, call]) => ({
    name,
    call,
    count: warmUp === 0 ? 1 : callsPerTurn(repeatFor(call, warmUp)),
  }));
  const meter = startMeter();
  /** @type {TogetherTurn[]} */
  const found = [];
  for (let turn = 0; turn < turns; turn++) {
    /** @type {TogetherTurn} */
    const ms = {};
    for (let i = 0; i < timed.length; i++) {
      const { name, call, count } = timed[(turn + i) % timed.length];
      // All calls of a turn lie at the same positions, so that none alone meets a slow one.
      ms[name] = median(Array.from({ length: count }, (_, n) => atPosition(turn + n, () => timeOf(call))));
    }
    found.push(ms);
  }
  return { turns: found, load: meter() };
}

/** @param {() => void} call @returns {number} ms */
function timeOf(call) {
  const start = performance.now();
  call();
  return performance.now() - start;
}
