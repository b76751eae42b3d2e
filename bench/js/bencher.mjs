/**
 * One build in a process of its own: loads it, sets cases up, and times them turn by turn as it is told to by message.
 * A process for each, because relaxed SIMD is behind a flag in some engines, and because neither code nor memory of one
 * build can then influence another.
 */

import { features, load } from 'sdpa';
import { isMain } from '../../scripts/lib/exec.mjs';
import { backwardMemory } from './backward-memory.mjs';
import { Bandwidth } from './bandwidth.mjs';
import { blockCalls } from './block-calls.mjs';
import { cacheCalls } from './cache-calls.mjs';
import { timeArrays, timeSmallest } from './calls.mjs';
import { BACKWARD_MEMORY_CASE, CASES, caseName, isDecode, keyValueBytes, MEMORY_CASE } from './cases.mjs';
import { Ceiling } from './ceiling.mjs';
import { SETS } from './comparisons.mjs';
import { gradientCalls } from './gradient-calls.mjs';
import { optionCalls } from './option-calls.mjs';
import { callsPerTurn, repeatFor, startMeter, WARM_UP_MS } from './pace.mjs';
import { Problem } from './problem.mjs';
import { allowRelaxedSimd } from './relaxed.mjs';
import { atPosition } from './stack.mjs';
import { timeTogether } from './together.mjs';
import { warmUpSmaller } from './warm-up.mjs';
import { weightCalls } from './weight-calls.mjs';
import { timeWorkers } from './workers.mjs';

/** @typedef {import('./cases.mjs').Case} Case */
/** @typedef {import('sdpa').Variant} Variant */

/** @typedef {import('./ceiling.mjs').Rates & { read?: number }} Rates GFLOP/s; in decode `read`, GB/s */

/** @typedef {{ ms: number[], before: Rates, after: Rates, load: import('./pace.mjs').Load }} Turn */

/** @param {string} name @returns {Case} */
function caseOf(name) {
  const found = CASES.find((c) => caseName(c) === name);
  if (!found) throw new Error(`there is no case ${name}`);
  return found;
}

/** Most turns of calls that take seconds: a slow moment of the machine is short beside them. */
const SLOW_TURNS = 2;

/** How each group of comparisons is set up. */
const SUBJECTS = {
  options: optionCalls,
  blocks: blockCalls,
  caches: cacheCalls,
  backward: gradientCalls,
  weights: weightCalls,
};

class Bencher {
  /** @type {import('sdpa').Sdpa | undefined} */
  #sdpa;
  /** @type {Ceiling | undefined} */
  #ceiling;
  /** @type {Problem | undefined} */
  #problem;
  /** @type {Bandwidth | undefined} */
  #bandwidth;
  /** Calls of a turn, and those that were timed so far. */
  #calls = 1;
  #timed = 0;

