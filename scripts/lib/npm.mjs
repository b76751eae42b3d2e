/** npm, for folders with a lock file. */

import { dirname } from 'node:path';
import { tryRun, UserError, which } from './exec.mjs';
import { logFile } from './project.mjs';

/**
 * @returns {string} its program: on PATH, else beside this Node
 * @throws {UserError} where there is none
 */
export function findNpm() {
  const npm = which('npm', `${process.env.PATH ?? ''}:${dirname(process.execPath)}`);
  if (!npm) throw new UserError('npm is not on PATH; it comes with Node.js');
  return npm;
}

/**
 * Installs what a folder's lock file says, without the packages' scripts.
 *
 * @param {string} npm
 * @param {string} folder
 * @param {object} how
 * @param {string} [how.what] is installed, for the message: 'of the peers'
 * @param {string} how.log name of the log file
 * @param {string[]} how.options of `npm ci`
 * @throws {UserError} with the reason that npm gives
 */
export async function npmCi(npm, folder, { what, log, options }) {
  const command = [npm, 'ci', '--ignore-scripts', '--no-update-notifier', ...options];
  const { status, output } = await tryRun(command, { cwd: folder, log: logFile(log) });
  if (status === 0) return;
  // npm tells the reason first and its manual after that.
  const reason = output.split('\n').slice(0, 12).join('\n');
  throw new UserError(`npm ci${what ? ` ${what}` : ''} failed:\n${reason}`);
}
