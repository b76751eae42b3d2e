/**
 * Builds and runs the benches, native and WebAssembly.
 *
 *   npm run bench                                      all
 *   npm run bench -- --only js --filter 'prefill.*'    one side, some shapes
 */

import { join } from 'node:path';
import { isMain, run, runMain } from './lib/exec.mjs';
import { createLog } from './lib/log.mjs';
import { BUILD, ROOT } from './lib/project.mjs';
import { buildSides, readSides } from './lib/sides.mjs';

const SIDES = ['native', 'js'];

const USAGE = 'usage: npm run bench [-- --only native,js] [--filter REGEX]';

/** @param {string[]} args */
async function main(args) {
  const { only, filter } = readSides(args, SIDES, 'bench', USAGE);
  const log = createLog();
  const env = await buildSides(log, only.includes('native') ? 'sdpa_bench' : undefined, only.includes('js'));
  if (only.includes('native')) {
    log('native bench');
    const program = join(BUILD, 'native-release/bench/native/sdpa_bench');
    await run([program, ...(filter ? [`--benchmark_filter=${filter}`] : [])], { cwd: ROOT, env, echo: true });
  }
  if (only.includes('js')) {
    log('WebAssembly bench in Node');
    await run([process.execPath, 'bench/js/bench.mjs', ...(filter ? ['--filter', filter] : [])], {
      cwd: ROOT,
      env,
      echo: true,
    });
  }
}

if (isMain(import.meta.url)) runMain(() => main(process.argv.slice(2)));
