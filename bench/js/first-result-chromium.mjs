/**
 * From nothing to the first result in headless Chromium, each time in a browser that has just been started, with the package as a page
 * has it: bundled and minified. See bench/README.md.
 *
 *   node bench/js/first-result-chromium.mjs [--variants auto,simd,relaxed,scalar] [--rounds N] [--json FILE]
 */

import { build } from 'esbuild';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { findChromium, quietFlags } from '../../scripts/chromium.mjs';
import { isMain, runMain, UserError } from '../../scripts/lib/exec.mjs';
import { ROOT } from '../../scripts/lib/project.mjs';
import { serve } from '../../scripts/serve.mjs';
import { listOf, readArgs } from '../command-line.mjs';
import { environment } from './environment.mjs';
import { firstResultOf } from './measure.mjs';

/** @typedef {'auto' | import('sdpa').Variant} Choice */

/** @typedef {{ chosen: import('sdpa').Variant, importMs: number, loadMs: number, callMs: number, out: number[] }} Sample */

/** @typedef {import('./measure.mjs').FirstResult & { rounds: number, out: number[] }} ChromiumFirstResult `out`: the first numbers of the result */

const CHOICES = /** @type {const} */ (['auto', 'simd', 'relaxed', 'scalar']);

/** Cross-origin isolated: only there is the clock finer than 0.1 ms. */
const HEADERS = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
};

/** What the page runs: the call that first-result.mjs times in Node. */
const PAGE = `
const variant = location.hash.slice(1);
const shape = [1, 12, 128, 64];
const query = { data: Float32Array.from({ length: 12 * 128 * 64 }, (_, i) => Math.sin(i)), shape };
const start = performance.now();
const { load } = await import('./sdpa.js');
const imported = performance.now();
const sdpa = await load({ variant });
const loaded = performance.now();
const { out } = sdpa.attention(query, query, query);
const done = performance.now();
globalThis.sample = {
  chosen: sdpa.variant,
  importMs: imported - start,
  loadMs: loaded - imported,
  callMs: done - loaded,
  out: [...out.data.subarray(0, 8)],
};
`;

/**
 * @param {object} options
 * @param {string} options.program of Chromium
 * @param {readonly Choice[]} options.variants
 * @param {number} options.rounds
 * @returns {Promise<{ chromium: string, results: ChromiumFirstResult[] }>} its version, and what was measured
 */
export async function measureInChromium({ program, variants, rounds }) {
  const folder = mkdtempSync(join(tmpdir(), 'sdpa-first-result-'));
  try {
    await build({
      entryPoints: [fileURLToPath(import.meta.resolve('sdpa'))],
      outfile: join(folder, 'sdpa.js'),
      bundle: true,
      minify: true,
      format: 'esm',
      platform: 'browser',
    });
    writeFileSync(join(folder, 'page.js'), PAGE);
    writeFileSync(
      join(folder, 'index.html'),
      '<!doctype html><title>x</title><script type="module" src="page.js"></script>',
    );
    const served = await serve(folder, { headers: HEADERS });
    try {
      /** @type {Map<Choice, Sample[]>} */
      const samples = new Map(variants.map((variant) => [variant, []]));
      let version = '';
      for (let round = 0; round < rounds; round++) {
        for (const variant of variants) {
          const visited = await visit(program, `${served.url}/index.html#${variant}`);
          version = visited.version;
          samples.get(variant)?.push(visited.sample);
        }
      }
      return { chromium: version, results: variants.map((variant) => summary(variant, samples.get(variant) ?? [])) };
    } finally {
      await served.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @param {string} program
 * @param {string} url
 * @returns {Promise<{ version: string, sample: Sample }>}
 */
async function visit(program, url) {
  const browser = await chromium.launch({ executablePath: program, headless: true, args: quietFlags });
  try {
    const page = await browser.newPage();
    const failed = new Promise((_, reject) => page.once('pageerror', reject));
    failed.catch(() => {});
    await page.goto(url);
    const ready = page.waitForFunction(() => /** @type {any} */ (globalThis).sample, null, { timeout: 60_000 });
    const handle = /** @type {Awaited<typeof ready>} */ (await Promise.race([ready, failed]));
    return { version: browser.version(), sample: await handle.jsonValue() };
  } finally {
    await browser.close();
  }
}

/** @param {Choice} variant @param {Sample[]} samples @returns {ChromiumFirstResult} */
function summary(variant, samples) {
  return { ...firstResultOf(variant, samples), rounds: samples.length, out: samples[0].out };
}

/** @param {string[]} args */
async function main(args) {
  const given = readArgs(args, { variants: { type: 'string' }, rounds: { type: 'string' }, json: { type: 'string' } });
  const variants = listOf('--variants', given.variants, CHOICES) ?? ['auto'];
  const rounds = Number(given.rounds ?? 15);
  if (!Number.isInteger(rounds) || rounds < 1) throw new UserError('--rounds is a whole number, 1 or more');
  const program = findChromium();
  if (!program) throw new UserError('no Chromium: install it, or set CHROMIUM to its program');
  const measured = await measureInChromium({ program, variants, rounds });
  process.stdout.write(`load to first result (12 heads, 128 tokens, D 64) in Chromium ${measured.chromium}\n`);
  for (const { variant, chosen, loadToResultMs, loadToResultMsMin, importMs } of measured.results) {
    const [middle, least, before] = [loadToResultMs, loadToResultMsMin, importMs].map((ms) => `${ms.toFixed(1)} ms`);
    const name = variant === 'auto' ? `auto (takes ${chosen})` : variant;
    process.stdout.write(`${name}: ${middle}, least ${least}, after ${before} of import; ${rounds} browsers\n`);
  }
  if (given.json) {
    const where = environment(fileURLToPath(import.meta.url), args);
    writeFileSync(resolve(ROOT, given.json), `${JSON.stringify({ environment: where, ...measured }, null, 2)}\n`);
  }
}

if (isMain(import.meta.url)) runMain(() => main(process.argv.slice(2)));
