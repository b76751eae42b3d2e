/** Folders of the project. */

import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The checkout. */
export const ROOT = resolve(fileURLToPath(new URL('../..', import.meta.url)));

/** Everything that is built; not in git. */
export const BUILD = join(ROOT, 'build');

/**
 * @param {string} name
 * @returns {string} path of a log file in the build folder (which is created)
 */
export function logFile(name) {
  const folder = join(BUILD, 'logs');
  mkdirSync(folder, { recursive: true });
  return join(folder, `${name.replaceAll(/[^\w.-]+/g, '-')}.log`);
}
