/**
 * Gets the toolchain: Emscripten, xsimd, GoogleTest, Google Benchmark, Ninja. What the machine has is used; what is
 * missing goes into one cache folder, without root and without touching the system. Quick when everything is there.
 *
 *   node scripts/setup.mjs               sets up
 *   node scripts/setup.mjs --print-env   sets up and prints shell exports: eval "$(node scripts/setup.mjs --print-env)"
 */

import { join } from 'node:path';
import { isMain, runMain, UserError, which } from './lib/exec.mjs';
import { withLock } from './lib/lock.mjs';
import { createLog } from './lib/log.mjs';
import { describe, isComplete } from './setup/describe.mjs';
import { findInstalledEmscripten, MINIMUM_VERSION, versionAtLeast } from './setup/emscripten.mjs';
import { complete } from './setup/install.mjs';
import { debianMachine, makeToolchainDir, toolchainDir } from './setup/paths.mjs';

/** @typedef {import('./setup/describe.mjs').Toolchain} Toolchain */

/** Parts of native-packages.mjs that every build wants. */
const NATIVE_PARTS = ['googletest', 'benchmark', 'ninja'];

/**
 * Sets up what is missing.
 *
 * @param {{ log?: import('./lib/log.mjs').Log, extraParts?: string[] }} [options] `extraParts`: further names in
 *   NATIVE_PARTS of native-packages.mjs
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
 * @returns {import('./setup/describe.mjs').Installed}
 */
function usableInstalled(log) {
  const installed = findInstalledEmscripten(process.env);
  if (!installed || versionAtLeast(installed.version, MINIMUM_VERSION)) return installed;
  log(`${installed.emxx} is Emscripten ${installed.version}, older than ${MINIMUM_VERSION}: not used`);
  return undefined;
}

function requirePrograms() {
  const missing = ['python3', 'cmake'].filter((name) => !which(name));
  if (!['c++', 'g++', 'clang++'].some((name) => which(name))) missing.push('g++');
  if (missing.length > 0) {
    throw new UserError(`not on PATH: ${missing.join(', ')}; on Debian: apt-get install ${missing.join(' ')}`);
  }
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
