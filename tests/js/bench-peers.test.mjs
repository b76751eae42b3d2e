// The bench against other libraries and the report of the benches have their tests beside them; none needs those libraries.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const bench = fileURLToPath(new URL('../../bench', import.meta.url));

// Else the runner takes itself for a part of this run.
const env = { ...process.env };
delete env.NODE_TEST_CONTEXT;

for (const folder of ['peers', 'report']) {
  test(`the tests in bench/${folder} pass`, async () => {
    const files = readdirSync(join(bench, folder, 'tests'))
      .filter((name) => name.endsWith('.test.mjs'))
      .map((name) => join(bench, folder, 'tests', name));
    const command = ['--test', '--test-reporter=tap', ...files];
    // A failure has the output as well.
    const { stdout } = await promisify(execFile)(process.execPath, command, { env }).catch((error) => error);
    const count = (/** @type {string} */ what) => Number(new RegExp(`^# ${what} (\\d+)$`, 'm').exec(stdout)?.[1]);
    assert.equal(count('fail') + count('skipped') + count('todo') + count('cancelled'), 0, stdout);
    assert.ok(count('pass') > files.length, stdout);
  });
}
