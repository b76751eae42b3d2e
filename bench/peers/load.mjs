/** What other processes take of the machine while something is timed. */

import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { machineTime } from '../machine-load.mjs';

/** From this share of the machine's processors on, others are said to have disturbed a turn. */
export const NOISY = 0.08;

/** Linux counts processor time in hundredths of a second, whatever the kernel's own tick. */
const MS_PER_TICK = 10;

/** Windows of this length are looked at while waiting for a quiet moment. */
const WINDOW_MS = 60;

/**
 * @param {string} stat content of /proc/PID/stat
 * @param {boolean} withEnded also of children that have ended
 * @returns {{ parent: number, ms: number }}
 */
export function parseProcessStat(stat, withEnded) {
  // The second field is the program's name in brackets, which may contain anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user, system, endedUser, endedSystem] = fields.slice(11, 15).map(Number);
  return {
    parent: Number(fields[1]),
    ms: MS_PER_TICK * (user + system + (withEnded ? endedUser + endedSystem : 0)),
  };
}

/**
 * @param {number | undefined} pid of a process whose descendants count as well
 * @returns {number | undefined} ms of processor time of this process and those; undefined where there is no /proc
 */
function ownTime(pid) {
  /** @type {Map<number, { parent: number, ms: number }>} */
  const processes = new Map();
  try {
    for (const name of readdirSync('/proc')) {
      if (!/^\d+$/.test(name)) continue;
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
        processes.set(Number(name), parseProcessStat(stat, Number(name) === process.pid));
      } catch {
        // It ended between the two looks.
      }
    }
  } catch {
    return undefined;
  }
  let ms = processes.get(process.pid)?.ms;
  for (const [candidate, found] of processes) {
    let ancestor = candidate;
    while (ancestor > 1 && ancestor !== pid) ancestor = processes.get(ancestor)?.parent ?? 0;
    if (ms !== undefined && pid !== undefined && ancestor === pid) ms += found.ms;
  }
  return ms;
}

/**
 * @param {number | undefined} pid of the process that will work; this one's time is never foreign
 * @returns {() => number | undefined} call it at the end: share of the machine that others used since, undefined where it
 *   cannot be told
 */
export function startMeter(pid) {
  const machine = machineTime();
  const own = ownTime(pid);
  return () => {
    const end = machineTime();
    const ownEnd = ownTime(pid);
    if (own === undefined || ownEnd === undefined) return undefined;
    return Math.max(0, end.busy - machine.busy - (ownEnd - own)) / Math.max(1, end.total - machine.total);
  };
}

/** @param {number} patienceMs waits at most so long for a moment in which nobody works */
export async function untilQuiet(patienceMs) {
  const end = Date.now() + patienceMs;
  while (Date.now() < end) {
    const before = machineTime();
    await sleep(WINDOW_MS);
    const after = machineTime();
    if ((after.busy - before.busy) / Math.max(1, after.total - before.total) < NOISY) return;
  }
}
