// Hosts in which workers are missing or forbidden, and what workers leave behind: nothing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jsonOf, runModule } from '../helpers/child.mjs';
import { VARIANT } from '../helpers/sdpa.mjs';

/** Loads, computes both ways, and tells whether they agree. */
const compare = `
  const { load } = await import('sdpa');
  const sdpa = await load({ variant: '${VARIANT}', threads: 2 });
  const data = Float32Array.from({ length: 2 * 700 * 32 }, (_, i) => Math.sin(i * i));
  const x = { data, shape: [2, 700, 32] };
  const want = sdpa.attention(x, x, x, { causal: true }).out.data;
  const got = (await sdpa.attentionAsync(x, x, x, { causal: true })).out.data;
  const same = Buffer.from(want.buffer).equals(Buffer.from(got.buffer));`;
const tell = 'console.log(JSON.stringify({ same, threads: sdpa.threads }));';

for (const [host, setUp, threads] of /** @type {[string, string, boolean | undefined][]} */ ([
  // Node's own workers need it, in some versions.
  ['without SharedArrayBuffer', 'delete globalThis.SharedArrayBuffer;', undefined],
  ['with a window, as in jsdom', 'globalThis.window = globalThis; globalThis.document = {};', true],
  ['whose process has no getBuiltinModule', 'process.getBuiltinModule = undefined;', false],
  [
    'whose Worker is of another kind and throws',
    "globalThis.Worker = class { constructor() { throw new Error('SecurityError'); } };",
    true,
  ],
  [
    'whose Worker of the other kind fails later',
    'globalThis.Worker = class { constructor() { setTimeout(() => this.onerror?.({ message: "no" })); } postMessage() {} terminate() {} };',
    true,
  ],
  ['without a process and without Worker', 'globalThis.Buffer = Buffer; delete globalThis.process;', false],
  [
    'that forbids threads',
    "process.getBuiltinModule('node:worker_threads').Worker = class { constructor() { throw new Error('not allowed'); } };",
    false,
  ],
  [
    'without MessageChannel and without threads',
    "delete globalThis.MessageChannel; process.getBuiltinModule('node:worker_threads').Worker = undefined;",
    false,
  ],
])) {
  const where = threads === undefined ? '' : threads ? ' on workers' : ' on its one thread';
  test(`a host ${host} computes the same${where}`, () => {
    const got = jsonOf(`${setUp}\n${compare}\n${tell}`);
    assert.ok(got.same);
    if (threads !== undefined) assert.equal(got.threads > 0, threads);
  });
}

test('where code generation from strings is forbidden, workers run all the same', () => {
  const got = jsonOf(compare + tell, { flags: ['--disallow-code-generation-from-strings'] });
  assert.ok(got.same && got.threads > 0);
});

test('preloaded modules of the process stay out of the workers', () => {
  const preload = `data:text/javascript,console.log('"preloaded"')`;
  const { stdout } = runModule(`${compare} console.log(same, sdpa.threads > 0)`, { flags: ['--import', preload] });
  assert.equal(stdout, '"preloaded"\ntrue true\n');
});

test('an idle pool does not keep the process alive, nor does one with an aborted call', () => {
  for (const source of [
    `${compare} globalThis.kept = sdpa; ${tell}`,
    `${compare}
     const controller = new AbortController();
     const call = sdpa.attentionAsync(x, x, x, { signal: controller.signal });
     controller.abort();
     await call.catch(() => {});
     globalThis.kept = sdpa; ${tell}`,
    // Aborted before the workers have started.
    `const { load } = await import('sdpa');
     globalThis.kept = await load({ variant: '${VARIANT}', threads: 2 });
     const x = { data: new Float32Array(700 * 32), shape: [700, 32] };
     const controller = new AbortController();
     const call = kept.attentionAsync(x, x, x, { signal: controller.signal });
     setTimeout(() => controller.abort());
     await call.catch(() => {});
     console.log('{"same":true}');`,
  ]) {
    const { status, stdout, stderr } = runModule(source);
    assert.equal(status, 0, stderr);
    assert.equal(JSON.parse(stdout).same, true);
  }
});

test('a running call keeps the process alive until it has its result', () => {
  const { status, stdout } = runModule(`
    import { load } from 'sdpa';
    const x = { data: new Float32Array(700 * 32).fill(1), shape: [700, 32] };
    for (const threads of [0, 2]) {
      void load({ variant: '${VARIANT}', threads }).then(async (sdpa) => {
        const { out } = await sdpa.attentionAsync(x, x, x);
        console.log(out.data[0]);
      });
    }`);
  assert.equal(status, 0);
  assert.equal(stdout, '1\n1\n');
});

test('workers add no listener to the process or its streams, print nothing and are gone after dispose()', () => {
  const got = jsonOf(`
    const emitters = [process, process.stdout, process.stderr, process.stdin];
    const count = () => emitters.map((of) => of.eventNames().map((name) => [String(name), of.listenerCount(name)]));
    const before = JSON.stringify(count());
    const names = Reflect.ownKeys(globalThis).map(String);
    ${compare}
    const during = JSON.stringify(count());
    sdpa.dispose();
    while (process.getActiveResourcesInfo().some((kind) => /Worker|MessagePort/.test(kind))) {
      await new Promise((done) => setTimeout(done, 5));
    }
    const added = Reflect.ownKeys(globalThis).map(String).filter((name) => !names.includes(name));
    console.log(JSON.stringify({ same, during: during === before, after: JSON.stringify(count()) === before, added }));`);
  assert.deepEqual(got, { same: true, during: true, after: true, added: [] });
});

test('CommonJS has the same workers', () => {
  const got = jsonOf(
    compare
      .replace("await import('sdpa')", "(await import('node:module')).createRequire(import.meta.url)('sdpa')")
      .replace('const { load } =', "import url from 'node:url'; const { load } =")
      .replace('createRequire(import.meta.url)', "createRequire(url.pathToFileURL(process.cwd() + '/x.js'))") + tell,
  );
  assert.ok(got.same && got.threads > 0);
});
