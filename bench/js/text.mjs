/** Results as lines on the terminal. */

/** @typedef {import('./measure.mjs').CaseResult} CaseResult */
/** @typedef {import('./measure.mjs').Timing} Timing */

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
function timingLine({ variant, ms, gflops, gbps, peak, shareOfRegisters, shareOfLoop, otherLoad }) {
  const columns = [
    `  ${variant.padEnd(8)}`,
    `${digits(ms)} ms`.padStart(10),
    `${digits(gflops)} GFLOP/s`.padStart(15),
    `${percent(shareOfRegisters)} of ${digits(peak.registers)} (${peak.arithmetic})`.padStart(31),
    `${percent(shareOfLoop)} of ${digits(peak.loop)} (its loop from L1)`.padStart(35),
  ];
  if (gbps !== undefined) columns.push(`  ${digits(gbps)} GB/s`);
  if (otherLoad > NOISY) columns.push(`  noisy: other processes used ${percent(otherLoad)} of the machine`);
  return columns.join('');
}

/** @param {CaseResult} result @returns {string} */
export const caseText = ({ name, nickname, timings }) =>
  [`${name}  (${nickname})`, ...timings.map(timingLine)].join('\n');
