/** Programs of Debian, where this process may install them. */

import { existsSync } from 'node:fs';
import { CommandError, run } from './exec.mjs';
import { logFile } from './project.mjs';

/** @returns {boolean} */
export const canInstall = () => process.getuid?.() === 0 && existsSync('/usr/bin/apt-get');

/**
 * @param {string[]} packages
 * @returns {Promise<string | undefined>} why it could not be done
 */
export async function aptInstall(packages) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' };
  const options = ['-q', '-y', '-o', 'DPkg::Lock::Timeout=120'];
  try {
    await run(['apt-get', ...options, 'update'], { env, log: logFile('apt-update') });
    await run(['apt-get', ...options, 'install', '--no-install-recommends', ...packages], {
      env,
      log: logFile(`apt-${packages[0]}`),
    });
    return undefined;
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return error.result.output.split('\n').find((line) => /^E: /.test(line)) ?? `status ${error.result.status}`;
  }
}
