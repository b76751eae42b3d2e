/** What the benches measure, each function one thing, with the results as the JSON file has them. */

import { build as bundle } from 'esbuild';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { run } from '../../scripts/lib/exec.mjs';
import { bytes, caseName, flops, isDecode } from './cases.mjs';
import { otherLoad } from './pace.mjs';
import { BenchProcess } from './process.mjs';
import { median } from './statistics.mjs';

/** @typedef {import('./cases.mjs').Case} Case */
/** @typedef {import('./bencher.mjs').Turn} Turn */
/** @typedef {import('sdpa').Variant} Variant */

/**
 * @typedef {object} Timing of one build in one case
 * @property {Variant} variant
 * @property {number} ms median of all calls
 * @property {number} msMin
 * @property {number} calls
 * @property {number} gflops
 * @property {number} [gbps] in decode, where memory is the limit: least traffic over time, in 10^9 bytes a second
 * @property {number} [read] in decode: GB/s of a loop that only reads as many bytes as keys and values have, measured around the case
 * @property {number} [overLimit] in decode: time over the least that it can take, which is that of reading or that of computing
 *   at the peak of `loop`, whichever is longer. Median of the turns
 * @property {{ arithmetic: string, registers: number, loop: number }} peak GFLOP/s measured around the case
 * @property {number} shareOfRegisters median of the turns' GFLOP/s over the peak before and after each
 * @property {number} shareOfLoop
 * @property {number} error largest absolute error of the rows that were checked
 * @property {number} otherLoad share of the machine's processors that other processes used meanwhile
 */

/** @typedef {{ name: string, nickname: string, flops: number, bytes: number, timings: Timing[] }} CaseResult */

/**
 * Times a case in turns that go round the builds, so that a slow moment of the machine meets all of them.
 * @param {Case} c
 * @param {{ process: BenchProcess, arithmetic: string }[]} builds
 * @param {number} turns
 * @returns {Promise<CaseResult>}
 */
export async function timeCase(c, builds, turns) {
  const name = caseName(c);
  /** @type {{ variant: Variant, arithmetic: string, error: number, turns: Turn[] }[]} */
  const found = [];
  for (const { process, arithmetic } of builds) {
    const { error } = await process.ask('prepare', name);
    found.push({ variant: process.variant, arithmetic, error, turns: [] });
  }
  for (let turn = 0; turn < turns; turn++) {
    // Each round starts with another build.
    for (let i = 0; i < builds.length; i++) {
      const at = (i + turn) % builds.length;
      found[at].turns.push(await builds[at].process.ask('turn'));
    }
  }
  for (const { process } of builds) await process.ask('finish');
  return {
    name,
    nickname: c.nickname,
    flops: flops(c),
    bytes: bytes(c),
    timings: found.map((build) => timing(c, build)),
  };
}

/**
 * @param {Case} c
 * @param {{ variant: Variant, arithmetic: string, error: number, turns: Turn[] }} build
 * @returns {Timing}
 */
function timing(c, { variant, arithmetic, error, turns }) {
  const all = turns.flatMap(({ ms }) => ms);
  const ms = median(all);
  /** @param {'registers' | 'loop'} loop */
  const peak = (loop) => median(turns.flatMap(({ before, after }) => [before[loop], after[loop]]));
  /** @param {'registers' | 'loop'} loop */
  const share = (loop) =>
    median(turns.map((turn) => flops(c) / median(turn.ms) / 1e6 / ((turn.before[loop] + turn.after[loop]) / 2)));
  return {
    variant,
    ms,
    msMin: Math.min(...all),
    calls: all.length,
    gflops: flops(c) / ms / 1e6,
    ...(isDecode(c) && {
      gbps: bytes(c) / ms / 1e6,
      read: median(turns.flatMap(({ before, after }) => [before.read ?? NaN, after.read ?? NaN])),
      overLimit: median(turns.map((turn) => median(turn.ms) / leastMs(c, turn))),
    }),
    peak: { arithmetic, registers: peak('registers'), loop: peak('loop') },
    shareOfRegisters: share('registers'),
    shareOfLoop: share('loop'),
    error,
    otherLoad: otherLoad(turns.map(({ load }) => load)),
  };
}

