/** Contestants in headless Chromium, each in a page of its own. */

import { chromium } from 'playwright-core';
import { ROOT } from '../../scripts/lib/project.mjs';
import { serve } from '../../scripts/serve.mjs';
import { oneLine } from './one-line.mjs';

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Collected pages of other contestants must not be slowed down or put to sleep in the middle of a turn.
  '--disable-renderer-backgrounding',
  '--disable-background-timer-throttling',
  '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1',
];

/** Cross-origin isolated, because only there the clock is finer than 0.1 ms; scripts as the peers need them. */
const HEADERS = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
  'content-security-policy': "default-src 'self' blob: data: 'unsafe-inline' 'unsafe-eval'",
};

/**
 * @template T
 * @param {Promise<T>} promise
 * @param {number} limitMs
 * @param {Promise<never>} crashed
 * @returns {Promise<T>}
 */
async function within(promise, limitMs, crashed) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${limitMs / 1000} s`)), limitMs);
  });
  try {
    return await /** @type {Promise<T>} */ (Promise.race([promise, late, crashed]));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(oneLine(message.replace(/^page\.evaluate: (?:Error: )?/, '')), { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

/**
 * @param {object} options
 * @param {string} options.program
 * @param {number} options.limitMs for one answer
 * @param {readonly import('./contestants.mjs').Contestant[]} options.contestants
 * @returns {Promise<import('./node-engine.mjs').Engine>}
 */
export async function chromiumEngine({ program, limitMs, contestants }) {
  const served = await serve(ROOT, { headers: HEADERS });
  const server = await chromium.launchServer({ executablePath: program, headless: true, args: FLAGS });
  const browser = await chromium.connect(server.wsEndpoint());
  const version = browser.version();
  return {
    id: 'chromium',
    label: `Chromium ${version}`,
    versions: { chromium: version },
    contestants,
    async player(contestant, nickname) {
      const context = await browser.newContext();
      const page = await context.newPage();
      /** @type {Promise<never>} */
      const crashed = new Promise((_, reject) => page.once('crash', () => reject(new Error('the page crashed'))));
      // It is looked at only while an answer is awaited.
      crashed.catch(() => {});
      await page.goto(`${served.url}/bench/peers/page.html`);
      await page.waitForFunction(() => 'session' in globalThis, null, { timeout: 30_000 });
      /** @param {'prepare' | 'turn'} method @param {any[]} values @returns {Promise<any>} */
      const ask = (method, ...values) =>
        within(
          page.evaluate(
            ([name, given]) => /** @type {any} */ (globalThis).session[name](...given),
            /** @type {const} */ ([method, values]),
          ),
          limitMs,
          crashed,
        );
      return {
        prepare: (warmUpMs) => ask('prepare', contestant, nickname, warmUpMs),
        turn: (leastMs) => ask('turn', leastMs),
        pid: server.process().pid,
        close: () => context.close(),
      };
    },
    async close() {
      await browser.close();
      await server.close();
      await served.close();
    },
  };
}
