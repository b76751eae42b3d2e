// The demo page in Chromium, with everything watched that it must not do.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { findChromium, quietFlags } from '../../../scripts/chromium.mjs';
import { serve } from '../../../scripts/serve.mjs';

export const root = fileURLToPath(new URL('../../..', import.meta.url));
export const demoFolder = fileURLToPath(new URL('../../../build/demo', import.meta.url));

const program = findChromium();

/** Those of this file's tests, by their flags. @type {Map<string, import('playwright-core').Browser>} */
const browsers = new Map();

/** @param {string[]} flags */
async function browserWith(flags) {
  const name = flags.join(' ');
  const open = browsers.get(name);
  if (open?.isConnected()) return open;
  const browser = await chromium.launch({ executablePath: program, headless: true, args: [...quietFlags, ...flags] });
  browsers.set(name, browser);
  return browser;
}

let willClose = false;

/**
 * A test that is skipped, by its own name, where there is no Chromium.
 * @param {string} name
 * @param {(t: import('node:test').TestContext) => Promise<void>} body
 */
export function browserTest(name, body) {
  if (!willClose) after(() => Promise.all([...browsers.values()].map((browser) => browser.close())));
  willClose = true;
  test(name, { skip: program ? false : 'no Chromium: install it, or set CHROMIUM to its program' }, body);
}

/**
 * @typedef {object} Demo
 * @property {import('playwright-core').Page} page
 * @property {string} url of the page, without a hash
 * @property {string[]} problems errors and warnings of the console, errors of scripts, requests to other places
 * @property {(hash?: string) => Promise<void>} go loads the page anew
 */

/**
 * Opens the demo page and calls `use` with it; closes its window in the end.
 * @param {object} options
 * @param {string} [options.folder] served; the page's own where absent
 * @param {string} [options.path] of the page in it
 * @param {Record<string, string>} [options.headers] sent with each file
 * @param {string[]} [options.flags] of Chromium
 * @param {() => void} [options.before] runs in the page before its scripts
 * @param {import('playwright-core').BrowserContextOptions} [options.context]
 * @param {(demo: Demo) => Promise<void>} use
 */
export async function withDemo({ folder = demoFolder, path = '/', headers, flags = [], before, context }, use) {
  const served = await serve(folder, { headers });
  try {
    const browser = await browserWith(flags);
    const tab = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...context });
    try {
      const page = await tab.newPage();
      page.setDefaultTimeout(120_000);
      /** @type {string[]} */
      const problems = [];
      page.on('console', (message) => {
        if (['error', 'warning'].includes(message.type())) problems.push(`${message.type()}: ${message.text()}`);
      });
      page.on('pageerror', (error) => problems.push(`uncaught: ${error.message}`));
      page.on('request', (request) => {
        if (!request.url().startsWith(`${served.url}/`)) problems.push(`request: ${request.url()}`);
      });
      await page.addInitScript(watch);
      if (before) await page.addInitScript(before);
      const url = `${served.url}${path}`;
      await use({
        page,
        url,
        problems,
        go: async (hash = '') => {
          // From elsewhere: a change of the hash alone loads nothing.
          await page.goto('about:blank');
          await page.goto(`${url}${hash}`);
        },
      });
    } finally {
      await tab.close();
    }
  } finally {
    await served.close();
  }
}

/** In the page: counts frames and keeps the long tasks (above 50 ms). */
function watch() {
  const seen = { frames: 0, longTasks: /** @type {number[]} */ ([]) };
  Object.assign(window, { seen });
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) seen.longTasks.push(duration);
  }).observe({ type: 'longtask', buffered: true });
  const frame = () => {
    seen.frames++;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

/**
 * Waits until a section of the page has started.
 * @param {import('playwright-core').Page} page
 * @param {string} name
 * @returns the section
 */
export async function sectionReady(page, name) {
  const section = page.locator(`#${name}`);
  await section.scrollIntoViewIfNeeded();
  await page.locator(`#${name}:is([data-state='ready'], [data-state='failed'])`).waitFor();
  assert.equal(await section.getAttribute('data-state'), 'ready', (await section.innerText()).slice(-300));
  return section;
}

/**
 * Starts every section of the page, one after the other.
 * @param {import('playwright-core').Page} page
 * @returns {Promise<string[]>} their names
 */
export async function allSections(page) {
  await page.locator('main > section').first().waitFor();
  const names = await page.locator('main > section').evaluateAll((nodes) => nodes.map(({ id }) => id));
  for (const name of names) await sectionReady(page, name);
  return names;
}

/**
 * Runs `body` in the page with some of the page's modules.
 * @template A, R
 * @param {readonly string[]} files without .js
 * @param {(parts: any, argument: A) => R | Promise<R>} body cannot see what is outside
 * @param {A} [argument]
 * @param {Record<string, Function>} [tools] more that it is to see, as they stand
 * @returns {Promise<R>}
 */
export async function withModules(files, body, argument, tools = {}) {
  /** @type {any} */
  let result;
  await withDemo({}, async ({ page, go, problems }) => {
    await go();
    await page.evaluate(async (names) => {
      const found = names.map((name) => import(new URL(`${name}.js`, document.baseURI).href));
      const { load, masks } = await import('sdpa');
      Object.assign(window, { parts: Object.assign({ load, masks }, ...(await Promise.all(found))) });
    }, files);
    const more = Object.entries(tools).map(([name, tool]) => `${name}: ${tool}`);
    result = await page.evaluate(`(${body})({ ...window.parts, ${more} }, ${JSON.stringify(argument)})`);
    assert.deepEqual(problems, []);
  });
  return result;
}

/**
 * Presses Run and waits for the end, or for the error.
 * @param {import('playwright-core').Page} page
 * @returns {Promise<{ frames: number, longTasks: number[] }>} of this run
 */
export async function pressRun(page) {
  await page.locator('#run:enabled').waitFor();
  await page.evaluate(() => Object.assign(/** @type {any} */ (window).seen, { frames: 0, longTasks: [] }));
  await page.locator('#run').click();
  await page.locator('#run:not([data-running])').waitFor();
  return page.evaluate(() => /** @type {any} */ (window).seen);
}

/**
 * The exact number behind a text on the page.
 * @param {import('playwright-core').Page} page
 * @param {string} id
 * @returns {Promise<number>}
 */
export async function numberAt(page, id) {
  const text = await page.locator(`#${id}`).getAttribute('data-value');
  assert.ok(text, `#${id} shows no number`);
  return Number(text);
}
