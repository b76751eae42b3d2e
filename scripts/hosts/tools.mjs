/**
 * Engines, bundlers and test runners for `npm run test:hosts`: pinned by the lock files beside this one, installed into the
 * toolchain's cache folder, so that other checkouts find them.
 */

import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { whileLocked } from '../bootstrap.mjs';
import { findNpm, npmCi } from '../lib/npm.mjs';
import { ROOT } from '../lib/project.mjs';
import { makeToolchainDir, toolchainDir } from '../setup/paths.mjs';

/** Sizes on disk, for those who wait. */
const GROUPS = /** @type {const} */ ({ engines: '1.0 GB', bundlers: '0.7 GB', testers: '0.2 GB' });

/** @typedef {keyof typeof GROUPS} Group */

/** @param {Group} group */
const sourceOf = (group) => fileURLToPath(new URL(`npm/${group}`, import.meta.url));

/**
 * @param {Group} group
 * @param {string} [dir] the toolchain's folder
 * @returns {string} where its packages lie, or will lie: a folder of its own for each content of the lock file
 */
export function toolsFolder(group, dir = toolchainDir()) {
  const lock = readFileSync(join(sourceOf(group), 'package-lock.json'));
  return join(dir, 'hosts', `${group}-${createHash('sha256').update(lock).digest('hex').slice(0, 12)}`);
}

/**
 * Installs what is missing of a group.
 *
 * @param {Group} group
 * @param {import('../lib/log.mjs').Log} log
 * @returns {Promise<string>} its folder, with node_modules
 * @throws {import('../lib/exec.mjs').UserError} where npm cannot
 */
export async function ensureTools(group, log) {
  const folder = toolsFolder(group);
  if (existsSync(folder)) return folder;
  const npm = findNpm();
  makeToolchainDir(toolchainDir());
  await whileLocked(`hosts-${group}`, log, async () => {
    if (existsSync(folder)) return;
    log(`installing the ${group} of scripts/hosts/npm, about ${GROUPS[group]}, into ${folder}`);
    mkdirSync(dirname(folder), { recursive: true });
    const staging = mkdtempSync(`${folder}-new-`);
    try {
      cpSync(sourceOf(group), staging, { recursive: true });
      cpSync(join(ROOT, '.npmrc'), join(staging, '.npmrc'));
      // No scripts: what they would fetch, the packages of this platform have.
      await npmCi(npm, staging, {
        what: `of the ${group}`,
        log: `npm-ci-hosts-${group}`,
        options: ['--prefer-offline'],
      });
      // Another checkout may have been as fast.
      if (!existsSync(folder)) renameSync(staging, folder);
    } finally {
      rmSync(staging, { recursive: true, force: true });
    }
  });
  return folder;
}