  get sdpa() {
    if (!this.#sdpa) throw new Error('start() comes first');
    return this.#sdpa;
  }

  /**
   * @param {Variant} variant
   * @returns {Promise<{ skipped?: string, arithmetic?: string, fused?: boolean }>} `skipped`: why it does not run here
   */
  async start(variant) {
    if (variant === 'relaxed') allowRelaxedSimd();
    const { simd, relaxed, relaxedFused } = features();
    if (variant === 'relaxed' && !relaxed) return { skipped: 'this engine has no relaxed SIMD' };
    if (variant === 'simd' && !simd) return { skipped: 'this engine has no SIMD' };
    this.#sdpa = await load({ variant });
    const ceiling = (this.#ceiling = new Ceiling(variant));
    return { arithmetic: ceiling.arithmetic, ...(variant === 'relaxed' && { fused: relaxedFused }) };
  }

  /**
   * Sets a case up, and runs it until the engine has optimised its code.
   * @param {string} name
   * @returns {{ error: number }} largest error of the rows that were checked
   */
  prepare(name) {
    const found = caseOf(name);
    warmUpSmaller(this.sdpa, found);
    const problem = (this.#problem = new Problem(this.sdpa, found));
    this.#calls = callsPerTurn(repeatFor(() => problem.run(), WARM_UP_MS));
    const error = problem.check();
    if (isDecode(found)) this.#bandwidth = new Bandwidth(this.sdpa.variant, keyValueBytes(found));
    return { error };
  }

  /** @returns {Turn} the case's calls between two measurements of the peak, and in decode of the bandwidth */
  turn() {
    const problem = this.#problem;
    const ceiling = this.#ceiling;
    if (!problem || !ceiling) throw new Error('prepare() comes first');
    const bandwidth = this.#bandwidth;
    const rates = () => ({ ...ceiling.measure(), ...(bandwidth && { read: bandwidth.measure() }) });
    const meter = startMeter();
    const before = rates();
    const ms = Array.from({ length: this.#calls }, () =>
      atPosition(this.#timed++, () => {
        const start = performance.now();
        problem.run();
        return performance.now() - start;
      }),
    );
    return { ms, before, after: rates(), load: meter() };
  }

  finish() {
    this.#problem?.dispose();
    this.#problem = undefined;
    this.#bandwidth = undefined;
  }

  /** @returns {ReturnType<typeof timeSmallest>} */
  smallest() {
    return timeSmallest(this.sdpa);
  }

  /** @param {number} turns @returns {ReturnType<typeof timeArrays>} */
  arrays(turns) {
    return timeArrays(this.sdpa, turns);
  }

  /** @param {{ name: string, turns: number }} order @returns {ReturnType<typeof timeWorkers>} */
  workers({ name, turns }) {
    return timeWorkers(this.sdpa, caseOf(name), turns);
  }

  /**
   * Times calls of a set and its plain one in the same turns.
   * @param {{ set: string, kinds: readonly string[], turns: number }} order
   * @returns {Promise<{ facts: import('./subject.mjs').Subject['facts'] } & import('./together.mjs').Together>}
   */
  async together({ set: name, kinds, turns }) {
    const found = SETS.find((one) => one.name === name);
    if (!found) throw new Error(`there is no set ${name}`);
    const { calls, facts, slow = false, dispose } = await SUBJECTS[found.group](this.sdpa, found.case, kinds);
    try {
      return { facts, ...(slow ? timeTogether(calls, Math.min(turns, SLOW_TURNS), 0) : timeTogether(calls, turns)) };
    } finally {
      dispose();
    }
  }

  /**
   * One call of 32 768 × 32 768 causal, and what it took beside inputs and result.
   * @returns {{ ms: number, error: number, operands: number, peak: number, extra: number, wasm: number, wasmExtra: number }}
   *   bytes: of inputs and result; most that was allocated at once; that without inputs and result, which counts the
   *   instance's own block; and the size of the wasm memory, whole and beside inputs and result
   */
  memory() {
    const { sdpa } = this;
    warmUpSmaller(sdpa, MEMORY_CASE);
    const problem = new Problem(sdpa, MEMORY_CASE);
    const start = performance.now();
    problem.run();
    const ms = performance.now() - start;
    const error = problem.check(3);
    const operands = problem.bytes;
    const { peak, wasm } = sdpa.memory();
    problem.dispose();
    return { ms, error, operands, peak, extra: peak - operands, wasm, wasmExtra: wasm - operands };
  }

  /** @returns {ReturnType<typeof backwardMemory>} */
  backwardMemory() {
    return backwardMemory(this.sdpa, BACKWARD_MEMORY_CASE);
  }
}

/** @typedef {keyof Bencher & ('start' | 'prepare' | 'turn' | 'finish' | 'smallest' | 'arrays' | 'workers' | 'together' | 'memory' | 'backwardMemory')} Method */
/** @typedef {{ [M in Method]: Awaited<ReturnType<Bencher[M]>> }} Answers */
/** @typedef {{ [M in Method]: Parameters<Bencher[M]>[0] }} Arguments */

if (isMain(import.meta.url)) {
  const bencher = new Bencher();
  process.on('message', async (/** @type {{ method: Method, argument: any }} */ { method, argument }) => {
    try {
      process.send?.({ result: await /** @type {(argument: any) => any} */ (bencher[method]).call(bencher, argument) });
    } catch (error) {
      process.send?.({ error: error instanceof Error ? error.message : String(error) });
    }
  });
}
