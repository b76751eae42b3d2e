// The declarations in an older TypeScript, with the resolutions that the newest no longer has, right and wrong uses.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createApp } from '../helpers/apps.mjs';
import { lacks, toolFile } from '../helpers/tools.mjs';

const consumer = fileURLToPath(new URL('../../package/consumer/', import.meta.url));
const skip = lacks('testers', 'typescript-5');

/**
 * @param {string} folder
 * @param {string[]} files
 * @param {object} options
 */
function compile(folder, files, options) {
  const compilerOptions = { target: 'ES2022', lib: ['ES2022'], types: [], strict: true, noEmit: true, ...options };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
  const tsc = toolFile('testers', 'typescript-5/bin/tsc');
  const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', '.', '--pretty', 'false'], {
    cwd: folder,
    encoding: 'utf8',
  });
  return { status, stdout };
}

const uses = readdirSync(consumer).filter((name) => /^use.*ts$/.test(name));
for (const [name, options, files] of /** @type {[string, object, string[]][]} */ ([
  [
    'node10, CommonJS',
    { module: 'CommonJS', moduleResolution: 'node10' },
    uses.filter((file) => file.endsWith('.cts')),
  ],
  ['node10, modules', { module: 'ESNext', moduleResolution: 'node10' }, uses.filter((file) => file.endsWith('.mts'))],
  ['node16', { module: 'Node16', moduleResolution: 'Node16' }, uses],
  ['nodenext', { module: 'NodeNext', moduleResolution: 'NodeNext' }, uses],
  ['bundler', { module: 'ESNext', moduleResolution: 'Bundler' }, uses.filter((file) => file.endsWith('.mts'))],
])) {
  test(`TypeScript 5, resolution ${name}: right uses compile, wrong ones do not`, { skip }, () => {
    const folder = createApp({ 'globals.d.ts': 'declare const console: { log(...values: unknown[]): void };\n' });
    for (const file of files) cpSync(join(consumer, file), join(folder, file));
    const { status, stdout } = compile(folder, [...files, 'globals.d.ts'], options);
    assert.equal(status, 0, stdout);
  });
}

test('TypeScript 5: every line that is marked as wrong is wrong', { skip }, () => {
  const folder = createApp({
    'wrong.mts': `
      import { load } from 'sdpa';
      const sdpa = await load();
      const x = { data: new Float32Array(4), shape: [2, 2] };
      sdpa.attention(x, x, x, { causall: true });
      sdpa.attention(x, x);
      sdpa.attention([1, 2], x, x);
      await load({ variant: 'fast' });
      await load({ threads: 'many' });
      const out: string = sdpa.attention(x, x, x).out;`,
  });
  const { stdout } = compile(folder, ['wrong.mts'], { module: 'NodeNext', moduleResolution: 'NodeNext' });
  const lines = [...stdout.matchAll(/^wrong\.mts\((\d+),/gm)].map(([, line]) => Number(line));
  assert.deepEqual([...new Set(lines)], [5, 6, 7, 8, 9, 10], stdout);
});
