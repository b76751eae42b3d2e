/** What a toolchain folder holds: whether that is all, and how to use it. */

import { existsSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { which } from '../lib/exec.mjs';
import { emscriptenIn, emscriptenVersion } from './emscripten.mjs';
import { missingParts, nativePartsIn } from './native-packages.mjs';
import { readState } from './state.mjs';
import { xsimdFromEnvironment, xsimdVersion } from './xsimd.mjs';

/**
 * @typedef {object} Toolchain
 * @property {string} emxx path of em++
 * @property {string} emar path of emar
 * @property {NodeJS.ProcessEnv} env for processes that build
 * @property {Record<string, string>} exports what `env` adds to the environment (PATH: the folders in front)
 * @property {string} cmakeToolchain CMake's toolchain file for Emscripten
 * @property {string} xsimdInclude folder that holds xsimd/xsimd.hpp and nothing else
 * @property {string} [gtestPrefix] prefix of GoogleTest and Google Benchmark where they are not the system's
 * @property {string} prefix the toolchain folder
 * @property {Record<string, string>} versions
 */

/** @typedef {ReturnType<typeof import('./emscripten.mjs').findInstalledEmscripten>} Installed */

/**
 * @typedef {object} Situation
 * @property {string} dir
 * @property {Installed} installed
 * @property {string[]} parts
 * @property {import('./paths.mjs').Machine | undefined} machine
 */

/** @param {Situation} situation */
export function isComplete({ dir, installed, parts, machine }) {
  const state = readState(dir);
  const { emxx } = compilerOf(dir, installed);
  if (!existsSync(emxx) || state.tested !== compilerId(installed, state)) return false;
  if (!findXsimd(dir)) return false;
  return !machine || missingParts(parts, machine.triple).every((name) => state.nativeParts.includes(name));
}

/**
 * @param {string} dir
 * @param {Installed} installed
 */
export function compilerOf(dir, installed) {
  if (installed) return { emxx: installed.emxx, root: installed.root, environment: {}, bin: dirname(installed.emxx) };
  const bin = join(dir, 'emscripten', 'bin');
  return { emxx: join(bin, 'em++'), bin, ...emscriptenIn(join(dir, 'emscripten')) };
}

/**
 * @param {Installed} installed
 * @param {import('./state.mjs').State} state
 * @returns {string | undefined} undefined where there is no compiler yet
 */
export function compilerId(installed, state) {
  if (installed) return `${installed.emxx} ${installed.version}`;
  return state.emscripten && `packages ${state.emscripten.versions.emscripten}`;
}

/** @param {string} dir */
export function findXsimd(dir) {
  const fromEnvironment = xsimdFromEnvironment(process.env);
  if (fromEnvironment) return fromEnvironment;
  return [join(dir, 'emscripten/xsimd/include'), join(dir, 'xsimd/include')].find((include) => xsimdVersion(include));
}

/**
 * @param {Pick<Situation, 'dir' | 'installed' | 'machine'>} situation
 * @returns {Toolchain}
 */
export function describe({ dir, installed, machine }) {
  const state = readState(dir);
  const compiler = compilerOf(dir, installed);
  const xsimdInclude = findXsimd(dir);
  if (!xsimdInclude) throw new Error(`no xsimd in ${dir}`);
  const native = machine ? nativePartsIn(join(dir, 'native'), machine.triple) : { path: [] };
  const path = [compiler.bin, ...native.path].join(delimiter);
  const searchPath = `${path}${delimiter}${process.env.PATH ?? ''}`;
  const cmakeToolchain = join(compiler.root, 'cmake/Modules/Platform/Emscripten.cmake');
  const exports = {
    PATH: path,
    ...compiler.environment,
    EMSCRIPTEN_ROOT: compiler.root,
    // Read by CMakePresets.json.
    SDPA_EMSCRIPTEN_TOOLCHAIN_FILE: cmakeToolchain,
    XSIMD_INCLUDE_DIR: xsimdInclude,
    SDPA_TOOLCHAIN_DIR: dir,
    // CMake's own default needs make, which a machine may lack. Folders that were configured before keep their generator.
    ...(!process.env.CMAKE_GENERATOR && which('ninja', searchPath) && { CMAKE_GENERATOR: 'Ninja' }),
    ...(native.cmakePrefix && { CMAKE_PREFIX_PATH: native.cmakePrefix }),
  };
  return {
    emxx: compiler.emxx,
    emar: join(compiler.bin, 'emar'),
    env: { ...process.env, ...exports, PATH: searchPath },
    exports,
    cmakeToolchain,
    xsimdInclude,
    gtestPrefix: native.cmakePrefix,
    prefix: dir,
    versions: {
      ...state.emscripten?.versions,
      ...state.nativeVersions,
      emscripten: installed?.version ?? emscriptenVersion(compiler.root),
      xsimd: xsimdVersion(xsimdInclude) ?? '',
    },
  };
}
