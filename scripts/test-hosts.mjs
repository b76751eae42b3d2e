/**
 * The packed package in every host: engines, bundlers, test runners and browsers, which are installed where they are missing.
 *
 *   npm run test:hosts                        everything
 *   npm run test:hosts -- --only engines      some parts (and what they need)
 */

import { join } from 'node:path';
import { bootstrap } from './bootstrap.mjs';
import { ensureChromium } from './chromium.mjs';
import { ensureBrowsers } from './hosts/browsers.mjs';
import { ensureTools } from './hosts/tools.mjs';
import { isMain, runMain } from './lib/exec.mjs';
import { runNodeTests } from './lib/node-tests.mjs';
import { NO_CASES } from './lib/parts.mjs';
import { partsCommand } from './lib/parts-command.mjs';
import { ROOT } from './lib/project.mjs';

/**
 * @param {import('./lib/log.mjs').Log} log
 * @returns {import('./lib/parts.mjs').Part[]}
 */
function hostParts(log) {
  /** @param {string} name @param {NodeJS.ProcessEnv} [env] */
  const tests = (name, env = process.env) =>
    runNodeTests({
      name: `hosts-${name}`,
      folder: join(ROOT, 'tests/hosts', name),
      env: { ...env, NEXT_TELEMETRY_DISABLED: '1' },
      // One host at a time: some of them take all cores and much memory.
      flags: ['--test-concurrency=1'],
    });
  /** @type {ReturnType<typeof ensureChromium> | undefined} */
  let browser;
  // The cases that need a browser skip themselves, by name, where there is none.
  const withChromium = async () => ({
    ...process.env,
    CHROMIUM: (await (browser ??= ensureChromium({ log }))).chromium,
  });
  return [
    {
      name: 'build',
      title: 'npm packages, toolchain and the package',
      run: async () => {
        const { env } = await bootstrap({ log });
        const { build } = await import('./build.mjs');
        await build({ log, env });
        return NO_CASES;
      },
    },
    {
      name: 'engines',
      title: 'Node 20 to 26, Deno and Bun',
      after: ['build'],
      run: async () => {
        await ensureTools('engines', log);
        return tests('engines');
      },
    },
    {
      name: 'runners',
      title: 'test runners, simulated pages and older compilers',
      after: ['build'],
      run: async () => {
        await ensureTools('testers', log);
        return tests('runners');
      },
    },
    {
      name: 'bundlers',
      title: 'Vite, webpack, Rollup, esbuild, Parcel and Next.js, run in Chromium',
      after: ['build'],
      run: async () => {
        await ensureTools('bundlers', log);
        return tests('bundlers', await withChromium());
      },
    },
    {
      name: 'pages',
      title: 'pages, workers and extensions in Chromium',
      after: ['build'],
      run: async () => tests('pages', await withChromium()),
    },
    {
      name: 'browsers',
      title: 'Firefox and WebKit',
      after: ['build'],
      run: async () => {
        await ensureTools('testers', log);
        await ensureBrowsers(log);
        return tests('browsers');
      },
    },
  ];
}

if (isMain(import.meta.url))
  runMain(() =>
    partsCommand(process.argv.slice(2), { name: 'npm run test:hosts', parts: hostParts, lock: 'test-hosts' }),
  );
