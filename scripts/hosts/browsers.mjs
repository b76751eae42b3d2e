/** Firefox and WebKit, which Debian has and npm has not. */

import { existsSync } from 'node:fs';
import { aptInstall, canInstall } from '../lib/apt-install.mjs';

/** By a file of each; WebKitGTK's browser needs a display. */
const PACKAGES = {
  '/usr/bin/firefox-esr': ['firefox-esr'],
  '/usr/bin/WebKitWebDriver': ['webkit2gtk-driver'],
  '/usr/bin/xvfb-run': ['xvfb', 'xauth'],
};

/**
 * Installs what is missing where that is allowed; the tests skip themselves, by name, without it.
 *
 * @param {import('../lib/log.mjs').Log} log
 */
export async function ensureBrowsers(log) {
  const missing = Object.entries(PACKAGES).flatMap(([file, names]) => (existsSync(file) ? [] : names));
  if (missing.length === 0) return;
  if (!canInstall()) {
    log(`not installed, and only root could with Debian's apt-get: ${missing.join(', ')}`);
    return;
  }
  log(`installing Debian's ${missing.join(', ')}`);
  const said = await aptInstall(missing);
  if (said) log(`apt-get could not install them: ${said}`);
}
