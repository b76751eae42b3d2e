// The package in Node 20 to 26, Deno and Bun.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { assertReport, createApp, fastest, runIn } from '../helpers/apps.mjs';
import { lacks, toolFile } from '../helpers/tools.mjs';

/**
 * @typedef {object} Engine
 * @property {string} name
 * @property {string} path
 * @property {string[]} [args] before the file's name
 * @property {string} best the build that is to be taken
 * @type {Engine[]}
 */
const engines = [
  // Has relaxed SIMD behind a flag.
  { name: 'Node 20', path: 'node-20/bin/node', best: 'simd' },
  { name: 'Node 22', path: 'node-22/bin/node', best: fastest },
  { name: 'Node 24', path: 'node-24/bin/node', best: fastest },
  { name: 'Node 26', path: 'node-26/bin/node', best: fastest },
  { name: 'Deno', path: '@deno/linux-x64-glibc/deno', args: ['run', '--no-prompt', '--allow-read'], best: fastest },
  // JavaScriptCore rounds twice, where the relaxed build gains nothing.
  { name: 'Bun', path: '@oven/bun-linux-x64/bin/bun', best: 'simd' },
];

const ask = 'check(sdpa, JSON.parse(process.argv[2])).then((report) => console.log(JSON.stringify(report)));';
const entries = ['sdpa', 'sdpa/slim', 'sdpa/slim/parts', 'sdpa/onnx', 'sdpa/torch', 'sdpa/jax', 'sdpa/io'];

/** @type {string | undefined} */
let made;
/** One folder for all engines: none writes into it. */
const app = () =>
  (made ??= createApp({
    'use.mjs': `import process from 'node:process'; import * as sdpa from 'sdpa'; import { check } from './check.mjs'; ${ask}`,
    'use.cjs': `const sdpa = require('sdpa'); import('./check.mjs').then(({ check }) => ${ask.replace(/;$/, '')});`,
    'entries.mjs': `const all = {}; for (const name of ${JSON.stringify(entries)}) all[name] = Object.keys(await import(name)).sort(); console.log(JSON.stringify(all));`,
    'slim.mjs': `
      import * as sdpa from 'sdpa/slim';
      import { check } from './check.mjs';
      const wasm = import.meta.resolve('sdpa/wasm/sdpa.simd.wasm');
      console.log(JSON.stringify(await check(sdpa, { threads: 0, wasm })));`,
  }));

/**
 * @param {Engine} engine
 * @param {string} file
 * @param {{ threads: number, least?: number }} [wanted]
 * @param {{ flags?: string[], env?: Record<string, string> }} [how]
 */
function run({ path, args = [] }, file, wanted, { flags = [], env = {} } = {}) {
  const command = [toolFile('engines', path), ...args, ...flags, file, ...(wanted ? [JSON.stringify(wanted)] : [])];
  return JSON.parse(runIn(command, app(), { DENO_NO_UPDATE_CHECK: '1', ...env }));
}

for (const engine of engines) {
  const skip = lacks('engines', engine.path);
  for (const threads of [0, 1, 2]) {
    test(`${engine.name}: import, ${threads} workers, and it ends by itself`, { skip }, () => {
      assertReport(run(engine, 'use.mjs', { threads, least: threads }), { variant: engine.best, threads });
    });
  }
  test(`${engine.name}: require, 2 workers, and it ends by itself`, { skip }, () => {
    assertReport(run(engine, 'use.cjs', { threads: 2, least: 2 }), { variant: engine.best, threads: 2 });
  });
  test(`${engine.name}: every entry can be imported`, { skip }, () => {
    const all = run(engine, 'entries.mjs');
    for (const name of entries) assert.ok(all[name].length > 0, name);
    assert.ok(all.sdpa.includes('load') && all['sdpa/io'].includes('readNpy'));
  });
  test(`${engine.name}: slim takes a file of the package`, { skip }, () => {
    assertReport(run(engine, 'slim.mjs'), { variant: 'simd', threads: 0 });
  });
}

/** @type {[string, string, { flags?: string[], env?: Record<string, string> }, string][]} */
const modes = [
  ['Node 20', 'with relaxed SIMD switched on', { flags: ['--experimental-wasm-relaxed-simd'] }, fastest],
  ...['Node 22', 'Node 24', 'Node 26'].flatMap(
    (name) =>
      /** @type {typeof modes} */ ([
        [name, 'without fused multiply-add', { flags: ['--no-enable-fma3'] }, 'simd'],
        [name, 'without SIMD', { flags: ['--no-enable-sse4-1'] }, 'scalar'],
      ]),
  ),
  ['Deno', 'without fused multiply-add', { flags: ['--v8-flags=--no-enable-fma3'] }, 'simd'],
  ['Deno', 'without SIMD', { flags: ['--v8-flags=--no-enable-sse4-1'] }, 'scalar'],
  ['Bun', 'without SIMD', { env: { BUN_JSC_useWasmSIMD: '0' } }, 'scalar'],
  ['Bun', 'without relaxed SIMD', { env: { BUN_JSC_useWasmRelaxedSIMD: '0' } }, 'simd'],
];
for (const [name, mode, how, variant] of modes) {
  const engine = /** @type {Engine} */ (engines.find((one) => one.name === name));
  test(
    `${name} ${mode}: the ${variant} build is taken, here and in its worker`,
    { skip: lacks('engines', engine.path) },
    () => {
      assertReport(run(engine, 'use.mjs', { threads: 1, least: 1 }, how), { variant, threads: 1 });
    },
  );
}

const deno = engines[4];
test(
  'Deno without any permission computes, on its one thread or on workers',
  { skip: lacks('engines', deno.path) },
  () => {
    const bare = { ...deno, args: ['run', '--no-prompt'] };
    const report = run(bare, 'use.mjs', { threads: 2 });
    assertReport(report, { variant: deno.best, threads: report.threads });
  },
);

// What npm test asks of the Node that runs it, asked of the others.
for (const { name, path } of engines.slice(0, 4)) {
  for (const file of ['tests/js/api/hosts.test.mjs', 'tests/js/pool/hosts.test.mjs']) {
    const same = name.split(' ')[1] === process.versions.node.split('.')[0];
    const skip = same ? 'npm test runs it with this Node' : lacks('engines', path);
    test(`${name} passes ${file}`, { skip }, () => {
      const root = fileURLToPath(new URL('../../..', import.meta.url));
      const report = runIn([toolFile('engines', path), '--test', '--test-reporter=tap', file], root, {
        SDPA_VARIANT: 'simd',
      });
      assert.match(report, /^# pass [1-9]/m);
    });
  }
}
