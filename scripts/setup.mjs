/**
 * Gets the toolchain: Emscripten, xsimd, GoogleTest, Google Benchmark, Ninja. What the machine has is used; what is missing goes into
 * one cache folder, without root and without touching the system. Quick when everything is there.
 *
 *   node scripts/setup.mjs               sets up
 *   node scripts/setup.mjs --print-env   sets up and prints shell exports: eval "$(node scripts/setup.mjs --print-env)"
 */

import { cpSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync, statfsSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { isMain, runMain, UserError, which } from './lib/exec.mjs';
import { withLock } from './lib/lock.mjs';
import { createLog, megabytes } from './lib/log.mjs';
import { PrivateApt } from './setup/apt.mjs';
import { debianMirror, distributionSources, systemSources } from './setup/debian-sources.mjs';
import {
  EMSCRIPTEN_SUITE,
  emscriptenIn,
  emscriptenVersion,
  findInstalledEmscripten,
  installEmscripten,
  MINIMUM_VERSION,
  versionAtLeast,
} from './setup/emscripten.mjs';
import { installNativeParts, missingParts, nativePartsIn } from './setup/native-packages.mjs';
import { debianMachine, EMSDK_HINT, makeToolchainDir, toolchainDir } from './setup/paths.mjs';
import { smokeTest } from './setup/smoke.mjs';
import { readState, writeState } from './setup/state.mjs';
import { linkSystemXsimd, xsimdFromEnvironment, xsimdVersion } from './setup/xsimd.mjs';

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

/** @typedef {ReturnType<typeof findInstalledEmscripten>} Installed */

/** Parts of native-packages.mjs that every build wants. */
const NATIVE_PARTS = ['googletest', 'benchmark', 'ninja'];

/** Fetched, unpacked and the system libraries built, with room for the lists of packages. */
const BYTES_NEEDED = 1.2e9;

/**
 * Sets up what is missing.
 *
 * @param {{ log?: import('./lib/log.mjs').Log, extraParts?: string[] }} [options] `extraParts`: further names in NATIVE_PARTS of
 *   native-packages.mjs
 * @returns {Promise<Toolchain>}
 * @throws {UserError} naming what is to be done by hand
 */
export async function ensureToolchain({ log = createLog(), extraParts = [] } = {}) {
  const dir = toolchainDir();
  const machine = debianMachine();
  const parts = [...NATIVE_PARTS, ...extraParts];
  const installed = usableInstalled(log);
  if (!isComplete({ dir, installed, parts, machine })) {
    requirePrograms();
    makeToolchainDir(dir);
    if (machine) {
      const waiting = () => log(`another process sets up ${dir}: waiting for it`);
      await withLock(join(dir, 'lock'), waiting, () => complete({ dir, installed, parts, machine, log }));
    } else await complete({ dir, installed, parts, machine, log });
  }
  return describe({ dir, installed, machine });
}

/**
 * @param {import('./lib/log.mjs').Log} log
 * @returns {Installed}
 */
function usableInstalled(log) {
  const installed = findInstalledEmscripten(process.env);
  if (!installed || versionAtLeast(installed.version, MINIMUM_VERSION)) return installed;
  log(`${installed.emxx} is Emscripten ${installed.version}, older than ${MINIMUM_VERSION}: not used`);
  return undefined;
}

/**
 * @typedef {object} Situation
 * @property {string} dir
 * @property {Installed} installed
 * @property {string[]} parts
 * @property {import('./setup/paths.mjs').Machine | undefined} machine
 */

/** @param {Situation} situation */
function isComplete({ dir, installed, parts, machine }) {
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
function compilerOf(dir, installed) {
  if (installed) return { emxx: installed.emxx, root: installed.root, environment: {}, bin: dirname(installed.emxx) };
  const bin = join(dir, 'emscripten', 'bin');
  return { emxx: join(bin, 'em++'), bin, ...emscriptenIn(join(dir, 'emscripten')) };
}

/**
 * @param {Installed} installed
 * @param {import('./setup/state.mjs').State} state
 * @returns {string | undefined} undefined where there is no compiler yet
 */
function compilerId(installed, state) {
  if (installed) return `${installed.emxx} ${installed.version}`;
  return state.emscripten && `packages ${state.emscripten.versions.emscripten}`;
}

/** @param {string} dir */
function findXsimd(dir) {
  const fromEnvironment = xsimdFromEnvironment(process.env);
  if (fromEnvironment) return fromEnvironment;
  return [join(dir, 'emscripten/xsimd/include'), join(dir, 'xsimd/include')].find((include) => xsimdVersion(include));
}

function requirePrograms() {
  const missing = ['python3', 'cmake'].filter((name) => !which(name));
  if (!['c++', 'g++', 'clang++'].some((name) => which(name))) missing.push('g++');
  if (missing.length > 0) {
    throw new UserError(`not on PATH: ${missing.join(', ')}; on Debian: apt-get install ${missing.join(' ')}`);
  }
}

/**
 * Installs what is missing. Each part goes into a fresh folder first and is noted in the state when it is in its place, so that an
 * interruption at any moment costs that part only.
 *
 * @param {Situation & { log: import('./lib/log.mjs').Log }} situation
 */
async function complete({ dir, installed, parts, machine, log }) {
  // Another process may have done it while this one waited.
  if (isComplete({ dir, installed, parts, machine })) return;
  for (const name of readdirSync(dir)) {
    if (name.startsWith('staging-')) rmSync(join(dir, name), { recursive: true, force: true });
  }
  const scratch = mkdtempSync(join(dir, 'staging-'));
  try {
    const state = readState(dir);
    if (installed) {
      log(`using Emscripten ${installed.version}, ${installed.emxx}`);
      if (!findXsimd(dir) && !linkSystemXsimd(dir)) {
        if (!machine)
          throw new UserError(
            'xsimd is missing: install xsimd 14 or newer and set XSIMD_INCLUDE_DIR to its include folder',
          );
        await addEmscripten({ dir, scratch, state, machine, log });
      }
    } else if (!state.emscripten || !existsSync(compilerOf(dir, installed).emxx)) {
      if (!machine) throw new UserError(EMSDK_HINT);
      await addEmscripten({ dir, scratch, state, machine, log });
    }
    if (machine) await addNativeParts({ dir, scratch, state, parts, machine, log });
    if (state.tested !== compilerId(installed, state)) {
      const { emxx, env, xsimdInclude } = describe({ dir, installed, machine });
      await smokeTest({ emxx, env, xsimdInclude, dir: join(scratch, 'smoke'), log });
      state.tested = compilerId(installed, state);
      writeState(dir, state);
    }
    log(`the toolchain is ready in ${dir}`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/**
 * @typedef {object} Step
 * @property {string} dir
 * @property {string} scratch
 * @property {import('./setup/state.mjs').State} state
 * @property {import('./setup/paths.mjs').Machine} machine
 * @property {import('./lib/log.mjs').Log} log
 */

/** @param {Step} step */
async function addEmscripten({ dir, scratch, state, machine, log }) {
  const { bavail, bsize } = statfsSync(dir);
  if (bavail * bsize < BYTES_NEEDED) {
    throw new UserError(
      `${dir} has ${megabytes(bavail * bsize)} free, needed are ${megabytes(BYTES_NEEDED)}; set SDPA_TOOLCHAIN_DIR to another folder`,
    );
  }
  const mirror = debianMirror(systemSources());
  if (!mirror) throw new UserError(`the system has no Debian mirror in /etc/apt; ${EMSDK_HINT}`);
  log(`setting up the toolchain in ${dir}`);
  await addNativeParts({ dir, scratch, state, parts: ['patchelf'], machine, log });
  const prefix = join(dir, 'emscripten');
  const signedBy = '/usr/share/keyrings/debian-archive-keyring.gpg';
  const apt = new PrivateApt({
    dir: join(scratch, 'apt-emscripten'),
    sources: [
      {
        uri: mirror,
        suite: EMSCRIPTEN_SUITE,
        components: ['main'],
        signedBy: existsSync(signedBy) ? signedBy : undefined,
      },
    ],
    architecture: machine.debian,
    log,
  });
  await apt.update();
  const staging = join(scratch, 'emscripten');
  const patchelf = which('patchelf') ?? join(dir, 'native/usr/bin/patchelf');
  const versions = await installEmscripten({ apt, staging, prefix, triple: machine.triple, patchelf, log });
  state.emscripten = undefined;
  state.tested = undefined;
  writeState(dir, state);
  rmSync(prefix, { recursive: true, force: true });
  renameSync(staging, prefix);
  state.emscripten = { versions };
  writeState(dir, state);
}

/** @param {Step & { parts: string[] }} step */
async function addNativeParts({ dir, scratch, state, parts, machine, log }) {
  const missing = missingParts(parts, machine.triple).filter((name) => !state.nativeParts.includes(name));
  if (missing.length === 0) return;
  const apt = new PrivateApt({
    dir: mkdtempSync(join(scratch, 'apt-native-')),
    sources: distributionSources(systemSources()),
    architecture: machine.debian,
    log,
  });
  await apt.update();
  const prefix = join(dir, 'native');
  const staging = mkdtempSync(join(scratch, 'native-'));
  const versions = await installNativeParts({ apt, parts: missing, staging, prefix, triple: machine.triple, log });
  cpSync(staging, prefix, { recursive: true, verbatimSymlinks: true });
  state.nativeParts.push(...missing);
  Object.assign(state.nativeVersions, versions);
  writeState(dir, state);
}

/**
 * @param {Pick<Situation, 'dir' | 'installed' | 'machine'>} situation
 * @returns {Toolchain}
 */
function describe({ dir, installed, machine }) {
  const state = readState(dir);
  const compiler = compilerOf(dir, installed);
  const xsimdInclude = findXsimd(dir);
  if (!xsimdInclude) throw new Error(`no xsimd in ${dir}`);
  const native = machine ? nativePartsIn(join(dir, 'native'), machine.triple) : { path: [] };
  const path = [compiler.bin, ...native.path].join(delimiter);
  const cmakeToolchain = join(compiler.root, 'cmake/Modules/Platform/Emscripten.cmake');
  const exports = {
    PATH: path,
    ...compiler.environment,
    EMSCRIPTEN_ROOT: compiler.root,
    // Read by CMakePresets.json.
    SDPA_EMSCRIPTEN_TOOLCHAIN_FILE: cmakeToolchain,
    XSIMD_INCLUDE_DIR: xsimdInclude,
    SDPA_TOOLCHAIN_DIR: dir,
    ...(native.cmakePrefix && { CMAKE_PREFIX_PATH: native.cmakePrefix }),
  };
  return {
    emxx: compiler.emxx,
    emar: join(compiler.bin, 'emar'),
    env: { ...process.env, ...exports, PATH: `${path}${delimiter}${process.env.PATH ?? ''}` },
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

/**
 * @param {Record<string, string>} exports
 * @returns {string} lines for a POSIX shell
 */
export function shellExports(exports) {
  /** @param {string} text */
  const quote = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
  return Object.entries(exports)
    .map(([name, value]) => `export ${name}=${quote(value)}${name === 'PATH' ? ':"$PATH"' : ''}\n`)
    .join('');
}

const USAGE = 'usage: node scripts/setup.mjs [--print-env] [--quiet]';

/** @param {string[]} args */
async function main(args) {
  const unknown = args.filter((arg) => !['--print-env', '--quiet', '--help'].includes(arg));
  if (unknown.length > 0) throw new UserError(`unknown option ${unknown.join(' ')}\n${USAGE}`);
  if (args.includes('--help')) return void process.stdout.write(`${USAGE}\n`);
  const log = createLog({ quiet: args.includes('--quiet') });
  const toolchain = await ensureToolchain({ log });
  if (args.includes('--print-env')) process.stdout.write(shellExports(toolchain.exports));
  else log(`Emscripten ${toolchain.versions.emscripten}, xsimd ${toolchain.versions.xsimd}: ${toolchain.emxx}`);
}

if (isMain(import.meta.url)) runMain(() => main(process.argv.slice(2)));
