// Pages in Chromium, with what they fetched, how they started workers, and what went wrong.

import { after, test } from 'node:test';
import { chromium } from 'playwright-core';
import { findChromium, quietFlags } from '../../../scripts/chromium.mjs';
import { serve } from '../../../scripts/serve.mjs';

const program = findChromium();

/** @type {string | false} */
export const noChromium = program ? false : 'no Chromium: install it, or set CHROMIUM to its program';

/** @type {Map<string, Promise<import('playwright-core').Browser>>} */
const browsers = new Map();
after(async () => {
  for (const browser of browsers.values()) await (await browser).close();
});

/** @param {string[]} flags */
function browserWith(flags) {
  const name = flags.join(' ');
  let browser = browsers.get(name);
  if (!browser) {
    browser = chromium.launch({ executablePath: program, headless: true, args: [...quietFlags, ...flags] });
    browsers.set(name, browser);
  }
  return browser;
}

/** @returns {Promise<string>} */
export const chromiumVersion = async () => (await browserWith([])).version();

/**
 * A test that is skipped, by its own name, where there is no Chromium or something else is missing.
 * @param {string} name
 * @param {string | false} skip
 * @param {(t: import('node:test').TestContext) => Promise<void>} body
 */
export const pageTest = (name, skip, body) => test(name, { skip: noChromium || skip }, body);

/** In the page: notes how workers are started. */
function noteWorkers() {
  /** @type {string[]} */
  const started = [];
  const { Worker } = globalThis;
  Object.assign(globalThis, { started });
  if (!Worker) return;
  globalThis.Worker = class extends Worker {
    /** @param {string} url @param {WorkerOptions} options */
    constructor(url, options) {
      super(url, options);
      started.push(`${options?.type ?? 'classic'} ${new URL(url, location.href).protocol}`);
    }
  };
}

/**
 * @typedef {object} Visit
 * @property {import('../app/check.mjs').Report} report
 * @property {string[]} problems errors of scripts and of the console, and answers that were errors
 * @property {string[]} requests addresses, without this page's own workers
 * @property {string[]} started workers, as `classic blob:`
 */

/**
 * Opens a page that leaves a report.
 * @param {string} url
 * @param {{ threads?: number, least?: number, wasm?: string }} [wanted] handed to the page behind the #
 * @param {{ flags?: string[], before?: () => void }} [options] `before` runs in the page before its scripts
 * @returns {Promise<Visit>}
 */
export async function visit(url, wanted = {}, { flags = [], before } = {}) {
  const context = await (await browserWith(flags)).newContext();
  try {
    const page = await context.newPage();
    /** @type {string[]} */
    const problems = [];
    /** @type {string[]} */
    const requests = [];
    page.on('pageerror', (error) => problems.push(`uncaught: ${error.message}`));
    page.on('console', (message) => {
      if (message.type() === 'error') problems.push(`console: ${message.text()} (${message.location().url})`);
    });
    page.on('request', (request) => {
      if (!request.url().startsWith('blob:')) requests.push(request.url());
    });
    page.on('response', (response) => {
      if (response.status() >= 400) problems.push(`${response.status()}: ${response.url()}`);
    });
    await page.addInitScript(noteWorkers);
    if (before) await page.addInitScript(before);
    await page.goto(`${url}#${encodeURIComponent(JSON.stringify({ threads: 0, ...wanted }))}`);
    // Also after a reload, which a development server may cause.
    const asked = page.waitForFunction(() => /** @type {any} */ (globalThis).report, null, { timeout: 120_000 });
    const handle = await asked.catch((error) => {
      throw new Error(`the page leaves no report: ${error.message}\n${problems.join('\n')}`, { cause: error });
    });
    const report = await handle.jsonValue();
    const started = await page.evaluate(() => /** @type {any} */ (globalThis).started);
    return { report, problems, requests, started };
  } finally {
    await context.close();
  }
}

/**
 * The same with a folder that is served for it.
 * @param {string} folder
 * @param {Parameters<typeof visit>[1]} [wanted]
 * @param {Parameters<typeof visit>[2] & { path?: string, headers?: Record<string, string> }} [options]
 */
export async function visitFolder(folder, wanted, { path = '/', headers, ...options } = {}) {
  const served = await serve(folder, { headers });
  try {
    return await visit(`${served.url}${path}`, wanted, options);
  } finally {
    await served.close();
  }
}
