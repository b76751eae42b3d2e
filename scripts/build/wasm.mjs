/** The three wasm builds: compiled by CMake's presets, their glue checked and prepared, the binaries stamped. */

import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { run } from '../lib/exec.mjs';
import { BUILD, logFile, ROOT } from '../lib/project.mjs';
import { hashFiles } from './files.mjs';

export const VARIANTS = /** @type {const} */ (['simd', 'relaxed', 'scalar']);

/** @typedef {{ glue: string, wasm: Record<(typeof VARIANTS)[number], Buffer> }} WasmBuilds */

/**
 * Configures where that has not happened with the same presets and toolchain, and builds what is out of date.
 * @param {{ log: import('../lib/log.mjs').Log, env: NodeJS.ProcessEnv }} options
 */
export async function compileWasm({ log, env }) {
  const toolchainFile =
    env.SDPA_EMSCRIPTEN_TOOLCHAIN_FILE ?? join(String(env.EMSCRIPTEN_ROOT), 'cmake/Modules/Platform/Emscripten.cmake');
  const childEnv = { ...env, SDPA_EMSCRIPTEN_TOOLCHAIN_FILE: toolchainFile };
  const settings = `${hashFiles([join(ROOT, 'CMakePresets.json')])} ${toolchainFile} ${env.XSIMD_INCLUDE_DIR}`;
  for (const variant of VARIANTS) {
    const preset = `wasm-${variant}`;
    const configured = join(BUILD, preset, 'configured');
    if (!existsSync(configured) || readFileSync(configured, 'utf8') !== settings) {
      log(`configuring ${preset}`);
      rmSync(join(BUILD, preset, 'CMakeCache.txt'), { force: true });
      await run(['cmake', '--preset', preset], {
        cwd: ROOT,
        env: childEnv,
        log: logFile(`${preset}-configure`),
      });
      writeFileSync(configured, settings);
    }
    log(`building ${preset}`);
    await run(['cmake', '--build', '--preset', preset, '-j', String(availableParallelism())], {
      cwd: ROOT,
      env: childEnv,
      log: logFile(`${preset}-build`),
    });
  }
}

/**
 * Reads what CMake has built.
 * @param {string} version
 * @returns {WasmBuilds}
 */
export function readWasm(version) {
  /** @param {string} variant @param {string} name */
  const file = (variant, name) => join(BUILD, `wasm-${variant}`, name);
  const glues = VARIANTS.map((variant) => readFileSync(file(variant, 'sdpa.js'), 'utf8'));
  VARIANTS.forEach((variant, i) => {
    if (glues[i] !== glues[0]) {
      throw new Error(`the glue of wasm-${variant} differs from that of wasm-${VARIANTS[0]}: one glue must serve all`);
    }
  });
  const [simd, relaxed, scalar] = VARIANTS.map((variant) => stamp(readFileSync(file(variant, 'sdpa.wasm')), version));
  return { glue: prepareGlue(glues[0]), wasm: { simd, relaxed, scalar } };
}

/**
 * Takes out of the glue what our use of it never reaches: it is always handed an instance, so it has no address of its own to find out
 * (bundlers would follow it, and CommonJS has none) and no environment to guess.
 * @param {string} glue
 */
export function prepareGlue(glue) {
  const edits = [
    ['new URL("sdpa.wasm",import.meta.url).href', '""'],
    ['var _scriptName=import.meta.url;', 'var _scriptName="";'],
    ['var ENVIRONMENT_IS_WEB=!!globalThis.window;', 'var ENVIRONMENT_IS_WEB=false;'],
    ['var ENVIRONMENT_IS_WORKER=!!globalThis.WorkerGlobalScope;', 'var ENVIRONMENT_IS_WORKER=false;'],
    [
      'var ENVIRONMENT_IS_NODE=globalThis.process?.versions?.node&&globalThis.process?.type!="renderer";',
      'var ENVIRONMENT_IS_NODE=false;',
    ],
  ];
  let text = glue;
  for (const [from, to] of edits) {
    if (text.split(from).length !== 2) throw new Error(`the glue does not hold ${from} exactly once: its maker has changed`);
    text = text.replace(from, () => to);
  }
  for (const word of ['import.meta', 'import(', 'require(', 'eval(', 'new Function']) {
    if (text.includes(word)) throw new Error(`the glue holds ${word}`);
  }
  return text;
}

/**
 * Appends the version as a custom section, so that a binary of another version is recognised before it is started.
 * @param {Buffer} wasm
 * @param {string} version shorter than 100 characters, so that every length is one byte
 */
export function stamp(wasm, version) {
  const name = Buffer.from('sdpa.version');
  const payload = Buffer.concat([Buffer.from([name.length]), name, Buffer.from(version)]);
  return Buffer.concat([wasm, Buffer.from([0, payload.length]), payload]);
}
