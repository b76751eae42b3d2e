// Hosts in which workers are missing or forbidden, and what workers leave behind: nothing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jsonOf, runModule } from '../helpers/child.mjs';
import { VARIANT } from '../helpers/sdpa.mjs';

/**
 * Loads, computes both ways, and sees whether they agree.
 * @param {number} [least] workers that are to run in the end: on a busy machine a call may be over before they have started
 */
const compare = (least = 0) => `
  const { load } = await import('sdpa');
  const sdpa = await load({ variant: '${VARIANT}', threads: 2 });
  const data = Float32Array.from({ length: 2 * 700 * 32 }, (_, i) => Math.sin(i * i));
  const x = { data, shape: [2, 700, 32] };
  const want = sdpa.attention(x, x, x, { causal: true }).out.data;
  let same = true;
  do {
    const got = (await sdpa.attentionAsync(x, x, x, { causal: true })).out.data;
    same &&= want.every((number, i) => Object.is(number, got[i]));
  } while (sdpa.threads < ${least});`;
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
  ['without a process and without Worker', 'delete globalThis.process;', false],
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
    const got = jsonOf(`${setUp}\n${compare(threads ? 1 : 0)}\n${tell}`);
    assert.ok(got.same);
    if (threads === false) assert.equal(got.threads, 0);
  });
}

test('where code generation from strings is forbidden, workers run all the same', () => {
  const got = jsonOf(compare(1) + tell, { flags: ['--disallow-code-generation-from-strings'] });
  assert.ok(got.same);
});

test('preloaded modules of the process stay out of the workers', () => {
  const preload = `data:text/javascript,console.log('"preloaded"')`;
  const { stdout } = runModule(`${compare(1)} console.log(same)`, { flags: ['--import', preload] });
  assert.equal(stdout, '"preloaded"\ntrue\n');
});

test('an idle pool does not keep the process alive, nor does one with an aborted call', () => {
  for (const source of [
    `${compare(1)} globalThis.kept = sdpa; ${tell}`,
    `${compare(1)}
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
    ${compare(1)}
    const during = JSON.stringify(count());
    sdpa.dispose();
    while (process.getActiveResourcesInfo().some((kind) => /Worker|MessagePort/.test(kind))) {
      await new Promise((done) => setTimeout(done, 5));
    }
    // Node 24 loads its own undici, which leaves two symbols, with the first event of a MessageChannel.
    const added = Reflect.ownKeys(globalThis).map(String).filter((name) => !names.includes(name) && !name.startsWith('Symbol(undici.'));
    console.log(JSON.stringify({ same, during: during === before, after: JSON.stringify(count()) === before, added }));`);
  assert.deepEqual(got, { same: true, during: true, after: true, added: [] });
});

test('CommonJS has the same workers', () => {
  const got = jsonOf(
    compare(1).replace(
      "await import('sdpa')",
      "process.getBuiltinModule('node:module').createRequire(process.cwd() + '/x.js')('sdpa')",
    ) + tell,
  );
  assert.ok(got.same);
});
