/** What every command needs first: npm packages as the lock file says, and the toolchain. Quick when both are there. */

import { accessSync, constants, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { isMain, runMain, UserError, which } from './lib/exec.mjs';
import { withLock } from './lib/lock.mjs';
import { createLog } from './lib/log.mjs';
import { findNpm, npmCi } from './lib/npm.mjs';
import { BUILD, ROOT } from './lib/project.mjs';
import { ensureToolchain } from './setup.mjs';

const MINIMUM_NODE = 20;

/**
 * @param {string} root
 * @returns {boolean} whether node_modules is what package-lock.json says, by the list that npm leaves there when it
 *   is done
 */
export function modulesMatchLock(root) {
  /** @param {string} file @returns {Record<string, { version?: string, optional?: boolean, link?: boolean }>} */
  const packages = (file) => JSON.parse(readFileSync(join(root, file), 'utf8')).packages ?? {};
  if (!existsSync(join(root, 'node_modules/.package-lock.json'))) return false;
  const wanted = packages('package-lock.json');
  const present = packages('node_modules/.package-lock.json');
  // Optional packages are those of other platforms.
  return Object.entries(wanted).every(
    ([path, { version, optional }]) =>
      path === '' || (present[path] ? present[path].version === version : optional === true),
  );
}

/** @param {import('./lib/log.mjs').Log} log */
async function ensureModules(log) {
  if (modulesMatchLock(ROOT)) return;
  const npm = findNpm();
  await whileLocked('npm', log, async () => {
    if (modulesMatchLock(ROOT)) return;
    log('installing the npm packages of package-lock.json');
    await npmCi(npm, ROOT, { log: 'npm-ci', options: ['--no-audit', '--no-fund', ...cacheOption()] });
  });
}

/** @returns {string[]} where npm's cache cannot be written (a read-only home), one in the build folder */
function cacheOption() {
  const cache = process.env.npm_config_cache || join(homedir(), '.npm');
  try {
    mkdirSync(cache, { recursive: true });
    accessSync(cache, constants.W_OK);
    return [];
  } catch {
    return ['--cache', join(BUILD, 'npm-cache')];
  }
}

/**
 * Runs an action while no other command does the same in this checkout.
 *
 * @template T
 * @param {string} what
 * @param {import('./lib/log.mjs').Log} log
 * @param {() => Promise<T>} action
 * @returns {Promise<T>}
 */
export async function whileLocked(what, log, action) {
  if (!which('flock')) return action();
  mkdirSync(BUILD, { recursive: true });
  return withLock(
    join(BUILD, `${what}.lock`),
    () => log(`another command is at work here (${what}): waiting for it`),
    action,
  );
}

/**
 * @param {{ log?: import('./lib/log.mjs').Log, extraParts?: string[] }} [options]
 * @returns {Promise<import('./setup.mjs').Toolchain>}
 */
export async function bootstrap({ log = createLog(), extraParts } = {}) {
  const major = Number(process.versions.node.split('.')[0]);
  if (major < MINIMUM_NODE)
    throw new UserError(`Node.js is ${process.versions.node}, needed is ${MINIMUM_NODE} or newer`);
  await ensureModules(log);
  return ensureToolchain({ log, extraParts });
}

if (isMain(import.meta.url)) runMain(async () => void (await bootstrap()));
