// Firefox, driven over WebDriver BiDi.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { lacks, toolFile } from './tools.mjs';

const program = ['/usr/bin/firefox-esr', '/usr/bin/firefox'].find((file) => existsSync(file));

/** @type {string | false} */
export const noFirefox = program
  ? lacks('testers', 'puppeteer-core')
  : 'no Firefox: install it (Debian: apt-get install firefox-esr)';

/**
 * @param {Record<string, unknown>} [preferences]
 * @returns {Promise<import('./sites-in.mjs').Driven>}
 */
export async function openFirefox(preferences = {}) {
  const { launch } = createRequire(import.meta.url)(toolFile('testers', 'puppeteer-core')).default;
  const browser = await launch({
    browser: 'firefox',
    protocol: 'webDriverBiDi',
    executablePath: program,
    headless: true,
    // Lets the preference below take effect in a release build: no address of another host is asked for.
    env: { ...process.env, MOZ_REMOTE_SETTINGS_DEVTOOLS: '1' },
    extraPrefsFirefox: { 'services.settings.server': 'data:,#remote-settings-dummy/v1', ...preferences },
  });
  return {
    version: await browser.version(),
    report: async (url) => {
      const page = await browser.newPage();
      try {
        await page.goto(url);
        await page.waitForFunction('globalThis.report !== undefined', { timeout: 120_000, polling: 50 });
        return JSON.parse(await page.evaluate('JSON.stringify(globalThis.report)'));
      } finally {
        await page.close();
      }
    },
    close: () => browser.close(),
  };
}
