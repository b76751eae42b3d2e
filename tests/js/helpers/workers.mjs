// Workers as the package starts them in Node, watched: how many there are, what they are sent, and ways to lose them.

import assert from 'node:assert/strict';
import { syncBuiltinESMExports } from 'node:module';
import threads from 'node:worker_threads';
import { randomSource } from './reference.mjs';

/**
 * @typedef {object} Watched
 * @property {any[]} workers in the order of their start; `sent` has the messages of each
 * @property {() => any[]} slices those that were sent, of all workers
 * @property {() => void} restore
 */

/**
 * Replaces the host's Worker until the test ends.
 * @param {import('node:test').TestContext} t
 * @param {{ program?: (text: string, index: number) => string, onSlice?: (worker: any, message: any) => void }} [options] `program`
 *   changes what the worker runs; `onSlice` is called after a slice has been sent
 * @returns {Watched}
 */
export function watchWorkers(t, { program = (text) => text, onSlice } = {}) {
  const { Worker } = threads;
  /** @type {any[]} */
  const workers = [];
  class Watching extends Worker {
    /** @type {any[]} */
    sent = [];

    /** @param {any} text @param {any} options */
    constructor(text, options) {
      super(program(text, workers.length), options);
      workers.push(this);
    }

    /** @override @param {any} message @param {any} transfer */
    postMessage(message, transfer) {
      const { type, id, keys, blocks, work, order } = message;
      const sizes = work && { heads: work.heads, rows: work.rows };
      this.sent.push({ type, id, keys: keys !== null, blocks: Boolean(blocks), work: sizes, order: order?.what });
      super.postMessage(message, transfer);
      if (type === 'slice') onSlice?.(this, message);
    }
  }
  const set = (/** @type {any} */ kind) => {
    threads.Worker = kind;
    syncBuiltinESMExports();
  };
  set(Watching);
  t.after(() => set(Worker));
  return {
    workers,
    slices: () => workers.flatMap(({ sent }) => sent.filter((/** @type {any} */ { type }) => type === 'slice')),
    restore: () => set(Worker),
  };
}

/** A worker's program that also ends its process's thread when it hears the word. @param {string} text */
export const mortal = (text) =>
  `process.getBuiltinModule('node:worker_threads').parentPort.on('message', (m) => { if (m === 'die') process.exit(7); });${text}`;

/** Ways to end a watched worker that runs a mortal program. @type {[string, (worker: any) => void][]} */
export const endsOfWorkers = [
  ['terminated', (worker) => void worker.terminate()],
  [
    'ended from inside',
    (worker) => Object.getPrototypeOf(worker.constructor.prototype).postMessage.call(worker, 'die'),
  ],
];

/** Programs of workers that never start, by what the workers do. @type {[string, () => string][]} */
export const brokenPrograms = [
  ['end at once', () => 'process.exit(3)'],
  ['are not understood', () => 'this is no program'],
  [
    'cannot start the module',
    () =>
      "process.getBuiltinModule('node:worker_threads').parentPort.postMessage({ type: 'failed', error: { message: 'no' } })",
  ],
];

/** And one that is never heard of. @type {[string, () => string]} */
export const deafProgram = ['never answer', () => 'setInterval(() => {}, 1000)'];

/** @param {ArrayBufferView} array */
const bytesOf = ({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength);

/**
 * The same results, bit by bit, and arrays of the caller's own.
 * @param {any} got
 * @param {any} want
 * @param {string} [message]
 */
export function assertSameBits(got, want, message = '') {
  assert.deepEqual(Object.keys(got), Object.keys(want), message);
  for (const name of Object.keys(want)) {
    assert.deepEqual([...got[name].shape], [...want[name].shape], `${message} ${name} shape`);
    const [a, b] = [got[name].data, want[name].data];
    if (bytesOf(a).equals(bytesOf(b))) continue;
    const bad = [...b.keys()].filter((i) => !Object.is(a[i], b[i]));
    assert.fail(
      `${message} ${name}: ${bad.length} of ${b.length} differ, [${bad[0]}] is ${a[bad[0]]} not ${b[bad[0]]}`,
    );
  }
}

/**
 * A call that is long enough for several slices on each of a few workers.
 * @param {number} [seed]
 */
export function longCall(seed = 1) {
  const random = randomSource(seed);
  return { query: random.tensor(2, 900, 32), key: random.tensor(2, 900, 32), value: random.tensor(2, 900, 32) };
}

/**
 * Calls until so many workers run: on a busy machine the first calls are over before all have started.
 * @param {import('sdpa').Sdpa} sdpa
 * @param {number} count
 */
export async function untilWorkersRun(sdpa, count) {
  const { query, key, value } = longCall();
  while (sdpa.threads < count) {
    await Promise.all([0, 1, 2].map(() => sdpa.attentionAsync(query, key, value)));
  }
}
