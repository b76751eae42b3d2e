/** What the benches' command lines have in common. */

import { parseArgs } from 'node:util';
import { UserError } from '../scripts/lib/exec.mjs';

/**
 * @template {NonNullable<import('node:util').ParseArgsConfig['options']>} T
 * @param {string[]} args
 * @param {T} options as parseArgs() of node:util has them
 * @throws {UserError} on what is none of them
 */
export function readArgs(args, options) {
  try {
    return parseArgs({ args, options }).values;
  } catch (error) {
    throw new UserError(error instanceof Error ? error.message : String(error));
  }
}

/**
 * @template {string} T
 * @param {string} option
 * @param {string | undefined} text names with commas between them
 * @param {readonly T[]} known
 * @returns {T[] | undefined} those that are named, in the order of `known`
 * @throws {UserError} on a name that is unknown
 */
export function listOf(option, text, known) {
  if (text === undefined) return undefined;
  const names = text.split(',');
  const unknown = names.filter((name) => !known.includes(/** @type {T} */ (name)));
  if (unknown.length) throw new UserError(`${option} takes ${known.join(', ')}, got ${unknown.join(', ')}`);
  return known.filter((name) => names.includes(name));
}
