// What tests of the page's sections share.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { sectionReady, withDemo } from './demo.mjs';

/**
 * Opens the page at a section with its settings, and checks in the end that nothing was wrong.
 * @param {string} name
 * @param {Record<string, string | number>} state
 * @param {(demo: import('./demo.mjs').Demo & { section: import('playwright-core').Locator }) => Promise<void>} use
 */
export async function atSection(name, state, use) {
  const query = new URLSearchParams(Object.entries(state).map(([key, value]) => [key, String(value)]));
  await withDemo({}, async (demo) => {
    await demo.go(`#${name}?${query}`);
    const section = await sectionReady(demo.page, name);
    await use({ ...demo, section });
    assert.deepEqual(demo.problems, []);
  });
}

/**
 * Waits until what a section has drawn last begins with `text`.
 * @param {import('playwright-core').Page} page
 * @param {string} name
 * @param {string} text
 */
export const drawn = (page, name, text) =>
  page.locator(`#${name} .body[data-drawn^=${JSON.stringify(text)}]`).waitFor();

/**
 * Opens the table below a plot and waits for its rows: they are filled in by an event that comes in its own time.
 * @param {import('playwright-core').Locator} plot
 * @returns {Promise<import('playwright-core').Locator>} the rows
 */
export async function openTable(plot) {
  await plot.locator('summary').click();
  const rows = plot.locator('details[open] tbody tr');
  await rows.first().waitFor();
  return rows;
}

/**
 * Waits until a check of something that is drawn in a later frame passes; in the end its own error is told.
 * @template Result
 * @param {() => Promise<Result>} check
 * @returns {Promise<Result>}
 */
export async function eventually(check) {
  for (let left = 600; ; left--) {
    try {
      return await check();
    } catch (error) {
      if (left === 0) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/**
 * The address's hash as the page has it: Playwright's page.url() hears of a change later.
 * @param {import('playwright-core').Page} page
 */
export const hashOf = (page) => page.evaluate(() => location.hash);

/**
 * A number as the page writes it.
 * @param {string} text '−1 024', '2.2 × 10⁻⁴', '10⁶'
 * @returns {number}
 */
export function numberIn(text) {
  const plain = text
    .replace(/\s/g, '')
    .replace(/×?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)$/, (all, raised) => {
      const power = [...raised].map((/** @type {string} */ sign) => (sign === '⁻' ? '-' : '⁰¹²³⁴⁵⁶⁷⁸⁹'.indexOf(sign)));
      return `${all.startsWith('×') ? '' : '1'}e${power.join('')}`;
    })
    .replace('−', '-');
  return Number(plain);
}

/**
 * Waits until everything that a section draws in later frames is there: its maps and its plots.
 * @param {import('playwright-core').Locator} section
 */
export const picturesOf = (section) =>
  eventually(async () => {
    const missing = await section.evaluate((node) =>
      [...node.querySelectorAll('.map-stage, .plot-stage')]
        .filter((stage) => /** @type {HTMLElement} */ (stage).checkVisibility())
        .filter((stage) => !stage.querySelector('canvas[style*="width"], .uplot canvas'))
        .map((stage) => stage.getAttribute('aria-label')),
    );
    assert.deepEqual(missing, []);
  });

/**
 * The file that a button saves.
 * @param {import('playwright-core').Page} page
 * @param {import('playwright-core').Locator} button
 * @returns {Promise<{ name: string, bytes: Buffer }>}
 */
export async function saved(page, button) {
  const [download] = await Promise.all([page.waitForEvent('download'), button.click()]);
  return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
}

/**
 * Numbers of a CSV file.
 * @param {Buffer} bytes
 */
export function readCsv(bytes) {
  const [header, ...lines] = bytes.toString('utf8').trimEnd().split('\n');
  return { header: header.split(','), lines: lines.map((line) => line.split(',').map(Number)) };
}

/**
 * The plain definition in float64: weights of query i, of the keys that it sees.
 * @param {{ query: ArrayLike<number>, key: ArrayLike<number>, size: number, keys: number, row: number, seen: (key: number) => boolean }} given
 * @returns {number[]} (keys)
 */
export function plainRow({ query, key, size, keys, row, seen }) {
  const scores = Array.from({ length: keys }, (_, j) => {
    if (!seen(j)) return -Infinity;
    let dot = 0;
    for (let d = 0; d < size; d++) dot += query[row * size + d] * key[j * size + d];
    return dot / Math.sqrt(size);
  });
  const most = Math.max(...scores);
  const powers = scores.map((score) => (score === -Infinity ? 0 : Math.exp(score - most)));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => (sum === 0 ? 0 : power / sum));
}

/**
 * Numbers that are the same each time, without pattern.
 * @param {number} count
 * @param {number} seed
 */
export const numbers = (count, seed) =>
  Float32Array.from({ length: count }, (_, i) => 2 * Math.sin(12.9898 * (i + 1) + 78.233 * seed + Math.sin(i * seed)));
