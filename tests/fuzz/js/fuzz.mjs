// Runs a fuzzer: node tests/fuzz/js/fuzz.mjs TARGET SECONDS [SEED [CASE]]
//
// Every case is drawn from the seed and its number, so that a failure is found again by them. The cases run on a worker; this thread sees
// to it that none hangs.

import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { Draw } from './draw.mjs';

/** No case takes a hundredth of it. */
const hangSeconds = 60;

/** Files of at most a few hundred kilobytes, limits of a megabyte: what the process takes besides is its own. */
const mostMegabytes = 1024;

const heartbeat = 500;

async function work() {
  const { target, seconds, seed, only, progress } = workerData;
  const { create } = await import(`./targets/${target}.mjs`);
  const run = await create();
  const end = performance.now() + 1000 * seconds;
  /** @type {Record<string, number>} */
  const outcomes = {};
  let index = only ?? 0;
  for (; only === undefined ? performance.now() < end : index === only; index++) {
    Atomics.store(progress, 0, index + 1);
    try {
      const outcome = run(new Draw(Math.imul(seed, 0x9e3779b1) + index)) ?? 'passed';
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    } catch (error) {
      const text = error instanceof Error ? error.stack : String(error);
      parentPort?.postMessage({ failed: `${target}, seed ${seed}, case ${index}: ${text}` });
      return;
    }
  }
  parentPort?.postMessage({ cases: index, outcomes });
}

/** @param {string[]} args */
function supervise([target, seconds, seed = '1', only]) {
  const progress = new Int32Array(new SharedArrayBuffer(4));
  const data = { target, seconds: Number(seconds), seed: Number(seed), progress };
  const worker = new Worker(new URL(import.meta.url), {
    workerData: only === undefined ? data : { ...data, only: Number(only) },
  });
  /** @param {string} message */
  const fail = (message) => {
    console.log(message);
    process.exit(1);
  };
  let [last, since] = [0, performance.now()];
  setInterval(() => {
    const now = Atomics.load(progress, 0);
    if (now !== last) [last, since] = [now, performance.now()];
    else if (performance.now() - since > 1000 * hangSeconds) fail(`${target}, seed ${seed}, case ${now - 1}: hangs`);
  }, heartbeat).unref();
  worker.on('error', (error) => fail(`${target}, seed ${seed}, case ${progress[0] - 1}: ${error.stack}`));
  worker.on('message', ({ failed, cases, outcomes }) => {
    if (failed) fail(failed);
    const megabytes = process.resourceUsage().maxRSS / 1024;
    if (megabytes > mostMegabytes) fail(`${target}, seed ${seed}: ${megabytes.toFixed(0)} MB were in use`);
    console.log(`${cases} cases, ${megabytes.toFixed(0)} MB: ${JSON.stringify(outcomes)}`);
  });
}

if (isMainThread) supervise(process.argv.slice(2));
else await work();
