/**
 * Sets up what is missing, builds, and runs every test.
 *
 *   npm test                        everything
 *   npm test -- --only js,native    some parts (and what they need)
 */

import { join } from 'node:path';
import { bootstrap } from './bootstrap.mjs';
import { ensureChromium } from './chromium.mjs';
import { isMain, runMain } from './lib/exec.mjs';
import { buildPreset, runCtest } from './lib/native.mjs';
import { runNodeTests } from './lib/node-tests.mjs';
import { NO_CASES, SkipPart } from './lib/parts.mjs';
import { partsCommand } from './lib/parts-command.mjs';
import { BUILD, ROOT } from './lib/project.mjs';

const VARIANTS = ['simd', 'relaxed', 'scalar'];

/**
 * @param {import('./lib/log.mjs').Log} log
 * @returns {import('./lib/parts.mjs').Part[]}
 */
function testParts(log) {
  /** @type {import('./setup.mjs').Toolchain} */
  let toolchain;
  /** @type {Promise<Awaited<ReturnType<typeof ensureChromium>>> | undefined} */
  let browser;
  const findBrowser = () => (browser ??= ensureChromium({ log }));
  const tests = join(ROOT, 'tests');

  /** @param {string} preset */
  const native = async (preset) => {
    await buildPreset({ preset, env: toolchain.env });
    return runCtest({ dir: join(BUILD, preset), name: preset, env: toolchain.env });
  };
  return [
    {
      name: 'setup',
      title: 'npm packages and toolchain',
      run: async () => {
        toolchain = await bootstrap({ log });
        return NO_CASES;
      },
    },
    {
      name: 'build',
      title: 'the WebAssembly builds and the package',
      after: ['setup'],
      run: async () => {
        const { build } = await import('./build.mjs');
        await build({ log, env: toolchain.env });
        return NO_CASES;
      },
    },
    {
      name: 'scripts',
      title: 'the command scripts themselves',
      after: ['setup'],
      run: () => runNodeTests({ name: 'scripts', folder: join(ROOT, 'scripts') }),
    },
    {
      name: 'architecture',
      title: 'the arrows between the folders',
      after: ['setup'],
      run: () => runNodeTests({ name: 'architecture', folder: join(tests, 'architecture') }),
    },
    {
      name: 'native',
      title: 'C++ tests, optimised, with each instruction set of this machine',
      after: ['setup'],
      run: () => native('native-release'),
    },
    {
      name: 'native-asan',
      title: 'C++ tests without SIMD instructions under AddressSanitizer and UBSan',
      after: ['setup'],
      run: () => native('native-asan'),
    },
    ...VARIANTS.map((variant) => ({
      name: `js:${variant}`,
      title: `JavaScript tests with the ${variant} build in Node`,
      after: ['build'],
      run: () =>
        runNodeTests({
          name: `js-${variant}`,
          folder: join(tests, 'js'),
          env: { ...process.env, SDPA_VARIANT: variant },
        }),
    })),
    {
      name: 'package',
      title: 'the package as others install it',
      after: ['build'],
      run: async () => {
        // The cases that need a browser skip themselves, by name, where CHROMIUM is not set.
        const { chromium } = await findBrowser();
        return runNodeTests({ name: 'package', folder: join(tests, 'package'), env: withBrowser(chromium) });
      },
    },
    {
      name: 'browser',
      title: 'the demo page in Chromium',
      after: ['build'],
      run: async () => {
        const found = await findBrowser();
        if (!found.chromium) throw new SkipPart('reason' in found ? found.reason : 'no browser');
        return runNodeTests({ name: 'browser', folder: join(tests, 'browser'), env: withBrowser(found.chromium) });
      },
    },
  ];
}

/** @param {string | undefined} chromium @returns {NodeJS.ProcessEnv} */
const withBrowser = (chromium) => ({ ...process.env, CHROMIUM: chromium });

if (isMain(import.meta.url))
  runMain(() => partsCommand(process.argv.slice(2), { name: 'npm test', parts: testParts, lock: 'test' }));
