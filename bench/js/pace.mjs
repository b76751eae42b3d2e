/** How long things are run, and what the machine did meanwhile. */

import { machineTime } from '../machine-load.mjs';

/** @typedef {{ busy: number, ours: number, total: number }} Load processor time in ms: used by all, by this process, there was */

/** At least so long is a turn's work, and the warm-up before all turns. */
export const TURN_MS = 40;
export const WARM_UP_MS = 150;

/** @param {() => void} action @param {number} least ms @returns {number} ms that a call took on average */
export function repeatFor(action, least) {
  const start = performance.now();
  let calls = 0;
  do {
    action();
    calls++;
  } while (performance.now() - start < least);
  return (performance.now() - start) / calls;
}

/** @param {number} ms of a call @returns {number} calls of a turn */
export const callsPerTurn = (ms) => Math.max(1, Math.ceil(TURN_MS / ms));

/** @returns {() => Load} what there was since; counts this process's threads as its own */
export function startMeter() {
  const machine = machineTime();
  const own = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(own);
    const end = machineTime();
    return { busy: end.busy - machine.busy, ours: (user + system) / 1000, total: end.total - machine.total };
  };
}

/** @param {readonly Load[]} loads @returns {number} share of the machine that other processes used */
export function otherLoad(loads) {
  /** @param {keyof Load} what */
  const sum = (what) => loads.reduce((total, load) => total + load[what], 0);
  return Math.max(0, (sum('busy') - sum('ours')) / Math.max(1, sum('total')));
}
