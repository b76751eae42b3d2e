/**
 * Sweeps the tables of the peers' own test suites (tests/native/grids, tests/js/api/grids-*), all of them; `npm test` runs a sample.
 *
 *   npm run test:grids                              native, and the WebAssembly builds simd and relaxed
 *   npm run test:grids -- --only native             one of native, js:simd, js:relaxed
 *   npm run test:grids -- --only native --filter 'PyTorch.*'
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { isMain, runMain } from './lib/exec.mjs';
import { createLog } from './lib/log.mjs';
import { BUILD, ROOT } from './lib/project.mjs';
import { buildSides, readSides } from './lib/sides.mjs';

const PARTS = ['native', 'js:simd', 'js:relaxed'];
const USAGE = `usage: npm run test:grids [-- --only ${PARTS.join(',')}] [--filter REGEX-OR-GTEST-PATTERN]`;

/**
 * Runs a program whose output goes where ours goes.
 *
 * @param {string[]} command
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<boolean>} whether it ended with status 0
 */
async function passes([program, ...args], env) {
  const child = spawn(program, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'], env });
  const [status] = await once(child, 'exit');
  return status === 0;
}

/**
 * One process a core, each with a share of the tables.
 *
 * @param {NodeJS.ProcessEnv} env
 * @param {string | undefined} filter of GoogleTest
 */
async function native(env, filter) {
  const program = join(BUILD, 'native-release/tests/native/grids/sdpa_native_grids');
  const command = [program, '--gtest_brief=1', ...(filter ? [`--gtest_filter=${filter}`] : [])];
  const shards = filter ? 1 : availableParallelism();
  const results = Array.from({ length: shards }, (_, shard) =>
    passes(command, { ...env, SDPA_GRIDS: 'full', GTEST_TOTAL_SHARDS: `${shards}`, GTEST_SHARD_INDEX: `${shard}` }),
  );
  return (await Promise.all(results)).every(Boolean);
}

/**
 * @param {string} variant
 * @param {NodeJS.ProcessEnv} env
 * @param {string | undefined} filter of the names of tests
 */
function js(variant, env, filter) {
  const folder = join(ROOT, 'tests/js/api');
  const files = readdirSync(folder).filter((name) => /^grids-.*\.test\.mjs$/.test(name));
  const command = [
    process.execPath,
    '--test',
    '--test-reporter=spec',
    ...(filter ? [`--test-name-pattern=${filter}`] : []),
  ];
  return passes([...command, ...files.sort().map((name) => join(folder, name))], {
    ...env,
    SDPA_GRIDS: 'full',
    SDPA_VARIANT: variant,
  });
}

/** @param {string[]} args */
async function main(args) {
  const { only, filter } = readSides(args, PARTS, 'sweep', USAGE);
  const log = createLog();
  const target = only.includes('native') ? 'sdpa_native_grids' : undefined;
  const env = await buildSides(
    log,
    target,
    only.some((name) => name !== 'native'),
  );
  let passed = true;
  for (const name of only) {
    log(`${name}: sweeping`);
    const result = name === 'native' ? await native(env, filter) : await js(name.slice('js:'.length), env, filter);
    log(`${name}: ${result ? 'passed' : 'failed'}`);
    passed &&= result;
  }
  return passed ? 0 : 1;
}

if (isMain(import.meta.url)) runMain(() => main(process.argv.slice(2)));
