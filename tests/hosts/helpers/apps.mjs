// Fresh folders with the packed package installed, and what is expected of it there.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { arch, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { installPackage } from '../../package/install.mjs';

/** The files that hosts are given: check.mjs and what calls it. */
export const appFolder = fileURLToPath(new URL('../app/', import.meta.url));

/** @type {ReturnType<typeof installPackage> | undefined} */
let installed;

/** @type {string[]} */
const made = [];

// Here, and not where they are made: inside a test it would mean that test's end.
after(() => {
  installed?.remove();
  for (const folder of made) rmSync(folder, { recursive: true, force: true });
});

/** The package, packed and installed once for this file's tests. */
function install() {
  return (installed ??= installPackage());
}

/**
 * A folder of its own with package.json, node_modules/sdpa, check.mjs and the given files; gone after this file's tests.
 * @param {Record<string, string>} files
 * @param {string} [parent] where packages are found that the app uses besides
 * @returns {string}
 */
export function createApp(files, parent = tmpdir()) {
  const { folder } = install();
  mkdirSync(parent, { recursive: true });
  const app = mkdtempSync(join(parent, 'app '));
  made.push(app);
  cpSync(folder, app, { recursive: true });
  cpSync(join(appFolder, 'check.mjs'), join(app, 'check.mjs'));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(app, name)), { recursive: true });
    writeFileSync(join(app, name), text);
  }
  return app;
}

/**
 * @param {string[]} command
 * @param {string} cwd
 * @param {Record<string, string | undefined>} [env] besides this process's own
 * @returns {string} what it wrote to stdout; any end but status 0 fails with everything that it wrote
 */
export function runIn([program, ...args], cwd, env = {}) {
  const { status, signal, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, NODE_OPTIONS: undefined, ...env },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 1 << 26,
    // Nothing is measured: a process that does not end by itself is to be named, and not to stop all tests.
    timeout: 300_000,
    killSignal: 'SIGKILL',
  });
  const ended = `${program} ${args.join(' ')} ended with ${signal ?? `status ${status}`}`;
  assert.equal(status, 0, `${ended}\n${error ?? ''}${stdout}\n${stderr}`);
  return stdout;
}

/** Whether this processor multiplies and adds with one rounding, which engines use where they do so themselves. */
const hasFma = arch() === 'arm64' || /^flags\s*:.*\bfma\b/m.test(readText('/proc/cpuinfo'));

/** The build that load() is to take where relaxed SIMD is there: rounding twice, it gains nothing. */
export const fastest = hasFma ? 'relaxed' : 'simd';

/** The same in the Node that runs these tests: Node 20 has relaxed SIMD behind a flag. */
export const fastestHere = process.versions.node.startsWith('20.') ? 'simd' : fastest;

/** @param {string} file */
function readText(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/**
 * @param {import('../app/check.mjs').Report} report
 * @param {{ variant: string, threads: number }} wanted
 */
export function assertReport(report, { variant, threads }) {
  assert.equal(report.message, undefined, report.message);
  assert.equal(report.variant, variant);
  assert.ok(report.error <= 1e-6, `the largest error is ${report.error}`);
  assert.equal(report.same, true, 'attentionAsync() differs from attention()');
  assert.equal(report.threads, threads);
}
