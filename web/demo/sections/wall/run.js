// One run of the section: load a build, draw Q, K and V, attend, check. Knows nothing of the page itself.

import { load } from 'sdpa';
import { attendInBlocks, BlockPlan } from './blocks.js';
import { checkRows, sampleRows } from './check.js';
import { hashBits } from './hash.js';
import { fillNormal } from '../../parts/data.js';
import { Pace } from '../../parts/pace.js';

export const headDim = 64;

/** Seeds of query, key, value, and of the rows that are checked. */
export const seeds = { query: 1, key: 2, value: 3, rows: 4 };

export const rowsChecked = 16;

/** Passes that end sooner are repeated until this many milliseconds are spent, because clocks in browsers are coarse. */
const enough = 150;
/** Engines compile hot code anew, in the background: passes that come before this many milliseconds do not count if others follow. */
const warm = 100;
const mostPasses = 1000;

/**
 * @typedef {object} Setting
 * @property {number} tokens
 * @property {boolean} causal
 * @property {'auto' | import('sdpa').Variant} build
 * @property {number} threads workers; without any, this thread computes in slices
 */

/** @typedef {{ phase: 'load' | 'draw' | 'attend' | 'check', fraction: number, rows: number }} Progress */

/**
 * @typedef {object} Outcome
 * @property {import('sdpa').Variant} build the one in use
 * @property {number} milliseconds of one pass: inside sdpa.attention(), or from the call of attentionAsync() to its answer
 * @property {number} wall milliseconds of one pass with the rests between its slices
 * @property {number} passes that the two are the mean of
 * @property {number} gflops 4·L²·D operations per pass, half of them where causal
 * @property {number} blocks of query rows in one pass, where this thread computes; else 0
 * @property {number} slices of the whole run
 * @property {number} longestSlice in milliseconds
 * @property {{ held: number, peak: number, wasm: number }} memory of the instance
 * @property {number} inputs bytes of query, key and value
 * @property {number} output bytes of the result, an ordinary array
 * @property {number} maxError over the rows checked
 * @property {number} worstRow where it is
 * @property {number} rowsChecked
 * @property {number} threads workers that ran
 * @property {string} hash of the output's bits
 * @property {number[]} lastRow the first numbers of the output's last row
 */

/**
 * @param {Setting} setting
 * @param {{ signal?: AbortSignal, onProgress?: (progress: Progress) => void }} [options]
 * @returns {Promise<Outcome>}
 * @throws what load() and attention() throw; the signal's reason within one slice of its abort
 */
export async function run({ tokens, causal, build, threads }, { signal, onProgress } = {}) {
  const pace = new Pace(signal);
  onProgress?.({ phase: 'load', fraction: 0, rows: 0 });
  // An instance of its own: its memory figures are those of this run.
  const sdpa = await pace.wait(load({ variant: build, threads }));
  try {
    const [query, key, value] = await drawInputs(sdpa, [tokens, headDim], pace, onProgress);
    const problem = { query, key, value, tokens, headDim, causal };
    const out = new Float32Array(tokens * headDim);
    const times = await (threads > 0
      ? attendByWorkers(sdpa, problem, out, pace, { threads, signal, onProgress })
      : attend(sdpa, problem, out, pace, onProgress));
    const workers = sdpa.threads;
    const memory = sdpa.memory();
    const rows = sampleRows(tokens, rowsChecked, seeds.rows);
    const { maxError, row } = await checkRows(problem, out, rows, pace, (fraction) =>
      onProgress?.({ phase: 'check', fraction, rows: tokens }),
    );
    const hash = await hashBits(out, pace);
    await pace.rest();
    return {
      ...times,
      threads: workers,
      hash,
      build: sdpa.variant,
      gflops: (4 * tokens * tokens * headDim * (causal ? 0.5 : 1)) / times.milliseconds / 1e6,
      slices: pace.slices,
      longestSlice: pace.longest,
      memory,
      inputs: 3 * tokens * headDim * Float32Array.BYTES_PER_ELEMENT,
      output: out.byteLength,
      maxError,
      worstRow: row,
      rowsChecked: rows.length,
      lastRow: Array.from(out.subarray((tokens - 1) * headDim, (tokens - 1) * headDim + 4)),
    };
  } finally {
    sdpa.dispose();
  }
}