/**
 * @param {Case} c
 * @param {Turn} turn
 * @returns {number} ms that reading everything once or the multiplications and additions take at the speeds around the turn
 */
export function leastMs(c, { before, after }) {
  /** @param {'read' | 'loop'} what */
  const speed = (what) => ((before[what] ?? NaN) + (after[what] ?? NaN)) / 2;
  return Math.max(bytes(c) / speed('read'), flops(c) / speed('loop')) / 1e6;
}

/** @typedef {{ variant: Variant } & import('./bencher.mjs').Answers['memory']} Memory */
/** @typedef {{ variant: Variant } & import('./bencher.mjs').Answers['backwardMemory']} BackwardMemory */

/**
 * @param {Variant} variant
 * @returns {Promise<Memory>}
 */
export const measureMemory = (variant) => inFreshProcess(variant, 'memory');

/**
 * @param {Variant} variant
 * @returns {Promise<BackwardMemory>}
 */
export const measureBackwardMemory = (variant) => inFreshProcess(variant, 'backwardMemory');

/**
 * A process of its own, so that the peak is this case's alone.
 * @template {'memory' | 'backwardMemory'} M
 * @param {Variant} variant
 * @param {M} method
 */
async function inFreshProcess(variant, method) {
  const process = new BenchProcess(variant);
  try {
    const { skipped } = await process.ask('start', variant);
    if (skipped) throw new Error(`memory cannot be measured with the ${variant} build: ${skipped}`);
    return { variant, ...(await process.ask(method)) };
  } finally {
    process.close();
  }
}

/** @typedef {{ variant: 'auto' | Variant, chosen: Variant, importMs: number, loadMs: number, callMs: number, loadToResultMs: number, loadToResultMsMin: number }} FirstResult medians, and the least */

/**
 * What samples of the way to the first result say together.
 * @param {'auto' | Variant} variant
 * @param {readonly { chosen: Variant, importMs: number, loadMs: number, callMs: number }[]} samples
 * @returns {FirstResult}
 */
export function firstResultOf(variant, samples) {
  /** @param {'importMs' | 'loadMs' | 'callMs'} what */
  const middle = (what) => median(samples.map((sample) => sample[what]));
  const sums = samples.map(({ loadMs, callMs }) => loadMs + callMs);
  return {
    variant,
    chosen: samples[0].chosen,
    importMs: middle('importMs'),
    loadMs: middle('loadMs'),
    callMs: middle('callMs'),
    loadToResultMs: median(sums),
    loadToResultMsMin: Math.min(...sums),
  };
}

/**
 * From nothing to the first result, each time in a fresh process.
 * @param {'auto' | Variant} variant
 * @param {number} repeats
 * @returns {Promise<FirstResult>}
 */
export async function measureFirstResult(variant, repeats) {
  const script = fileURLToPath(new URL('first-result.mjs', import.meta.url));
  /** @type {{ chosen: Variant, importMs: number, loadMs: number, callMs: number }[]} */
  const samples = [];
  for (let i = 0; i < repeats; i++) {
    const { stdout } = await run([process.execPath, script, variant]);
    samples.push(JSON.parse(stdout));
  }
  return firstResultOf(variant, samples);
}

/**
 * @typedef {object} Sizes bytes
 * @property {number} entryGzip the default entry with all its builds: bundled, minified, gzipped
 * @property {Record<Variant, { raw: number, gzip: number }>} wasm
 */

/** @returns {Promise<Sizes>} */
export async function measureSizes() {
  const { outputFiles } = await bundle({
    entryPoints: [fileURLToPath(import.meta.resolve('sdpa'))],
    bundle: true,
    write: false,
    minify: true,
    format: 'esm',
    platform: 'browser',
  });
  /** @param {Uint8Array} content */
  const gzip = (content) => gzipSync(content, { level: 9 }).length;
  /** @param {Variant} variant */
  const wasm = (variant) => {
    const content = readFileSync(fileURLToPath(import.meta.resolve(`sdpa/wasm/sdpa.${variant}.wasm`)));
    return { raw: content.length, gzip: gzip(content) };
  };
  return {
    entryGzip: gzip(outputFiles[0].contents),
    wasm: { relaxed: wasm('relaxed'), simd: wasm('simd'), scalar: wasm('scalar') },
  };
}
