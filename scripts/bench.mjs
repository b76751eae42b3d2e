/**
 * Builds and runs the benches, native and WebAssembly.
 *
 *   npm run bench                                      all
 *   npm run bench -- --only js --filter 'prefill.*'    one side, some shapes
 */

import { join } from 'node:path';
import { bootstrap, whileLocked } from './bootstrap.mjs';
import { isMain, run, runMain, UserError } from './lib/exec.mjs';
import { createLog } from './lib/log.mjs';
import { buildPreset } from './lib/native.mjs';
import { parseOnly } from './lib/parts.mjs';
import { BUILD, ROOT } from './lib/project.mjs';

const SIDES = ['native', 'js'];

const USAGE = 'usage: npm run bench [-- --only native,js] [--filter REGEX]';

/** @param {string[]} args */
async function main(args) {
  const { only = SIDES, rest } = parseOnly(args);
  const unknown = only.filter((name) => !SIDES.includes(name));
  if (unknown.length > 0)
    throw new UserError(`no bench is called ${unknown.join(', ')}; there are ${SIDES.join(', ')}`);
  const filter = rest[0] === '--filter' ? rest[1] : undefined;
  if (rest.length > 0 && (filter === undefined || rest.length > 2))
    throw new UserError(`unknown option ${rest.join(' ')}\n${USAGE}`);

  const log = createLog();
  const { env } = await whileLocked('test', log, async () => {
    const toolchain = await bootstrap({ log });
    if (only.includes('native')) {
      log('building the native bench');
      await buildPreset({ preset: 'native-release', env: toolchain.env, targets: ['sdpa_bench'] });
    }
    if (only.includes('js')) {
      const { build } = await import('./build.mjs');
      await build({ log, env: toolchain.env });
    }
    return toolchain;
  });
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
