// A Chromium extension (manifest 3): its pages and its service worker, under the only policy that lets extensions run WebAssembly.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';
import { findChromium, quietFlags } from '../../../scripts/chromium.mjs';
import { assertReport, fastest as variant } from '../helpers/apps.mjs';
import { noChromium } from '../helpers/chromium.mjs';
import { site } from '../helpers/site.mjs';

/** @type {import('playwright-core').BrowserContext} */
let context;
/** @type {import('playwright-core').Worker} */
let service;
/** @type {string} */
let profile;

before(async () => {
  if (noChromium) return;
  profile = mkdtempSync(join(tmpdir(), 'sdpa-profile-'));
  context = await chromium.launchPersistentContext(profile, {
    executablePath: findChromium(),
    headless: true,
    ignoreDefaultArgs: ['--disable-extensions'],
    args: [...quietFlags, `--disable-extensions-except=${site()}`, `--load-extension=${site()}`],
  });
  service = context.serviceWorkers()[0] ?? (await context.waitForEvent('serviceworker', { timeout: 60_000 }));
});
after(async () => {
  await context?.close();
  if (profile) rmSync(profile, { recursive: true, force: true });
});

for (const [what, path] of /** @type {const} */ ([
  ['modules start module workers', 'relative.html'],
  ['one script starts workers of its own text', 'bundle.html'],
])) {
  test(`an extension's page: ${what}`, { skip: noChromium }, async () => {
    const wanted = encodeURIComponent(JSON.stringify({ threads: 2, least: 2 }));
    const page = await context.newPage();
    await page.goto(`${new URL('/', service.url()).href}${path}#${wanted}`);
    const handle = await page.waitForFunction(() => /** @type {any} */ (globalThis).report, null, { timeout: 120_000 });
    assertReport(await handle.jsonValue(), { variant, threads: 2 });
    await page.close();
  });
}

test("an extension's service worker computes", { skip: noChromium }, async () => {
  const report = await service.evaluate(
    () =>
      new Promise((done) => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = ({ data }) => done(data);
        globalThis.dispatchEvent(new MessageEvent('message', { data: { threads: 2 }, ports: [port2] }));
      }),
  );
  assertReport(/** @type {any} */ (report), { variant, threads: 0 });
});

test(
  'Electron, pages and main process',
  { skip: 'its program comes from no package registry; file: pages stand for it' },
  () => {},
);
