/** Where the toolchain lives, and which machine this is. */

import { accessSync, constants, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { UserError } from '../lib/exec.mjs';

/**
 * `$SDPA_TOOLCHAIN_DIR`, else `$XDG_CACHE_HOME/sdpa/toolchain`, else `~/.cache/sdpa/toolchain`.
 *
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {string} absolute path
 */
export function toolchainDir(env = process.env) {
  if (env.SDPA_TOOLCHAIN_DIR) return resolve(env.SDPA_TOOLCHAIN_DIR);
  const cache = env.XDG_CACHE_HOME || join(env.HOME || homedir(), '.cache');
  return join(resolve(cache), 'sdpa', 'toolchain');
}

/**
 * Creates the folder, or says how to choose another one.
 *
 * @param {string} dir
 */
export function makeToolchainDir(dir) {
  // The dynamic linker splits its search path at colons, and a newline would break the configuration files.
  if (/[:;\n"]/.test(dir)) {
    throw new UserError(
      `the toolchain folder must not contain : ; " or a line break, got ${dir}; set SDPA_TOOLCHAIN_DIR`,
    );
  }
  try {
    mkdirSync(dir, { recursive: true });
    accessSync(dir, constants.W_OK);
    // Emscripten's scripts are CommonJS, which node takes from the nearest package.json: inside a checkout that would be this project's.
    writeFileSync(join(dir, 'package.json'), '{ "type": "commonjs" }\n');
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UserError(
      `cannot write the toolchain folder ${dir} (${reason}); set SDPA_TOOLCHAIN_DIR to a folder that can be written`,
    );
  }
}

/**
 * @typedef {object} Machine
 * @property {string} debian architecture as Debian spells it
 * @property {string} triple folder name of the libraries
 */

/** @type {Record<string, Machine>} */
const MACHINES = {
  x64: { debian: 'amd64', triple: 'x86_64-linux-gnu' },
  arm64: { debian: 'arm64', triple: 'aarch64-linux-gnu' },
};

/** @returns {Machine | undefined} undefined where Debian packages cannot be used */
export function debianMachine() {
  if (process.platform !== 'linux') return undefined;
  if (!existsSync('/usr/bin/apt-get') || !existsSync('/usr/bin/dpkg-deb')) return undefined;
  return MACHINES[process.arch];
}

/** One sentence for systems where the toolchain cannot be fetched by this script. */
export const EMSDK_HINT =
  'install Emscripten 4.0.18 or newer with ' +
  '"git clone https://github.com/emscripten-core/emsdk && cd emsdk && ./emsdk install latest && ./emsdk activate latest && . ./emsdk_env.sh" ' +
  'and run this command again in the same shell';
