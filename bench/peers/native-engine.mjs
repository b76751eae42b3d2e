/** The native kernels, through bench/native's program, and onnxruntime-node beside them. */

import { run } from '../../scripts/lib/exec.mjs';
import { caseName } from '../js/cases.mjs';
import { NATIVE_CONTESTANTS } from './contestants.mjs';
import { nodeEngine } from './node-engine.mjs';
import { shapeCalled } from './shapes.mjs';

/** Instruction sets that are compared; the others are for older machines and for tests. */
const KERNELS = ['avx512', 'avx2_fma'];

/**
 * @param {string} kernels
 * @param {readonly string[]} listed names of the program's benchmarks
 * @returns {import('./contestants.mjs').Contestant}
 */
const contestant = (kernels, listed) => ({
  id: `sdpa-${kernels}`,
  library: 'sdpa',
  way: kernels,
  offers: (c) => listed.includes(benchmarkName(c, kernels)),
  prepare: () => Promise.reject(new Error('it runs in a program of its own')),
});

/** @param {import('../js/cases.mjs').Case} c @param {string} kernels */
const benchmarkName = (c, kernels) => `${caseName(c)}/kernels:${kernels}`;

/**
 * @param {string} output of the program with --benchmark_format=json
 * @returns {number} ms, wall time of a call
 */
export function parseBenchmark(output) {
  const [found] = JSON.parse(output).benchmarks;
  if (!found || found.error_occurred) throw new Error(found?.error_message ?? 'the native bench ran nothing');
  if (found.time_unit !== 'ms') throw new Error(`the native bench measures in ${found.time_unit}, not ms`);
  return found.real_time;
}

/**
 * @param {object} options
 * @param {string} options.program bench/native's
 * @param {number} options.limitMs for one answer of onnxruntime-node
 * @returns {Promise<import('./node-engine.mjs').Engine>}
 */
export async function nativeEngine({ program, limitMs }) {
  const listed = (await run([program, '--benchmark_list_tests'])).stdout.trim().split('\n');
  const kernels = KERNELS.filter((name) => listed.some((one) => one.endsWith(`/kernels:${name}`)));
  const node = await nodeEngine({ id: 'native', program: process.execPath, limitMs, contestants: NATIVE_CONTESTANTS });
  return {
    ...node,
    label: 'native code',
    contestants: [...kernels.map((name) => contestant(name, listed)), ...NATIVE_CONTESTANTS],
    async player(id, nickname) {
      const name = kernels.find((one) => id === `sdpa-${one}`);
      if (name === undefined) return node.player(id, nickname);
      /** @param {number} leastMs */
      const measure = async (leastMs) => {
        const { stdout } = await run([
          program,
          `--benchmark_filter=^${benchmarkName(shapeCalled(nickname), name)}$`,
          `--benchmark_min_time=${Math.max(leastMs, 1) / 1000}`,
          '--benchmark_format=json',
        ]);
        return parseBenchmark(stdout);
      };
      return {
        // Its results are compared with float64 by the C++ tests, not here.
        prepare: async () => ({ firstMs: await measure(1) }),
        turn: async (leastMs) => [await measure(leastMs)],
        pid: undefined,
        close: async () => {},
      };
    },
  };
}
