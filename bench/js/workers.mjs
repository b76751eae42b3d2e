/** Asynchronous calls on one worker and on two, against the call that runs on its own thread, within one build's process. */

import { load } from 'sdpa';
import { plainOperands, sameBits } from './calls.mjs';
import { callsPerTurn, startMeter, WARM_UP_MS } from './pace.mjs';
import { Problem } from './problem.mjs';
import { median } from './statistics.mjs';

/** @typedef {import('./cases.mjs').Case} Case */
/** @typedef {import('sdpa').Sdpa} Sdpa */

/** @typedef {{ sync: number, one: number, two: number }} WorkersTurn ms of attention(), attentionAsync() on one worker and on two */

/** @typedef {() => Promise<Float32Array>} Call gives the result's numbers */

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
 * @param {Sdpa} sdpa the build, for the call on its own thread
 * @param {Case} c
 * @param {number} turns each has all three, and begins with another one each time
 * @returns {Promise<{ turns: WorkersTurn[], load: import('./pace.mjs').Load }>}
 */
export async function timeWorkers(sdpa, c, turns) {
  const problem = new Problem(sdpa, c);
  const { query, key, value } = plainOperands(problem);
  const options = problem.positional;
  problem.run();
  problem.check();
  const wanted = Float32Array.from(problem.out.data);
  problem.dispose();
  const { variant } = sdpa;
  const [one, two] = await Promise.all([load({ variant, threads: 1 }), load({ variant, threads: 2 })]);
  try {
    /** @type {Record<keyof WorkersTurn, Call>} */
    const calls = {
      sync: async () => sdpa.attention(query, key, value, options).out.data,
      one: async () => (await one.attentionAsync(query, key, value, options)).out.data,
      two: async () => (await two.attentionAsync(query, key, value, options)).out.data,
    };
    /** @type {Record<keyof WorkersTurn, () => boolean>} */
    const ready = { sync: () => true, one: () => one.threads === 1, two: () => two.threads === 2 };
    const names = /** @type {(keyof WorkersTurn)[]} */ (Object.keys(calls));
    let count = 1;
    for (const name of names) {
      if (!sameBits(await calls[name](), wanted)) throw new Error(`${name}: the result is not that of attention()`);
      const ms = await warmUp(calls[name], ready[name]);
      if (name === 'sync') count = callsPerTurn(ms);
    }
    if (!ready.one() || !ready.two()) {
      throw new Error(`1 and 2 workers were asked for, ${one.threads} and ${two.threads} run`);
    }
    const meter = startMeter();
    /** @type {WorkersTurn[]} */
    const timed = [];
    for (let turn = 0; turn < turns; turn++) {
      const ms = { sync: 0, one: 0, two: 0 };
      for (let i = 0; i < names.length; i++) {
        const name = names[(turn + i) % names.length];
        ms[name] = await timeCalls(calls[name], count);
      }
      timed.push(ms);
    }
    return { turns: timed, load: meter() };
  } finally {
    one.dispose();
    two.dispose();
  }
}
