/**
 * Runs the parts of a command one after the other and sums them up; a part that is not run is named with its reason.
 */

import { CommandError, tail, UserError } from './exec.mjs';

/**
 * @typedef {object} Counts test cases (or one for a part that does not count)
 * @property {number} passed
 * @property {number} failed
 * @property {number} skipped
 * @property {string[]} [notes] lines for the summary, e.g. the names of skipped tests
 */

/** Thrown by a part that cannot run here; the message is the reason. */
export class SkipPart extends Error {}

/**
 * @typedef {object} Part
 * @property {string} name `group` or `group:variant`
 * @property {string} title what it does, for the progress line
 * @property {string[]} [after] parts without which it cannot run
 * @property {() => Promise<Counts | void>} run nothing = it counts as one that passed; throws when it fails as a whole
 */

/** @typedef {{ name: string, counts: Counts, seconds: number, reason?: string }} Outcome */

/**
 * @param {Part[]} parts
 * @param {string[] | undefined} only names or groups; undefined = all
 * @returns {Part[]} the chosen ones and those that they need
 * @throws {UserError} on a name that no part has
 */
export function chooseParts(parts, only) {
  if (!only) return parts;
  /** @param {Part} part @param {string} name */
  const matches = (part, name) => part.name === name || part.name.startsWith(`${name}:`);
  const unknown = only.filter((name) => !parts.some((part) => matches(part, name)));
  if (unknown.length > 0) {
    throw new UserError(
      `no part is called ${unknown.join(', ')}; there are ${parts.map(({ name }) => name).join(', ')}`,
    );
  }
  const chosen = new Set(parts.filter((part) => only.some((name) => matches(part, name))));
  for (const part of chosen) {
    for (const name of part.after ?? []) chosen.add(/** @type {Part} */ (parts.find((other) => other.name === name)));
  }
  return parts.filter((part) => chosen.has(part));
}

/**
 * @param {Part[]} parts
 * @param {import('./log.mjs').Log} log
 * @returns {Promise<Outcome[]>}
 */
export async function runParts(parts, log) {
  /** @type {Outcome[]} */
  const outcomes = [];
  for (const part of parts) {
    const broken = outcomes.find(
      ({ name, counts }) => part.after?.includes(name) && (counts.failed > 0 || counts.skipped > 0),
    );
    const start = process.hrtime.bigint();
    log(`${part.name}: ${part.title}`);
    const outcome = broken
      ? { counts: { passed: 0, failed: 0, skipped: 1 }, reason: `needs ${broken.name}` }
      : await runPart(part);
    const seconds = Number(process.hrtime.bigint() - start) / 1e9;
    outcomes.push({ name: part.name, seconds, ...outcome });
    log(
      `${part.name}: ${describe(outcome.counts)}${outcome.reason ? ` (${outcome.reason})` : ''}, ${seconds.toFixed(1)} s`,
    );
  }
  return outcomes;
}

/**
 * @param {Part} part
 * @returns {Promise<{ counts: Counts, reason?: string }>}
 */
async function runPart(part) {
  try {
    return { counts: (await part.run()) ?? { passed: 1, failed: 0, skipped: 0 } };
  } catch (error) {
    if (error instanceof SkipPart) return { counts: { passed: 0, failed: 0, skipped: 1 }, reason: error.message };
    const plain = error instanceof UserError || error instanceof CommandError;
    process.stderr.write(`${plain ? error.message : tail(String(error instanceof Error ? error.stack : error))}\n`);
    const [firstLine] = String(error instanceof Error ? error.message : error).split('\n');
    return {
      counts: { passed: 0, failed: 1, skipped: 0 },
      reason: error instanceof CommandError ? error.reason : firstLine,
    };
  }
}

/** What a preparing part counts: nothing. */
export const NO_CASES = Object.freeze({ passed: 0, failed: 0, skipped: 0 });

/** @param {Counts} counts */
const describe = ({ passed, failed, skipped }) => `${passed} passed, ${failed} failed, ${skipped} skipped`;

/**
 * @param {Outcome[]} outcomes
 * @returns {string} a table, the notes, and as the last line the sums: `N passed, N failed, N skipped`
 */
export function summary(outcomes) {
  const width = Math.max(4, ...outcomes.map(({ name }) => name.length));
  const lines = [`${'part'.padEnd(width)}  passed  failed  skipped     time`];
  const sum = { passed: 0, failed: 0, skipped: 0 };
  for (const { name, counts, seconds, reason } of outcomes) {
    const numbers = [
      String(counts.passed).padStart(6),
      String(counts.failed).padStart(6),
      String(counts.skipped).padStart(7),
      `${seconds.toFixed(1)} s`.padStart(7),
    ];
    lines.push(`${name.padEnd(width)}  ${numbers.join('  ')}${reason ? `  ${reason}` : ''}`);
    sum.passed += counts.passed;
    sum.failed += counts.failed;
    sum.skipped += counts.skipped;
  }
  const notes = outcomes.flatMap(({ name, counts }) => (counts.notes ?? []).map((note) => `${name}: ${note}`));
  return ['', ...lines, ...(notes.length > 0 ? ['', ...notes] : []), '', describe(sum), ''].join('\n');
}

/**
 * @param {Outcome[]} outcomes
 * @returns {number} exit status
 */
export function exitStatus(outcomes) {
  return outcomes.some(({ counts }) => counts.failed > 0) ? 1 : 0;
}

/**
 * Reads `--only a,b` (also repeated, also `--only=a`) from a command line.
 *
 * @param {string[]} args
 * @returns {{ only: string[] | undefined, rest: string[] }}
 */
export function parseOnly(args) {
  /** @type {string[]} */
  const only = [];
  /** @type {string[]} */
  const rest = [];
  for (let i = 0; i < args.length; i++) {
    const match = /^--only(?:=(.*))?$/.exec(args[i]);
    if (!match) {
      rest.push(args[i]);
      continue;
    }
    const value = match[1] ?? args[++i];
    if (!value) throw new UserError('--only needs the name of a part');
    only.push(...value.split(',').filter(Boolean));
  }
  return { only: only.length > 0 ? only : undefined, rest };
}
