import { cpus } from 'node:os';

/** @returns {{ busy: number, total: number }} processor time in ms since the machine started: used by all, there was */
export function machineTime() {
  const sum = { busy: 0, total: 0 };
  for (const { times } of cpus()) {
    const busy = times.user + times.nice + times.sys + times.irq;
    sum.busy += busy;
    sum.total += busy + times.idle;
  }
  return sum;
}
