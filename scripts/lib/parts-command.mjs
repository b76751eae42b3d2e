/** What commands of several parts do with their command line. */

import { whileLocked } from '../bootstrap.mjs';
import { UserError } from './exec.mjs';
import { createLog } from './log.mjs';
import { chooseParts, exitStatus, parseOnly, runParts, summary } from './parts.mjs';

/**
 * Runs the parts that --only names, or all, and writes the summary.
 *
 * @param {string[]} args
 * @param {object} command
 * @param {string} command.name as it is typed, for the usage
 * @param {(log: import('./log.mjs').Log) => import('./parts.mjs').Part[]} command.parts
 * @param {string} [command.lock] held meanwhile; without one, others may run at the same time
 * @returns {Promise<number>} exit status
 */
export async function partsCommand(args, { name, parts, lock }) {
  const { only, rest } = parseOnly(args);
  if (rest.length > 0) throw new UserError(`unknown option ${rest.join(' ')}\nusage: ${name} [-- --only part,...]`);
  const log = createLog();
  const chosen = chooseParts(parts(log), only);
  const action = () => runParts(chosen, log);
  const outcomes = await (lock ? whileLocked(lock, log, action) : action());
  process.stdout.write(summary(outcomes));
  return exitStatus(outcomes);
}
