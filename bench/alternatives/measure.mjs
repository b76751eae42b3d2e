/** Times the methods at each length in the same rounds, so that a slow moment of the machine meets all of them. */

import { load as loadInstance } from 'sdpa';
import { callsPerTurn, otherLoad, repeatFor, startMeter, WARM_UP_MS } from '../js/pace.mjs';
import { median } from '../js/statistics.mjs';
import { unavailable } from './methods.mjs';
import { HEAD_DIM, recall } from './needle.mjs';
import { makeTask } from './task.mjs';

/** @typedef {import('./methods.mjs').Method} Method */
/** @typedef {import('./methods.mjs').Prepared} Prepared */

/**
 * @typedef {object} Row
 * @property {number} length
 * @property {number} ms median of the rounds
 * @property {number} extraBytes memory besides inputs and result: that the call took at its peak, and that the method holds
 * @property {number} recall
 * @property {number} otherLoad share of the machine that other processes used
 */

/** @typedef {{ name: string, what: string, isLinear: boolean, skipped?: string, rows: Row[] }} MethodResult */

/** Calls that take long have fewer rounds, so many ms for all of a method's; of one that takes longer the first call counts. */
const ROUNDS_MS = 10_000;

/**
 * @param {readonly Method[]} methods
 * @param {readonly number[]} lengths ascending
 * @param {{ variant: 'auto' | import('sdpa').Variant, seed: number, turns: number, onLength?: (length: number, results: MethodResult[]) => void }} options
 * @returns {Promise<{ variant: import('sdpa').Variant, results: MethodResult[] }>}
 */
export async function measureAlternatives(methods, lengths, { variant, seed, turns, onLength }) {
  /** @type {import('sdpa').Variant | undefined} */
  let found;
  const subjects = await Promise.all(
    methods.map(async (method) => {
      // An instance each: the peak of its memory is the method's.
      const sdpa = await loadInstance({ variant, threads: 0 });
      found = sdpa.variant;
      const { name, what, isLinear } = method;
      const skipped = unavailable(method, sdpa);
      /** @type {MethodResult} */
      const result = { name, what, isLinear, ...(skipped && { skipped }), rows: [] };
      return { method, sdpa, result };
    }),
  );
  const results = subjects.map(({ result }) => result);
  const running = subjects.filter(({ result }) => !result.skipped);
  for (const length of lengths) {
    const task = makeTask(length, seed);
    const calls = running.map(({ method, sdpa, result }) => begin(method, sdpa, result, task));
    timeRounds(calls, turns, length === lengths[0]);
    for (const { finish } of calls) finish();
    onLength?.(length, results);
  }
  for (const { sdpa } of subjects) sdpa.dispose();
  return { variant: /** @type {import('sdpa').Variant} */ (found), results };
}

/**
 * The first call, of which memory and recall are taken.
 * @param {Method} method
 * @param {import('sdpa').Sdpa} sdpa
 * @param {MethodResult} result
 * @param {import('./needle.mjs').Task} task
 */
function begin(method, sdpa, result, task) {
  const { length } = task;
  const make = (/** @type {Float32Array | undefined} */ data) => {
    const tensor = sdpa.tensor([length, HEAD_DIM]);
    if (data) tensor.data.set(data);
    return tensor;
  };
  const tensors = { query: make(task.query), key: make(task.key), value: make(task.value), out: make(undefined) };
  const { call, bytes } = method.prepare(sdpa, tensors, length);
  const { held } = sdpa.memory();
  const meter = startMeter();
  const start = performance.now();
  const { data } = call();
  const first = performance.now() - start;
  const load = meter();
  // A result outside of wasm memory was one inside while the call ran: it is no extra.
  const own = data === tensors.out.data ? 0 : length * HEAD_DIM * 4;
  const extraBytes = Math.max(0, sdpa.memory().peak - held - own) + bytes;
  /** @type {Row} */
  const row = { length, ms: first, extraBytes, recall: recall(task, data), otherLoad: 0 };
  const finish = () => {
    result.rows.push(row);
    for (const tensor of Object.values(tensors)) tensor.dispose();
  };
  return { call, first, load, row, finish };
}

/**
 * @param {{ call: () => unknown, first: number, load: import('../js/pace.mjs').Load, row: Row }[]} calls `first`: ms of the first call
 * @param {number} turns
 * @param {boolean} isFirst whether the engine has not optimised them yet
 */
function timeRounds(calls, turns, isFirst) {
  const timed = calls.map(({ call, first, load, row }) => {
    const ms = isFirst || first < WARM_UP_MS ? repeatFor(call, WARM_UP_MS) : first;
    const rounds = Math.min(turns, Math.floor(ROUNDS_MS / ms));
    return { call, row, rounds, count: callsPerTurn(ms), times: /** @type {number[]} */ ([]), loads: [load] };
  });
  for (let round = 0; round < turns; round++) {
    for (let i = 0; i < timed.length; i++) {
      const subject = timed[(round + i) % timed.length];
      if (subject.times.length >= subject.rounds) continue;
      const meter = startMeter();
      const start = performance.now();
      for (let n = 0; n < subject.count; n++) subject.call();
      subject.times.push((performance.now() - start) / subject.count);
      subject.loads.push(meter());
    }
  }
  for (const { row, times, loads } of timed) {
    if (times.length > 0) row.ms = median(times);
    row.otherLoad = otherLoad(loads);
  }
}
