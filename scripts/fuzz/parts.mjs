/** The fuzzers as parts of a command. */

import { availableParallelism } from 'node:os';
import { bootstrap } from '../bootstrap.mjs';
import { NO_CASES } from '../lib/parts.mjs';
import { JS_TARGETS, runJsFuzzer } from './js.mjs';
import { buildNativeFuzzers, NATIVE_TARGETS, runNativeFuzzer } from './native.mjs';

/**
 * @param {import('../lib/log.mjs').Log} log
 * @returns {import('../lib/parts.mjs').Part} what fuzzers and soak tests need
 */
export function buildPart(log) {
  return {
    name: 'build',
    title: 'npm packages, toolchain and the package',
    run: async () => {
      const { env } = await bootstrap({ log });
      const { build } = await import('../build.mjs');
      await build({ log, env });
      return NO_CASES;
    },
  };
}

/**
 * As many fuzzers at a time as there are cores.
 *
 * @param {readonly string[]} targets
 * @param {(target: string) => Promise<import('../lib/parts.mjs').Counts>} run
 * @returns {Promise<import('../lib/parts.mjs').Counts>}
 */
async function runAll(targets, run) {
  const sum = { passed: 0, failed: 0, skipped: 0, notes: /** @type {string[]} */ ([]) };
  const left = [...targets];
  const worker = async () => {
    for (let target = left.shift(); target !== undefined; target = left.shift()) {
      const { passed, failed, notes = [] } = await run(target);
      sum.passed += passed;
      sum.failed += failed;
      sum.notes.push(...notes.map((note) => `${target}: ${note}`));
    }
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), targets.length) }, worker));
  return sum;
}

/**
 * @param {import('../lib/log.mjs').Log} log
 * @param {number} seconds for each fuzzer
 * @param {number} seed
 * @returns {import('../lib/parts.mjs').Part[]} to be run after {@link buildPart}
 */
export function fuzzParts(log, seconds, seed) {
  return [
    {
      name: 'fuzz:native',
      title: `C++ fuzzers under AddressSanitizer and UBSan, ${seconds} s each`,
      run: async () => {
        const { env } = await bootstrap({ log });
        await buildNativeFuzzers(env, log);
        return runAll(NATIVE_TARGETS, (target) => runNativeFuzzer({ target, seconds, seed }));
      },
    },
    {
      name: 'fuzz:js',
      title: `JavaScript fuzzers, ${seconds} s each`,
      after: ['build'],
      run: () => runAll(JS_TARGETS, (target) => runJsFuzzer({ target, seconds, seed })),
    },
  ];
}
