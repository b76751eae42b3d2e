// The page that bundlers are given, and what is asked of the result.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { assertReport, createApp, fastest } from './apps.mjs';
import { toolFolder } from './tools.mjs';

const page = `
import { features, load } from 'sdpa';
import { check } from '../check.mjs';
check({ features, load }, JSON.parse(decodeURIComponent(location.hash.slice(1)))).then(
  (report) => { globalThis.report = report; },
  (error) => { globalThis.report = { message: String(error && error.stack) }; },
);
`;

/** @param {string} script with its attributes */
export const html = (script) =>
  `<!doctype html><html lang="en"><meta charset="utf-8" /><title>page</title><link rel="icon" href="data:," /><script ${script}></script></html>`;

/**
 * A folder with index.html and src/index.js, among the bundlers' packages.
 * @param {Record<string, string>} [files]
 */
export const bundlerApp = (files = {}) =>
  createApp(
    { 'src/index.js': page, 'index.html': html('type="module" src="./src/index.js"'), ...files },
    join(toolFolder('bundlers'), 'apps'),
  );

/**
 * The page computed rightly on two workers made of its own text, and fetched nothing but its scripts.
 * @param {import('./chromium.mjs').Visit} visit
 */
export function assertBundled({ report, problems, requests, started }) {
  assert.deepEqual(problems, []);
  assertReport(report, { variant: fastest, threads: 2 });
  assert.deepEqual(started, ['classic blob:', 'classic blob:']);
  assert.deepEqual(
    requests.filter((url) => /\.wasm|worker/.test(url)),
    [],
  );
}

/** What the page is asked for. */
export const twoWorkers = { threads: 2, least: 2 };

/**
 * A server that a bundler runs.
 * @param {string[]} command
 * @param {string} cwd
 * @param {Record<string, string>} [env]
 * @returns {Promise<{ url: string, output: () => string, close: () => Promise<void> }>}
 */
export function startServer([program, ...args], cwd, env = {}) {
  const child = spawn(program, args, {
    cwd,
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, NO_COLOR: '1', FORCE_COLOR: undefined, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  const closed = new Promise((resolve) => child.on('close', resolve));
  const close = async () => {
    child.kill();
    await closed;
  };
  return new Promise((resolve, reject) => {
    const listen = (/** @type {Buffer} */ chunk) => {
      text += chunk;
      const url = /https?:\/\/(?:127\.0\.0\.1|localhost):\d+/.exec(text)?.[0];
      if (url) resolve({ url: url.replace('localhost', '127.0.0.1'), output: () => text, close });
    };
    child.stdout.on('data', listen);
    child.stderr.on('data', listen);
    child.on('error', reject);
    void closed.then((status) => reject(new Error(`${args.join(' ')} ended with status ${status}:\n${text}`)));
  });
}
