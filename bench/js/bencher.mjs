/**
 * One build in a process of its own: loads it, sets cases up, and times them turn by turn as it is told to by message.
 * A process for each, because relaxed SIMD is behind a flag in some engines, and because neither code nor memory of one
 * build can then influence another.
 */

import { features, load } from 'sdpa';
import { isMain } from '../../scripts/lib/exec.mjs';
import { Bandwidth } from './bandwidth.mjs';
import { timeArrays, timeSmallest } from './calls.mjs';
import { CASES, caseName, isDecode, keyValueBytes, MEMORY_CASE } from './cases.mjs';
import { Ceiling } from './ceiling.mjs';
import { callsPerTurn, repeatFor, startMeter, WARM_UP_MS } from './pace.mjs';
import { Problem } from './problem.mjs';
import { allowRelaxedSimd } from './relaxed.mjs';
import { atPosition } from './stack.mjs';
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
}

/**
 * Lets the engine optimise the code that a long case needs without waiting for the whole of it in unoptimised code.
 * @param {import('sdpa').Sdpa} sdpa
 * @param {Case} c
 */
function warmUpSmaller(sdpa, c) {
  const { batch, seqlenQ, seqlenKv } = c;
  const smaller = {
    ...c,
    batch: Math.min(batch, 2),
    seqlenQ: Math.min(seqlenQ, 256),
    seqlenKv: Math.min(seqlenKv, 256),
  };
  const problem = new Problem(sdpa, smaller);
  repeatFor(() => problem.run(), WARM_UP_MS);
  problem.dispose();
}

/** @typedef {keyof Bencher & ('start' | 'prepare' | 'turn' | 'finish' | 'smallest' | 'arrays' | 'workers' | 'memory')} Method */
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
