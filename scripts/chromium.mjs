/** Finds Chromium for the tests that need a browser, or installs Debian's where that is possible. */

import { accessSync, constants } from 'node:fs';
import { aptInstall, canInstall } from './lib/apt-install.mjs';
import { isMain, runMain, UserError, which } from './lib/exec.mjs';
import { createLog } from './lib/log.mjs';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

/** Flags for tests: quiet, and no name is looked up, so that a request to another host fails at once. */
export const quietFlags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1',
];

const HOW = 'install Chromium (Debian: apt-get install chromium) or set CHROMIUM to its program';

/**
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {string | undefined} `$CHROMIUM`, else the first known program on PATH
 * @throws {UserError} where `$CHROMIUM` is no program
 */
export function findChromium(env = process.env) {
  if (env.CHROMIUM) {
    try {
      accessSync(env.CHROMIUM, constants.X_OK);
    } catch {
      throw new UserError(`CHROMIUM is ${env.CHROMIUM}, which is not an executable file`);
    }
    return env.CHROMIUM;
  }
  for (const name of NAMES) {
    const found = which(name, env.PATH);
    if (found) return found;
  }
  return undefined;
}

/**
 * @param {{ log: import('./lib/log.mjs').Log }} options
 * @returns {Promise<{ chromium: string } | { chromium: undefined, reason: string }>}
 */
export async function ensureChromium({ log }) {
  const found = findChromium();
  if (found) return { chromium: found };
  if (!canInstall()) return { chromium: undefined, reason: `no browser: ${HOW}` };
  log("no browser on PATH: installing Debian's chromium");
  const said = await aptInstall(['chromium']);
  if (said) return { chromium: undefined, reason: `no browser, and apt-get could not install one (${said}): ${HOW}` };
  const chromium = findChromium();
  return chromium ? { chromium } : { chromium: undefined, reason: `no browser: ${HOW}` };
}

if (isMain(import.meta.url)) {
  runMain(async () => {
    const result = await ensureChromium({ log: createLog() });
    if (!result.chromium) throw new UserError('reason' in result ? result.reason : HOW);
    process.stdout.write(`${result.chromium}\n`);
  });
}
