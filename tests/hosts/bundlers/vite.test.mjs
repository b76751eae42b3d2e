// Vite with no configuration: development server, build, preview.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { runIn } from '../helpers/apps.mjs';
import { assertBundled, bundlerApp, startServer, twoWorkers } from '../helpers/bundle.mjs';
import { pageTest, visit, visitFolder } from '../helpers/chromium.mjs';
import { workersAllowed } from '../helpers/headers.mjs';
import { lacks, toolFile } from '../helpers/tools.mjs';

const skip = lacks('bundlers', 'vite');
const vite = (/** @type {string[]} */ ...args) => [process.execPath, toolFile('bundlers', 'vite/bin/vite.js'), ...args];

pageTest('Vite: the development server', skip, async () => {
  const server = await startServer(vite('--host', '127.0.0.1'), bundlerApp());
  try {
    assertBundled(await visit(`${server.url}/`, twoWorkers));
    assert.doesNotMatch(server.output(), /warn|error|externalized/i);
  } finally {
    await server.close();
  }
});

pageTest('Vite: build and preview', skip, async () => {
  const app = bundlerApp();
  assert.doesNotMatch(runIn(vite('build'), app), /warn|externalized/i);
  assert.deepEqual(
    readdirSync(join(app, 'dist/assets')).map((name) => name.replace(/^index-.*\./, '')),
    ['js'],
  );
  assertBundled(await visitFolder(join(app, 'dist'), twoWorkers, { headers: workersAllowed }));
  const server = await startServer(vite('preview', '--host', '127.0.0.1'), app);
  try {
    assertBundled(await visit(`${server.url}/`, twoWorkers));
  } finally {
    await server.close();
  }
});
