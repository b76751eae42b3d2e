/**
 * npm packages that are no devDependencies, because few commands need them or because they do not stand beside those: engines, bundlers
 * and test runners for `npm run test:hosts`, and what writes the API reference, which needs an older compiler. Pinned by lock files in
 * folders of their own, installed into the toolchain's cache folder, so that other checkouts find them.
 */

import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { whileLocked } from '../bootstrap.mjs';
import { findNpm, npmCi } from '../lib/npm.mjs';
import { ROOT } from '../lib/project.mjs';
import { makeToolchainDir, toolchainDir } from '../setup/paths.mjs';

/** Folders with the lock files, and sizes on disk, for those who wait. */
const GROUPS = {
  engines: { source: 'hosts/npm/engines', size: '1.0 GB' },
  bundlers: { source: 'hosts/npm/bundlers', size: '0.7 GB' },
  testers: { source: 'hosts/npm/testers', size: '0.2 GB' },
  docs: { source: 'docs/npm', size: '50 MB' },
};

/** @typedef {keyof typeof GROUPS} Group */

/** @param {Group} group */
const sourceOf = (group) => join(ROOT, 'scripts', GROUPS[group].source);

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
    log(`installing the ${group} of scripts/${GROUPS[group].source}, about ${GROUPS[group].size}, into ${folder}`);
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
