/** The C++ fuzzers: which compiler has libFuzzer, the build, and one run of a fuzzer. */

import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tail, tryRun, which } from '../lib/exec.mjs';
import { buildPreset } from '../lib/native.mjs';
import { BUILD, logFile, ROOT } from '../lib/project.mjs';

/** Programs of tests/fuzz/native. */
export const NATIVE_TARGETS = ['attention', 'backward', 'cache', 'linear', 'weights'];

/** Longer inputs than any call reads. */
const LONGEST_INPUT = 400;

/**
 * @param {string} compiler
 * @returns {Promise<boolean>} whether it links libFuzzer
 */
async function hasLibFuzzer(compiler) {
  const folder = mkdtempSync(join(tmpdir(), 'sdpa-fuzz-'));
  try {
    const source = join(folder, 'empty.cpp');
    writeFileSync(source, 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n');
    const flags = ['-fsanitize=fuzzer,address,undefined', source, '-o', join(folder, 'empty')];
    return (await tryRun([compiler, ...flags])).status === 0;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * Builds the fuzzers, with Clang where it has libFuzzer, else with the default compiler and a driver of ours that follows no branches.
 *
 * @param {NodeJS.ProcessEnv} env
 * @param {import('../lib/log.mjs').Log} log
 */
export async function buildNativeFuzzers(env, log) {
  const clang = which('clang++', env.PATH);
  const withClang = clang !== undefined && (await hasLibFuzzer(clang));
  if (!withClang) log('no clang++ with libFuzzer: inputs are changed at random, without a look at what they reach');
  await buildPreset({ preset: 'native-fuzz', env: withClang ? { ...env, CXX: clang } : env });
}

/**
 * Runs a fuzzer on its corpus and then on changes of it. New inputs stay in the build folder, for the next run.
 *
 * @param {object} options
 * @param {string} options.target of {@link NATIVE_TARGETS}
 * @param {number} options.seconds
 * @param {number} options.seed
 * @returns {Promise<import('../lib/parts.mjs').Counts>}
 */
export async function runNativeFuzzer({ target, seconds, seed }) {
  const folder = join(BUILD, 'fuzz', target);
  mkdirSync(folder, { recursive: true });
  const corpus = join(ROOT, 'tests/fuzz/corpus', target);
  const command = [
    join(BUILD, 'native-fuzz/tests/fuzz/native', `sdpa_fuzz_${target}`),
    `-max_total_time=${seconds}`,
    `-seed=${seed}`,
    `-max_len=${LONGEST_INPUT}`,
    '-timeout=60',
    folder,
    ...(readdirSync(join(ROOT, 'tests/fuzz/corpus')).includes(target) ? [corpus] : []),
  ];
  const { status, output } = await tryRun(command, { cwd: folder, log: logFile(`fuzz-${target}`) });
  const runs = /Done (\d+) runs/.exec(output)?.[1];
  if (status !== 0 || runs === undefined) {
    process.stderr.write(`${tail(output, 40)}\n`);
    return { passed: 0, failed: 1, skipped: 0, notes: [`failed with seed ${seed}; the input is in ${folder}`] };
  }
  return { passed: 1, failed: 0, skipped: 0, notes: [`${runs} calls`] };
}
