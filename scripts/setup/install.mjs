/** Fills a toolchain folder with what is missing. */

import { cpSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { UserError, which } from '../lib/exec.mjs';
import { megabytes } from '../lib/log.mjs';
import { PrivateApt } from './apt.mjs';
import { debianMirror, distributionSources, systemSources } from './debian-sources.mjs';
import { compilerId, compilerOf, describe, findXsimd, isComplete } from './describe.mjs';
import { EMSCRIPTEN_SUITE, installEmscripten } from './emscripten.mjs';
import { installNativeParts, missingParts } from './native-packages.mjs';
import { EMSDK_HINT } from './paths.mjs';
import { smokeTest } from './smoke.mjs';
import { readState, writeState } from './state.mjs';
import { linkSystemXsimd } from './xsimd.mjs';

/** Fetched, unpacked and the system libraries built, with room for the lists of packages. */
const BYTES_NEEDED = 1.2e9;

/**
 * Installs what is missing. Each part goes into a fresh folder first and is noted in the state when it is in its
 * place, so that an interruption at any moment costs that part only.
 *
 * @param {import('./describe.mjs').Situation & { log: import('../lib/log.mjs').Log }} situation
 */
export async function complete({ dir, installed, parts, machine, log }) {
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
        await addXsimd({ dir, scratch, machine, log });
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
 * @property {import('./state.mjs').State} state
 * @property {import('./paths.mjs').Machine} machine
 * @property {import('../lib/log.mjs').Log} log
 */

/** @param {Step} step */
async function addEmscripten({ dir, scratch, state, machine, log }) {
  const { bavail, bsize } = statfsSync(dir);
  if (bavail * bsize < BYTES_NEEDED) {
    throw new UserError(
      `${dir} has ${megabytes(bavail * bsize)} free, needed are ${megabytes(BYTES_NEEDED)}; set SDPA_TOOLCHAIN_DIR to another folder`,
    );
  }
  log(`setting up the toolchain in ${dir}`);
  await addNativeParts({ dir, scratch, state, parts: ['patchelf'], machine, log });
  const prefix = join(dir, 'emscripten');
  const apt = await newerSuite({ scratch, machine, log });
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

/**
 * xsimd alone, for an Emscripten of the user's own.
 *
 * @param {Omit<Step, 'state'>} step
 */
async function addXsimd({ dir, scratch, machine, log }) {
  const apt = await newerSuite({ scratch, machine, log });
  const staging = join(scratch, 'xsimd');
  await apt.unpack(await apt.closure(['libxsimd-dev'], () => false), staging);
  // Headers only, so the folder is whole once it is there.
  rmSync(join(dir, 'xsimd'), { recursive: true, force: true });
  renameSync(join(staging, 'usr'), join(dir, 'xsimd'));
}

/**
 * @param {Omit<Step, 'state' | 'dir'>} step
 * @returns {Promise<PrivateApt>} with the lists of the suite that has a recent Emscripten and xsimd
 */
async function newerSuite({ scratch, machine, log }) {
  const uri = debianMirror(systemSources());
  if (!uri) throw new UserError(`the system has no Debian mirror in /etc/apt; ${EMSDK_HINT}`);
  const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';
  const signedBy = existsSync(keyring) ? keyring : undefined;
  const apt = new PrivateApt({
    dir: join(scratch, 'apt-newer'),
    sources: [{ uri, suite: EMSCRIPTEN_SUITE, components: ['main'], signedBy }],
    architecture: machine.debian,
    log,
  });
  await apt.update();
  return apt;
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
