/**
 * Progress lines for the command scripts: one line a step, with the seconds since the start.
 *
 * @typedef {(line: string) => void} Log
 */

/**
 * Makes a log that writes to stderr, so that stdout stays free for output meant for other programs.
 *
 * @param {{ quiet?: boolean, stream?: { write(text: string): unknown } }} [options]
 * @returns {Log}
 */
export function createLog({ quiet = false, stream = process.stderr } = {}) {
  if (quiet) return () => {};
  const start = process.hrtime.bigint();
  return (line) => {
    const seconds = Number(process.hrtime.bigint() - start) / 1e9;
    stream.write(`[${seconds.toFixed(1).padStart(6)} s] ${line}\n`);
  };
}

/**
 * @param {number} bytes
 * @returns {string} for people, e.g. `88.7 MB`
 */
export function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
