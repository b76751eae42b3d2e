/** Native builds through CMake's presets, and their tests. */

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { CommandError, run, tail, tryRun } from './exec.mjs';
import { logFile, ROOT } from './project.mjs';

const JOBS = String(availableParallelism());

/**
 * Configures and builds a preset.
 *
 * @param {object} options
 * @param {string} options.preset
 * @param {NodeJS.ProcessEnv} options.env
 * @param {string[]} [options.targets] all by default
 */
export async function buildPreset({ preset, env, targets = [] }) {
  await run(['cmake', '--preset', preset], { cwd: ROOT, env, log: logFile(`${preset}-configure`) });
  const chosen = targets.length > 0 ? ['--target', ...targets] : [];
  await run(['cmake', '--build', '--preset', preset, '-j', JOBS, ...chosen], {
    cwd: ROOT,
    env,
    log: logFile(`${preset}-build`),
  });
}

/**
 * Runs a preset's tests with ctest, which must find some.
 *
 * @param {object} options
 * @param {string} options.dir build folder
 * @param {string} options.name for the log's name
 * @param {NodeJS.ProcessEnv} options.env
 * @returns {Promise<import('./parts.mjs').Counts>}
 */
export async function runCtest({ dir, name, env }) {
  const junit = logFile(`${name}.junit`);
  rmSync(junit, { force: true });
  const command = [
    'ctest',
    '--test-dir',
    dir,
    '--output-on-failure',
    '--no-tests=error',
    '-j',
    JOBS,
    '--output-junit',
    junit,
  ];
  const result = await tryRun(command, { cwd: ROOT, env, log: logFile(name) });
  const counts = countJunit(existsSync(junit) ? readFileSync(junit, 'utf8') : '');
  const uncounted = counts.passed + counts.failed + counts.skipped === 0;
  if (uncounted || (result.status !== 0 && counts.failed === 0)) throw new CommandError(command, result);
  if (counts.failed > 0) process.stderr.write(`${tail(result.output, 60)}\n`);
  return counts;
}

/**
 * @param {string} xml as ctest writes it
 * @returns {import('./parts.mjs').Counts}
 */
export function countJunit(xml) {
  const counts = { passed: 0, failed: 0, skipped: 0, notes: /** @type {string[]} */ ([]) };
  for (const [, name, status] of xml.matchAll(/<testcase name="([^"]*)"[^>]*\bstatus="(\w+)"/g)) {
    if (status === 'run') counts.passed++;
    else if (status === 'fail') counts.failed++;
    else {
      counts.skipped++;
      counts.notes.push(`${status === 'disabled' ? 'disabled' : 'skipped'}: ${name}`);
    }
  }
  return counts;
}
