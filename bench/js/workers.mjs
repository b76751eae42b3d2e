/** Asynchronous calls on one worker and on two, against the call that runs on its own thread, within one build's process. */

import { load } from 'sdpa';
import { plainOperands, sameBits } from './calls.mjs';
import { isDecode } from './cases.mjs';
import { callsPerTurn, startMeter, WARM_UP_MS } from './pace.mjs';
import { Problem } from './problem.mjs';
import { shardedCalls } from './sharded-calls.mjs';
import { median } from './statistics.mjs';

/** @typedef {import('./cases.mjs').Case} Case */
/** @typedef {import('sdpa').Sdpa} Sdpa */

/** @typedef {{ sync: number, one: number, two: number }} WorkersTurn ms of the call on its own thread, on one worker and on two */

/** @typedef {() => Promise<Float32Array>} Call gives the result's numbers */

/** @typedef {{ call: Call, ready: () => boolean }} Timed `ready`: whether the workers run that it is about */

/** @typedef {Record<keyof WorkersTurn, Timed> & { dispose: () => void }} WorkerCalls */

/**
 * @param {Call} call
 * @param {number} [count]
 * @returns {Promise<number>} ms, median of the calls
 */
async function timeCalls(call, count = 1) {
  const ms = [];
  for (let i = 0; i < count; i++) {
    const start = performance.now();
    await call();
    ms.push(performance.now() - start);
  }
  return median(ms);
}

/** Workers start while a call runs: on a busy machine not within the first. */
const PATIENCE_MS = 20_000;

/**
 * @param {Call} call
 * @param {() => boolean} ready
 * @returns {Promise<number>} ms of the last call
 */
async function warmUp(call, ready) {
  const start = performance.now();
  for (;;) {
    const ms = await timeCalls(call);
    const elapsed = performance.now() - start;
    if (elapsed >= (ready() ? 2 * WARM_UP_MS : PATIENCE_MS)) return ms;
  }
}

/**
 * @param {Record<keyof WorkersTurn, Sdpa>} instances
 * @param {Case} c
 * @returns {Promise<WorkerCalls>}
 */
async function asyncCalls({ sync, one, two }, c) {
  const problem = new Problem(sync, c);
  const { query, key, value } = plainOperands(problem);
  const options = problem.positional;
  problem.run();
  problem.check();
  problem.dispose();
  /** @param {Sdpa} sdpa @returns {Call} */
  const on = (sdpa) => async () => (await sdpa.attentionAsync(query, key, value, options)).out.data;
  return {
    sync: { call: async () => sync.attention(query, key, value, options).out.data, ready: () => true },
    one: { call: on(one), ready: () => one.threads === 1 },
    two: { call: on(two), ready: () => two.threads === 2 },
    dispose: () => {},
  };
}

/**
 * @param {Sdpa} sdpa the build, for the call on its own thread
 * @param {Case} c
 * @param {number} turns each has all three, and begins with another one each time
 * @returns {Promise<{ turns: WorkersTurn[], load: import('./pace.mjs').Load }>}
 */
export async function timeWorkers(sdpa, c, turns) {
  const { variant } = sdpa;
  const [one, two] = await Promise.all([load({ variant, threads: 1 }), load({ variant, threads: 2 })]);
  try {
    const calls = await (isDecode(c) ? shardedCalls : asyncCalls)({ sync: sdpa, one, two }, c);
    const names = /** @type {const} */ (['sync', 'one', 'two']);
    const wanted = await calls.sync.call();
    let count = 1;
    for (const name of names) {
      if (!sameBits(await calls[name].call(), wanted)) throw new Error(`${name}: the result is not that of sync`);
      const ms = await warmUp(calls[name].call, calls[name].ready);
      if (name === 'sync') count = callsPerTurn(ms);
    }
    for (const name of names) if (!calls[name].ready()) throw new Error(`${name}: its workers do not run`);
    const meter = startMeter();
    /** @type {WorkersTurn[]} */
    const timed = [];
    for (let turn = 0; turn < turns; turn++) {
      const ms = { sync: 0, one: 0, two: 0 };
      for (let i = 0; i < names.length; i++) {
        const name = names[(turn + i) % names.length];
        ms[name] = await timeCalls(calls[name].call, count);
      }
      timed.push(ms);
    }
    calls.dispose();
    return { turns: timed, load: meter() };
  } finally {
    one.dispose();
    two.dispose();
  }
}
