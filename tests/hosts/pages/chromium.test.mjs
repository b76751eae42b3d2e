// Pages in Chromium without a bundler's help: modules, one script, workers, service workers, policies, files, frames.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { assertReport, fastest } from '../helpers/apps.mjs';
import { chromiumVersion, pageTest, visit, visitFolder } from '../helpers/chromium.mjs';
import { isolated, policy, self, workersAllowed } from '../helpers/headers.mjs';
import { site } from '../helpers/site.mjs';

const two = { threads: 2, least: 2 };
const extension = "script-src 'self' 'wasm-unsafe-eval'; object-src 'self'";

/**
 * @param {string} name of the test
 * @param {string} path
 * @param {object} expected
 * @param {number} expected.threads
 * @param {string[]} [expected.started]
 * @param {RegExp} [expected.told] what the console may say of workers that the page forbids
 * @param {string} [expected.variant]
 * @param {Parameters<typeof visitFolder>[2]} [options]
 */
function works(name, path, { threads, started, told, variant = fastest }, options = {}) {
  pageTest(name, false, async () => {
    const wanted = threads === 0 ? { threads: 2 } : { threads, least: threads };
    const seen = await visitFolder(site(), wanted, { path, ...options });
    assertReport(seen.report, { variant, threads });
    if (started) assert.deepEqual(seen.started, started);
    assert.deepEqual(
      seen.problems.filter((problem) => !told?.test(problem)),
      [],
    );
  });
}

const modules = Array(2).fill('module http:');
const blobs = Array(2).fill('classic blob:');
/** A worker that the policy forbids. */
const forbidden = /worker from .*Content Security Policy|Creating a worker/i;

works('modules and an import map start module workers', '/modules.html', { threads: 2, started: modules });
works(
  'one script starts workers of its own text',
  '/bundle.html',
  { threads: 2, started: blobs },
  { headers: workersAllowed },
);
works(
  'a page that is isolated by COOP and COEP has the same workers',
  '/modules.html',
  { threads: 2, started: modules },
  { headers: isolated },
);
works(
  'one script, isolated by COOP and COEP',
  '/bundle.html',
  { threads: 2, started: blobs },
  { headers: { ...workersAllowed, ...isolated } },
);

works(
  'the policy of extensions, one script: no worker, the same numbers',
  '/bundle.html',
  { threads: 0, told: forbidden },
  {
    headers: policy(extension),
  },
);
works(
  "the policy of extensions with worker-src 'self', one script",
  '/bundle.html',
  { threads: 0, told: forbidden },
  {
    headers: policy(`${extension}; worker-src 'self'`),
  },
);
works(
  "worker-src 'none', one script",
  '/bundle.html',
  { threads: 0, told: forbidden },
  { headers: policy(`${self}; worker-src 'none'`) },
);
works(
  'a page without Worker',
  '/modules.html',
  { threads: 0, started: [] },
  {
    before: () => void Reflect.deleteProperty(globalThis, 'Worker'),
  },
);
works(
  'a policy of trusted types, which takes no address as a string',
  '/bundle.html',
  { threads: 0, told: /TrustedScriptURL/ },
  {
    headers: policy(`${self}; worker-src blob:; require-trusted-types-for 'script'`),
  },
);
works(
  'a page with a process and a require, as Electron gives it',
  '/modules.html',
  { threads: 2, started: modules },
  {
    before: () =>
      Object.assign(globalThis, {
        process: { versions: { node: '22.0.0', electron: '40.0.0' }, type: 'renderer' },
        require: () => {
          throw new Error('required');
        },
      }),
  },
);
works(
  'an engine without SIMD',
  '/modules.html',
  { threads: 2, variant: 'scalar' },
  { flags: ['--js-flags=--no-enable-sse4-1'] },
);
works(
  'an engine that rounds twice',
  '/modules.html',
  { threads: 2, variant: 'simd' },
  { flags: ['--js-flags=--no-enable-fma3'] },
);

works('in a module worker of the page, with workers of its own', '/worker-module.html', { threads: 2 });
works(
  'in a classic worker of the page, with workers of its own',
  '/worker-bundle.html',
  { threads: 2 },
  // The worker's own workers are of its policy.
  { headers: policy(`${self}; worker-src 'self' blob:`) },
);
works('in a service worker of modules', '/service-module.html', { threads: 0 });
works('in a service worker of one script', '/service-bundle.html', { threads: 0 });
works(
  'in a frame of no origin',
  '/framed.html',
  { threads: 2 },
  { headers: policy("script-src 'self' 'wasm-unsafe-eval' http: blob:") },
);

for (const path of ['/bundle.html', '/modules.html']) {
  pageTest(`script-src 'self' alone, ${path}: load() rejects and names what is missing`, false, async () => {
    const headers = policy("script-src 'self' 'unsafe-inline'");
    const { report } = await visitFolder(site(), two, { path, headers });
    assert.equal(report.code, 'load-failed');
    assert.match(
      report.message ?? '',
      /^this page's Content-Security-Policy forbids WebAssembly: add 'wasm-unsafe-eval' to its script-src/,
    );
  });
}

pageTest('a page of the file system: one script, with workers', false, async () => {
  const { report, problems, started } = await visit(pathToFileURL(join(site(), 'bundle.html')).href, two);
  assertReport(report, { variant: fastest, threads: 2 });
  assert.deepEqual(started, blobs);
  assert.deepEqual(problems, []);
});

pageTest('a page of the file system that may read files: modules', false, async (t) => {
  const flags = ['--allow-file-access-from-files'];
  const { report, problems } = await visit(pathToFileURL(join(site(), 'modules.html')).href, two, { flags });
  assertReport(report, { variant: fastest, threads: 2 });
  assert.deepEqual(problems, []);
  t.diagnostic(`Chromium ${await chromiumVersion()}`);
});
