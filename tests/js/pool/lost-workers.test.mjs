// Workers that end, refuse to start or never answer: a call is never lost with them, and the next one works.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectUntil } from '../helpers/garbage.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import {
  assertSameBits,
  brokenPrograms,
  deafProgram,
  endsOfWorkers,
  longCall,
  mortal,
  untilWorkersRun,
  watchWorkers,
} from '../helpers/workers.mjs';

const { query, key, value } = longCall();
const options = { causal: true, returnLse: /** @type {const} */ (true) };

/** A program that ends its process's thread when it is sent its second slice. */
const shortLived = (/** @type {string} */ text) =>
  `let slices = 0; process.getBuiltinModule('node:worker_threads').parentPort.on('message', (m) => {
     if (m.type === 'slice' && ++slices === 2) process.exit(7); });${text}`;

for (const [how, kill] of endsOfWorkers) {
  for (const index of [0, 1]) {
    test(`a worker that is ${how} leaves its work to the others (${index ? 'the second' : 'the first'} one)`, async (t) => {
      let killed = 0;
      const { workers } = watchWorkers(t, {
        program: mortal,
        onSlice: (worker) => {
          if (killed === 0 && worker === workers[index] && worker.sent.length > 3) {
            killed++;
            kill(worker);
          }
        },
      });
      const sdpa = await loadVariant({ threads: 2 });
      const want = sdpa.attention(query, key, value, options);
      // Until both have started, and the one has got its slices.
      while (killed === 0) {
        assertSameBits(await sdpa.attentionAsync(query, key, value, options), want);
      }
      // Its end is noticed now or during a later call, and another takes its place.
      for (let i = 0; i < 10_000 && (workers.length < 3 || sdpa.threads < 2); i++) {
        assertSameBits(await sdpa.attentionAsync(query, key, value, options), want);
      }
      assert.equal(workers.length, 3);
      sdpa.dispose();
    });
  }
}

test('when every worker ends during each call, the rest is done on this thread', async (t) => {
  const { workers } = watchWorkers(t, { program: shortLived });
  const sdpa = await loadVariant({ threads: 2 });
  const want = sdpa.attention(query, key, value, options);
  for (let i = 0; i < 3; i++) assertSameBits(await sdpa.attentionAsync(query, key, value, options), want);
  assert.ok(workers.length > 1, 'the next call started no worker');
  sdpa.dispose();
});

test('a worker that throws something is lost, and the others do its work', async (t) => {
  const program = (/** @type {string} */ text, /** @type {number} */ index) =>
    index === 0
      ? `${text};process.getBuiltinModule('node:worker_threads').parentPort.on('message', (m) => { if (m.type === 'slice') throw new Error('no'); });`
      : text;
  watchWorkers(t, { program });
  const sdpa = await loadVariant({ threads: 2 });
  const want = sdpa.attention(query, key, value, options);
  for (let i = 0; i < 3; i++) assertSameBits(await sdpa.attentionAsync(query, key, value, options), want);
  sdpa.dispose();
});

for (const [how, program] of brokenPrograms) {
  test(`where workers ${how} everything runs on this thread`, async (t) => {
    const { workers } = watchWorkers(t, { program });
    const sdpa = await loadVariant({ threads: 3 });
    const want = sdpa.attention(query, key, value, options);
    for (let i = 0; i < 2; i++) assertSameBits(await sdpa.attentionAsync(query, key, value, options), want);
    assert.equal(sdpa.threads, 0);
    const { length } = workers;
    assertSameBits(await sdpa.attentionAsync(query, key, value, options), want);
    assert.equal(workers.length, length, 'it was tried again and again');
    sdpa.dispose();
  });
}

test('where workers never answer calls are begun on this thread, and no later one waits', async (t) => {
  const { workers } = watchWorkers(t, { program: deafProgram[1] });
  const sdpa = await loadVariant({ threads: 2 });
  const want = sdpa.attention(query, key, value, options);
  for (let i = 0; i < 3; i++) assertSameBits(await sdpa.attentionAsync(query, key, value, options), want);
  assert.equal(sdpa.threads, 0);
  assert.equal(workers.length, 2);
  sdpa.dispose();
  await Promise.all(workers.map((worker) => worker.threadId < 0 || new Promise((done) => worker.once('exit', done))));
});

test('a worker that is late takes over', async (t) => {
  const wait = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500);';
  const { slices } = watchWorkers(t, { program: (text) => wait + text });
  const sdpa = await loadVariant({ threads: 1 });
  const want = sdpa.attention(query, key, value, options);
  let calls = 0;
  // However fast this thread is, the worker starts at last.
  while (slices().length === 0) {
    assertSameBits(await sdpa.attentionAsync(query, key, value, options), want);
    calls++;
  }
  assert.ok(calls > 1, 'nothing was computed on this thread');
  assert.equal(sdpa.threads, 1);
  sdpa.dispose();
});

test('a worker that cannot be sent a compiled module gets the binary', async (t) => {
  const refuse = (/** @type {string} */ text) =>
    `const { parentPort } = process.getBuiltinModule('node:worker_threads');
     ${text};
     const handle = parentPort.onmessage;
     let refused = false;
     parentPort.onmessage = (event) => {
       if (event.data.module && !refused) { refused = true; parentPort.onmessageerror(event); } else handle(event);
     };`;
  const { workers } = watchWorkers(t, { program: refuse });
  const sdpa = await loadVariant({ threads: 1 });
  await untilWorkersRun(sdpa, 1);
  assertSameBits(await sdpa.attentionAsync(query, key, value, options), sdpa.attention(query, key, value, options));
  assert.equal(workers[0].sent.filter((/** @type {any} */ { type }) => type === 'start').length, 2);
  assert.equal(sdpa.threads, 1);
  sdpa.dispose();
});

test('an instance that is forgotten ends its workers', async (t) => {
  const { workers } = watchWorkers(t);
  await (async () => {
    const sdpa = await loadVariant({ threads: 1 });
    await sdpa.attentionAsync(query, key, value, options);
  })();
  let over = false;
  workers[0].once('exit', () => (over = true));
  await collectUntil(() => over);
});
