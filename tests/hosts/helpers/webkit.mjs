// WebKitGTK's MiniBrowser, driven over WebDriver, on a display of its own.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const driver = '/usr/bin/WebKitWebDriver';
const needed = [driver, '/usr/bin/xvfb-run', '/usr/bin/xauth'];

/** @type {string | false} */
export const noWebKit = needed.every((file) => existsSync(file))
  ? false
  : 'no WebKit: install it (Debian: apt-get install webkit2gtk-driver xvfb xauth)';

/** A port that nothing listens on. @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
      server.close(() => resolve(port));
    });
  });
}

/**
 * @param {Record<string, string>} [switches] of JavaScriptCore, as environment variables
 * @returns {Promise<import('./sites-in.mjs').Driven>}
 */
export async function openWebKit(switches = {}) {
  const port = await freePort();
  const child = spawn('xvfb-run', ['-a', driver, '--host=127.0.0.1', `--port=${port}`], {
    env: { ...process.env, ...switches },
    stdio: 'ignore',
    // A group of its own, which ends as one: xvfb-run starts the display and the driver.
    detached: true,
  });
  const ended = new Promise((resolve) => child.on('close', resolve));
  const stop = async () => {
    if (child.pid && child.exitCode === null) process.kill(-child.pid, 'SIGTERM');
    await ended;
  };
  /** @param {string} method @param {string} path @param {object} [body] */
  const ask = async (method, path, body) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, body: body && JSON.stringify(body) });
    const { value } = /** @type {any} */ (await answer.json());
    if (!answer.ok) throw new Error(JSON.stringify(value));
    return value;
  };
  try {
    while (child.exitCode === null) {
      const up = await ask('GET', '/status').catch(() => null);
      if (up) break;
      await sleep(100);
    }
    const { sessionId, capabilities } = await ask('POST', '/session', {
      capabilities: {
        alwaysMatch: { 'webkitgtk:browserOptions': { args: ['--automation'] }, browserName: 'MiniBrowser' },
      },
    });
    const session = `/session/${sessionId}`;
    const run = (/** @type {string} */ script) => ask('POST', `${session}/execute/sync`, { script, args: [] });
    return {
      version: `WebKitGTK ${capabilities.browserVersion}`,
      report: async (url) => {
        await ask('POST', `${session}/url`, { url: 'about:blank' });
        await ask('POST', `${session}/url`, { url });
        for (let polls = 0; polls < 1200; polls++) {
          const text = await run('return globalThis.report === undefined ? null : JSON.stringify(globalThis.report)');
          if (text) return JSON.parse(text);
          await sleep(100);
        }
        throw new Error(`${url} leaves no report`);
      },
      close: async () => {
        await ask('DELETE', session).catch(() => {});
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
