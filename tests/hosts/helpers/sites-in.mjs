// What is asked of every browser but Chromium, of which more is asked: the site without and with modules, workers, policies.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { serve } from '../../../scripts/serve.mjs';
import { assertReport } from './apps.mjs';
import { isolated, policy, self, workersAllowed } from './headers.mjs';
import { site } from './site.mjs';

/**
 * A browser that runs.
 * @typedef {object} Driven
 * @property {string} version
 * @property {(url: string) => Promise<import('../app/check.mjs').Report>} report of a page
 * @property {() => Promise<void>} close
 */

/** @type {[string, string, number, Record<string, string>?][]} */
const pages = [
  ['modules and an import map: module workers', '/modules.html', 2],
  ['modules, isolated by COOP and COEP', '/modules.html', 2, isolated],
  ['one script: workers of its own text', '/bundle.html', 2, workersAllowed],
  ["one script under a policy with worker-src 'self'", '/bundle.html', 0, policy(`${self}; worker-src 'self'`)],
  ["one script under a policy with worker-src 'none'", '/bundle.html', 0, policy(`${self}; worker-src 'none'`)],
  ['a module worker of the page', '/worker-module.html', 2],
  ['a service worker of one script', '/service-bundle.html', 0],
];

/**
 * @param {object} browser
 * @param {string} browser.name
 * @param {string | false} browser.skip
 * @param {string} browser.variant that is to be taken
 * @param {() => Promise<Driven>} browser.open
 */
export function sitesIn({ name, skip, variant, open }) {
  /** @type {Promise<Driven> | undefined} */
  let opened;
  after(async () => (await opened?.catch(() => undefined))?.close());
  const driven = () => (opened ??= open());

  /** @param {string} path @param {number} threads @param {Record<string, string> | undefined} headers */
  const visit = async (path, threads, headers) => {
    const served = await serve(site(), { headers });
    try {
      const wanted = threads > 0 ? { threads, least: threads } : { threads: 2 };
      return await (await driven()).report(`${served.url}${path}#${encodeURIComponent(JSON.stringify(wanted))}`);
    } finally {
      await served.close();
    }
  };
  for (const [what, path, threads, headers] of pages) {
    test(`${name}: ${what}`, { skip }, async (t) => {
      assertReport(await visit(path, threads, headers), { variant, threads });
      t.diagnostic((await driven()).version);
    });
  }
  test(`${name}: a policy that forbids WebAssembly is named`, { skip }, async (t) => {
    const report = await visit('/bundle.html', 0, policy("script-src 'self'"));
    t.diagnostic(String(report.message));
    assert.equal(report.code, 'load-failed');
    assert.match(
      report.message ?? '',
      /^this page's Content-Security-Policy forbids WebAssembly: add 'wasm-unsafe-eval' to its script-src/,
    );
  });
}

/**
 * One page, in a browser that is started otherwise.
 * @param {{ name: string, skip: string | false, variant: string, open: () => Promise<Driven> }} browser
 */
export function oneSiteIn({ name, skip, variant, open }) {
  test(`${name}: the ${variant} build is taken`, { skip }, async () => {
    const served = await serve(site());
    const driven = await open().catch(async (error) => {
      await served.close();
      throw error;
    });
    try {
      const wanted = encodeURIComponent(JSON.stringify({ threads: 1, least: 1 }));
      assertReport(await driven.report(`${served.url}/modules.html#${wanted}`), { variant, threads: 1 });
    } finally {
      await driven.close();
      await served.close();
    }
  });
}
