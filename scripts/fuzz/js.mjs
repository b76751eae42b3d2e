/** The JavaScript fuzzers of tests/fuzz/js, each in a process of its own. */

import { join } from 'node:path';
import { tail, tryRun } from '../lib/exec.mjs';
import { logFile, ROOT } from '../lib/project.mjs';

/** Modules of tests/fuzz/js/targets. */
export const JS_TARGETS = ['npy', 'npz', 'safetensors', 'options', 'kv-cache'];

/**
 * @param {object} options
 * @param {string} options.target of {@link JS_TARGETS}
 * @param {number} options.seconds
 * @param {number} options.seed
 * @returns {Promise<import('../lib/parts.mjs').Counts>}
 */
export async function runJsFuzzer({ target, seconds, seed }) {
  const command = [process.execPath, join(ROOT, 'tests/fuzz/js/fuzz.mjs'), target, `${seconds}`, `${seed}`];
  const { status, output } = await tryRun(command, { cwd: ROOT, log: logFile(`fuzz-${target}`) });
  const runs = /^(\d+) cases/m.exec(output)?.[1];
  if (status !== 0 || runs === undefined) {
    process.stderr.write(`${tail(output, 40)}\n`);
    return { passed: 0, failed: 1, skipped: 0, notes: [`failed with seed ${seed}`] };
  }
  return { passed: 1, failed: 0, skipped: 0, notes: [`${runs} cases`] };
}
