/**
 * One build in a process of its own: loads it, sets cases up, and times them turn by turn as it is told to by message.
 * A process for each, because relaxed SIMD is behind a flag in some engines, and because neither code nor memory of one
 * build can then influence another.
 */

import { features, load } from 'sdpa';
import { isMain } from '../../scripts/lib/exec.mjs';
import { machineTime } from '../machine-load.mjs';
import { CASES, caseName, MEMORY_CASE, SMALLEST_CASE } from './cases.mjs';
import { Ceiling } from './ceiling.mjs';
import { Problem } from './problem.mjs';
import { allowRelaxedSimd } from './relaxed.mjs';

/** @typedef {import('./cases.mjs').Case} Case */
/** @typedef {import('./ceiling.mjs').Rates} Rates */
/** @typedef {import('sdpa').Variant} Variant */

/** @typedef {{ busy: number, ours: number, total: number }} Load processor time in ms: used by all, by this process, there was */

/** @typedef {{ ms: number[], before: Rates, after: Rates, load: Load }} Turn */

/** At least so long is a turn's work on a case, and the warm-up before all turns. */
const TURN_MS = 40;
const WARM_UP_MS = 150;

/** @param {() => void} action @param {number} least ms */
function repeatFor(action, least) {
  const start = performance.now();
  do action();
  while (performance.now() - start < least);
}

class Bencher {
  /** @type {import('sdpa').Sdpa | undefined} */
  #sdpa;
  /** @type {Ceiling | undefined} */
  #ceiling;
  /** @type {Problem | undefined} */
  #problem;
  #calls = 1;

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
    const found = CASES.find((c) => caseName(c) === name);
    if (!found) throw new Error(`there is no case ${name}`);
    warmUpSmaller(this.sdpa, found);
    const problem = (this.#problem = new Problem(this.sdpa, found));
    const start = performance.now();
    let calls = 0;
    do {
      problem.run();
      calls++;
    } while (performance.now() - start < WARM_UP_MS);
    this.#calls = Math.max(1, Math.ceil((TURN_MS * calls) / (performance.now() - start)));
    return { error: problem.check() };
  }

  /** @returns {Turn} the case's calls between two measurements of the peak */
  turn() {
    const problem = this.#problem;
    const ceiling = this.#ceiling;
    if (!problem || !ceiling) throw new Error('prepare() comes first');
    const machine = machineTime();
    const own = process.cpuUsage();
    const before = ceiling.measure();
    const ms = Array.from({ length: this.#calls }, () => {
      const start = performance.now();
      problem.run();
      return performance.now() - start;
    });
    const after = ceiling.measure();
    const { user, system } = process.cpuUsage(own);
    const end = machineTime();
    return {
      ms,
      before,
      after,
      load: { busy: end.busy - machine.busy, ours: (user + system) / 1000, total: end.total - machine.total },
    };
  }

  finish() {
    this.#problem?.dispose();
    this.#problem = undefined;
  }

  /**
   * The smallest call: 4×4, D 8, one head.
   * @returns {{ resident: number, arrays: number }} µs a call, from and to wasm memory or JavaScript arrays
   */
  smallest() {
    const { sdpa } = this;
    const problem = new Problem(sdpa, SMALLEST_CASE);
    problem.run();
    problem.check();
    /** @param {import('sdpa').SdpaTensor} tensor */
    const plain = ({ data, shape }) => ({ data: data.slice(), shape });
    const [query, key, value] = [problem.query, problem.key, problem.value].map(plain);
    const options = { out: new Float32Array(problem.out.data.length) };
    const result = {
      resident: microseconds(() => problem.run()),
      arrays: microseconds(() => sdpa.attention(query, key, value, options)),
    };
    problem.dispose();
    return result;
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

/**
 * @param {() => void} call too short to be timed alone
 * @returns {number} µs, median of some batches
 */
function microseconds(call) {
  const batch = 2000;
  repeatFor(call, WARM_UP_MS);
  const samples = Array.from({ length: 15 }, () => {
    const start = performance.now();
    for (let i = 0; i < batch; i++) call();
    return ((performance.now() - start) / batch) * 1000;
  }).sort((a, b) => a - b);
  return samples[samples.length >> 1];
}

/** @typedef {keyof Bencher & ('start' | 'prepare' | 'turn' | 'finish' | 'smallest' | 'memory')} Method */
/** @typedef {{ [M in Method]: Awaited<ReturnType<Bencher[M]>> }} Answers */

if (isMain(import.meta.url)) {
  const bencher = new Bencher();
  process.on('message', async (/** @type {{ method: Method, argument: any }} */ { method, argument }) => {
    try {
      process.send?.({ result: await bencher[method](argument) });
    } catch (error) {
      process.send?.({ error: error instanceof Error ? error.message : String(error) });
    }
  });
}
