/** The three wasm builds: compiled by CMake's presets, their glue checked to be one, the binaries stamped. */

import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { run } from '../lib/exec.mjs';
import { BUILD, logFile, ROOT } from '../lib/project.mjs';
import { hashFiles } from './files.mjs';

export const VARIANTS = /** @type {const} */ (['simd', 'relaxed', 'scalar']);

/** @typedef {{ glue: string, unpacker: Buffer, wasm: Record<(typeof VARIANTS)[number], Buffer> }} WasmBuilds `glue` as the linker wrote it */

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
  return { glue: glues[0], unpacker: readFileSync(file('scalar', 'unpack.wasm')), wasm: { simd, relaxed, scalar } };
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
