/**
 * Builds and runs a small program with the build's flags, once for each variant; the first link builds Emscripten's
 * system libraries.
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from '../lib/exec.mjs';

const LINK_FLAGS = [
  '-O3',
  '-sEXPORT_ES6=1',
  '-sMODULARIZE=1',
  '-sENVIRONMENT=web,worker',
  '-sALLOW_MEMORY_GROWTH=1',
  '-sMAXIMUM_MEMORY=4GB',
  '-sDYNAMIC_EXECUTION=0',
  '-sEMBIND_AOT=1',
  '-sFILESYSTEM=0',
  '-sMALLOC=emmalloc',
  '-sINCOMING_MODULE_JS_API=instantiateWasm',
  '-sEXPORTED_RUNTIME_METHODS=wasmMemory',
  '--no-entry',
  '-lembind',
];

/** @type {Record<string, string[]>} */
const VARIANT_FLAGS = {
  scalar: ['-DXSIMD_WITH_EMULATED=1', '-DXSIMD_DEFAULT_ARCH=emulated<128>'],
  simd: ['-msimd128'],
  relaxed: ['-msimd128', '-mrelaxed-simd'],
};

/** @param {string} name */
const beside = (name) => fileURLToPath(new URL(name, import.meta.url));

/**
 * @param {object} options
 * @param {string} options.emxx
 * @param {string} options.xsimdInclude
 * @param {NodeJS.ProcessEnv} options.env
 * @param {string} options.dir scratch folder (created)
 * @param {import('../lib/log.mjs').Log} options.log
 */
export async function smokeTest({ emxx, xsimdInclude, env, dir, log }) {
  mkdirSync(dir, { recursive: true });
  log("building Emscripten's system libraries (about a minute, once) and a test program");
  for (const [variant, flags] of Object.entries(VARIANT_FLAGS)) {
    const glue = join(dir, `${variant}.mjs`);
    await run([emxx, beside('smoke.cpp'), '-o', glue, '-std=c++20', '-I', xsimdInclude, ...flags, ...LINK_FLAGS], {
      env,
    });
    await run([process.execPath, beside('smoke-run.mjs'), glue, join(dir, `${variant}.wasm`)]);
    log(`the ${variant} test program compiles, links and runs`);
  }
}
