// Jest and vitest with no configuration, and with pages that jsdom and happy-dom simulate.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { createApp, runIn } from '../helpers/apps.mjs';
import { lacks, toolFile, toolFolder } from '../helpers/tools.mjs';

/** Of a test in either runner. `least`: simulated pages may have what no worker of the kind starts from. */
const body = `
  const report = await check({ features, load }, { threads: 2, least: 2 });
  expect(report.message).toBe(undefined);
  expect(report.error).toBeLessThan(1e-6);
  expect(report.same).toBe(true);
  expect(report.threads).toBe(2);`;
const imported = `import { features, load } from 'sdpa'; import { check } from './check.mjs';`;
const required = `const { features, load } = require('sdpa'); const { check } = require('./check.cjs');`;

/** @param {string} environment @param {string} head @param {string} [globals] that must be there, to know that it is the page */
const testFile = (environment, head, globals = '') => `
  ${environment && `/** @jest-environment ${environment} */`}
  ${head}
  test('attention', async () => { ${globals} ${body} }, 120000);
  test('instances that start at once', async () => {
    const all = await Promise.all([load(), load({ threads: 0 }), load()]);
    expect(all.map(({ variant }) => variant)).toEqual(Array(3).fill(all[0].variant));
  });`;

/** @param {Record<string, string>} files */
const app = (files) => createApp(files, join(toolFolder('testers'), 'apps'));

/** check.mjs as CommonJS: what Jest takes without a transform that this folder would have to name. */
const build = async (/** @type {string} */ folder) => {
  const { build: esbuild } = await import('esbuild');
  await esbuild({ entryPoints: [join(folder, 'check.mjs')], outfile: join(folder, 'check.cjs'), format: 'cjs' });
};

const page = "expect(document.createElement('p').nodeType).toBe(1);";
const jestCases = /** @type {const} */ ([
  ['no configuration', '', '', undefined],
  ['a page of jsdom', 'jest-environment-jsdom', page, 'jest-environment-jsdom'],
  ['a page of happy-dom', '@happy-dom/jest-environment', page, '@happy-dom/jest-environment'],
]);
for (const [name, environment, globals, needs] of jestCases) {
  const skip = lacks('testers', 'jest') || (needs ? lacks('testers', needs) : false);
  test(`Jest: require, ${name}`, { skip }, async () => {
    const folder = app({ 'attention.test.js': testFile(environment, required, globals) });
    await build(folder);
    runIn([process.execPath, toolFile('testers', 'jest/bin/jest.js'), '--rootDir', folder, '--watchman=false'], folder);
  });
}

test('Jest: import, where it runs modules', { skip: lacks('testers', 'jest') }, () => {
  const folder = app({ 'attention.test.mjs': testFile('', imported) });
  const jest = [toolFile('testers', 'jest/bin/jest.js'), '--rootDir', folder, '--watchman=false'];
  // As its documentation has it: the flag, and a pattern for .mjs.
  runIn([process.execPath, '--experimental-vm-modules', ...jest, '--testMatch', '**/*.test.mjs'], folder);
});

const vitest = 'vitest/vitest.mjs';
for (const environment of ['node', 'jsdom', 'happy-dom']) {
  test(`vitest: environment ${environment}`, { skip: lacks('testers', 'vitest') }, () => {
    const head = `import { expect, test } from 'vitest'; ${imported}`;
    const folder = app({ 'attention.test.js': testFile('', head, environment === 'node' ? '' : page) });
    const args = environment === 'node' ? [] : ['--environment', environment];
    const said = runIn([process.execPath, toolFile('testers', vitest), 'run', ...args], folder, { NO_COLOR: '1' });
    assert.match(said, /Tests +2 passed/);
  });
}
