/** Results as lines on the terminal. */

/** @typedef {import('./measure.mjs').CaseResult} CaseResult */
/** @typedef {import('./measure.mjs').Timing} Timing */
/** @template T @typedef {import('./measure-calls.mjs').CallResult<T>} CallResult */

/** From here on other processes are said to have disturbed a case. */
export const NOISY = 0.1;

/** @param {number} value @returns {string} three digits and more */
export function digits(value) {
  if (value >= 100) return value.toFixed(0);
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** @param {number} share */
export const percent = (share) => `${(100 * share).toFixed(0)} %`;

/** @param {number} bytes */
export const kilobytes = (bytes) => `${(bytes / 1024).toFixed(1)} KB`;

/** @param {number} bytes */
export const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

/** @param {Timing} timing */
function timingLine({ variant, ms, gflops, gbps, read, overLimit, peak, shareOfRegisters, shareOfLoop, otherLoad }) {
  const columns = [
    `  ${variant.padEnd(8)}`,
    `${digits(ms)} ms`.padStart(10),
    `${digits(gflops)} GFLOP/s`.padStart(15),
    `${percent(shareOfRegisters)} of ${digits(peak.registers)} (${peak.arithmetic})`.padStart(31),
    `${percent(shareOfLoop)} of ${digits(peak.loop)} (its loop from L1)`.padStart(35),
  ];
  if (gbps !== undefined) columns.push(`  ${digits(gbps)} GB/s`);
  if (read !== undefined) columns.push(`, a loop that only reads ${digits(read)}`);
  if (overLimit !== undefined) columns.push(`; ${digits(overLimit)} × the least time`);
  return `${columns.join('')}${noise(otherLoad)}`;
}

/** @param {number} otherLoad */
export const noise = (otherLoad) =>
  otherLoad > NOISY ? `  noisy: other processes used ${percent(otherLoad)} of the machine` : '';

/** @param {CaseResult} result @returns {string} */
export const caseText = ({ name, nickname, timings }) =>
  [`${name}  (${nickname})`, ...timings.map(timingLine)].join('\n');

/** @param {CallResult<import('./measure-calls.mjs').ArraysTiming>} result @returns {string} */
export const arraysText = ({ name, nickname, timings }) =>
  [
    `${name}  (${nickname})`,
    ...timings.map(
      ({ variant, resident, arrays, ratio, otherLoad }) =>
        `  ${variant.padEnd(8)}${digits(resident)} ms resident, ${digits(arrays)} ms on arrays: ${digits(ratio)} ×${noise(otherLoad)}`,
    ),
  ].join('\n');

/** @param {CallResult<import('./measure-calls.mjs').WorkersTiming>} result @returns {string} */
export const workersText = ({ name, nickname, timings }) =>
  [
    `${name}  (${nickname})`,
    ...timings.map(
      ({ variant, sync, one, two, ratio, otherLoad }) =>
        `  ${variant.padEnd(8)}${digits(one)} ms on one worker, ${digits(two)} ms on two: ${digits(ratio)} × as fast; ` +
        `${digits(sync)} ms on its own thread${noise(otherLoad)}`,
    ),
  ].join('\n');