/**
 * Query, key and value: tensors of the instance, so that no call copies them in.
 * @param {import('sdpa').Sdpa} sdpa
 * @param {number[]} shape
 * @param {Pace} pace
 * @param {((progress: Progress) => void) | undefined} onProgress
 */
async function drawInputs(sdpa, shape, pace, onProgress) {
  const tensors = [];
  for (const seed of [seeds.query, seeds.key, seeds.value]) {
    const drawn = tensors.length;
    // Memory that is touched for the first time takes a while too.
    await pace.rest();
    const tensor = sdpa.tensor(shape);
    await pace.rest();
    await fillNormal(tensor, seed, pace, (fraction) =>
      onProgress?.({ phase: 'draw', fraction: (drawn + fraction) / 3, rows: 0 }),
    );
    tensors.push(tensor);
  }
  return tensors;
}

/**
 * The mean over as many passes as the clock needs. Where there are several the first ones only warm up.
 * @param {import('sdpa').Sdpa} sdpa
 * @param {Parameters<typeof attendInBlocks>[1]} problem
 * @param {Float32Array} out
 * @param {Pace} pace
 * @param {((progress: Progress) => void) | undefined} onProgress
 */
async function attend(sdpa, problem, out, pace, onProgress) {
  const plan = new BlockPlan();
  await pace.rest();
  const start = performance.now();
  const first = await attendInBlocks(sdpa, problem, out, plan, pace, (rows, fraction) =>
    onProgress?.({ phase: 'attend', fraction, rows }),
  );
  if (first.milliseconds >= enough) return { ...first, wall: performance.now() - start, passes: 1 };
  for (let spent = first.milliseconds; spent < warm;) {
    spent += (await attendInBlocks(sdpa, problem, out, plan, pace)).milliseconds;
  }
  let milliseconds = 0;
  let blocks = 0;
  let passes = 0;
  const again = performance.now();
  for (; milliseconds < enough && passes < mostPasses; passes++) {
    const pass = await attendInBlocks(sdpa, problem, out, plan, pace);
    milliseconds += pass.milliseconds;
    blocks += pass.blocks;
  }
  const wall = performance.now() - again;
  return { milliseconds: milliseconds / passes, wall: wall / passes, passes, blocks: Math.round(blocks / passes) };
}

/** Rows of the small calls by which the workers start. */
const startRows = 1024;
/** Milliseconds that a run waits for all of them: where some cannot start the others, or this thread, compute. */
const startTime = 5000;

/**
 * The same by attentionAsync(): the workers compute, this thread only sends and receives.
 * @param {import('sdpa').Sdpa} sdpa
 * @param {Parameters<typeof attendInBlocks>[1]} problem
 * @param {Float32Array} out
 * @param {Pace} pace
 * @param {{ threads: number, signal?: AbortSignal, onProgress?: (progress: Progress) => void }} options
 */
async function attendByWorkers(
  sdpa,
  { query, key, value, tokens, headDim: D, causal },
  out,
  pace,
  { threads, signal, onProgress },
) {
  const rows = Math.min(tokens, startRows);
  const part = (/** @type {{ data: Float32Array }} */ { data }) => ({
    data: data.subarray(0, rows * D),
    shape: [rows, D],
  });
  const until = performance.now() + startTime;
  do {
    await pace.wait(sdpa.attentionAsync(part(query), part(key), part(value), { signal }));
    await pace.rest();
  } while (sdpa.threads < threads && performance.now() < until);
  const hear = ({ done, total } = { done: 0, total: 1 }) =>
    onProgress?.({ phase: 'attend', fraction: done / total, rows: (tokens * done) / total });
  hear();
  let milliseconds = 0;
  let passes = 0;
  for (; passes === 0 || (milliseconds < enough && passes < mostPasses); passes++) {
    const start = performance.now();
    await pace.wait(
      sdpa.attentionAsync(query, key, value, { causal, out, signal, ...(passes === 0 && { onProgress: hear }) }),
    );
    milliseconds += performance.now() - start;
    await pace.rest();
  }
  return { milliseconds: milliseconds / passes, wall: milliseconds / passes, passes, blocks: 0 };
}
