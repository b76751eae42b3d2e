/** npm run build: the wasm builds, dist/ (the package) and build/demo. Builds only what is out of date. */

import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bootstrap, whileLocked } from './bootstrap.mjs';
import { hashFiles, listFiles } from './build/files.mjs';
import { compileWasm, readWasm, VARIANTS } from './build/wasm.mjs';
import { isMain, runMain } from './lib/exec.mjs';
import { createLog } from './lib/log.mjs';
import { BUILD, ROOT } from './lib/project.mjs';

/** Of everything that went into dist/ and build/demo, and of what came out. */
const STAMP = join(BUILD, 'package.stamp');

/** @param {string} folder */
const filesOf = (folder) => listFiles(join(ROOT, folder)).map((name) => join(ROOT, folder, name));

function state() {
  return hashFiles([
    ...VARIANTS.flatMap((variant) => ['sdpa.js', 'sdpa.wasm'].map((name) => join(BUILD, `wasm-${variant}`, name))),
    join(BUILD, 'wasm-scalar', 'unpack.wasm'),
    ...['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.declarations.json', 'scripts/build.mjs'].map(
      (name) => join(ROOT, name),
    ),
    // The page takes it along.
    join(ROOT, 'bench/alternatives/needle.mjs'),
    ...filesOf('scripts/build'),
    ...filesOf('web'),
    ...filesOf('dist'),
    ...filesOf('build/demo'),
  ]);
}

/**
 * @param {{ log?: import('./lib/log.mjs').Log, env: NodeJS.ProcessEnv }} options `env` as ensureToolchain() gives it
 */
export async function build({ log = createLog(), env }) {
  await whileLocked('build', log, async () => {
    await compileWasm({ log, env });
    if (existsSync(STAMP) && readFileSync(STAMP, 'utf8') === state()) {
      log('dist/ is up to date');
      return;
    }
    rmSync(STAMP, { force: true });
    // npm packages: only there once bootstrap() has seen to them.
    const { checkSizes, writeDemo, writeGenerated, writePackage } = await import('./build/package.mjs');
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const builds = readWasm(version);
    log('writing dist/');
    await writeGenerated(builds);
    await writePackage(builds);
    if (writeDemo()) log('writing build/demo');
    await checkSizes(log);
    writeFileSync(STAMP, state());
  });
}

if (isMain(import.meta.url)) {
  runMain(async () => {
    const log = createLog();
    const { env } = await bootstrap({ log });
    await build({ log, env });
  });
}
