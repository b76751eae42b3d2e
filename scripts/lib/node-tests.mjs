/** Runs `node --test` over a folder's files and counts its cases. */

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { CommandError, tryRun, UserError } from './exec.mjs';
import { logFile, ROOT } from './project.mjs';

/**
 * @param {string} folder
 * @returns {string[]} its files named `*.test.mjs`, at any depth, sorted
 */
export function testFiles(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.mjs') && !name.split(/[\\/]/).includes('node_modules'))
    .sort()
    .map((name) => join(folder, name));
}

/**
 * @param {object} options
 * @param {string} options.name for the log's name
 * @param {string} options.folder
 * @param {NodeJS.ProcessEnv} [options.env]
 * @param {string[]} [options.flags] for node
 * @returns {Promise<import('./parts.mjs').Counts>}
 * @throws {UserError} where the folder has no tests
 * @throws {CommandError} where tests fail to be counted
 */
export async function runNodeTests({ name, folder, env = process.env, flags = [] }) {
  const files = testFiles(folder);
  if (files.length === 0) throw new UserError(`no file *.test.mjs in ${relative(ROOT, folder)}`);
  const tap = logFile(`${name}.tap`);
  mkdirSync(dirname(tap), { recursive: true });
  rmSync(tap, { force: true });
  const reporters = [
    ['spec', 'stdout'],
    ['tap', tap],
  ].flatMap(([reporter, destination]) => [`--test-reporter=${reporter}`, `--test-reporter-destination=${destination}`]);
  const command = [process.execPath, ...flags, '--test', ...reporters, ...files];
  // A test runner that was itself started by one would report to it instead of to us.
  const result = await tryRun(command, {
    cwd: ROOT,
    env: { ...env, NODE_TEST_CONTEXT: undefined },
    log: logFile(name),
  });
  const counts = countTap(existsSync(tap) ? readFileSync(tap, 'utf8') : '');
  const uncounted = counts.passed + counts.failed + counts.skipped === 0;
  if (uncounted || (result.status !== 0 && counts.failed === 0)) throw new CommandError(command, result);
  if (counts.failed > 0) process.stderr.write(failures(result.output));
  return counts;
}

/**
 * @param {string} report in TAP, as node writes it: the sums stand at its end
 * @returns {import('./parts.mjs').Counts}
 */
export function countTap(report) {
  /** @param {string} name */
  const sum = (name) => Number(new RegExp(`^# ${name} (\\d+)$`, 'm').exec(report)?.[1] ?? 0);
  const notes = [...report.matchAll(/^\s*ok \d+ - (.*?) # (SKIP|TODO)\b *(.*)$/gm)].map(
    ([, name, kind, reason]) => `${kind === 'SKIP' ? 'skipped' : 'to do'}: ${name}${reason ? ` (${reason})` : ''}`,
  );
  return { passed: sum('pass'), failed: sum('fail') + sum('cancelled'), skipped: sum('skipped') + sum('todo'), notes };
}

/** @param {string} output of the spec reporter @returns {string} its list of failing tests */
function failures(output) {
  const start = output.lastIndexOf('failing tests:');
  const text = start < 0 ? output.slice(-6000) : output.slice(start, start + 12_000);
  return `${text.trimEnd()}\n`;
}
