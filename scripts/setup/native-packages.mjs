/**
 * Libraries and programs for native code: the system's where it has them, else its own suite's packages unpacked into
 * a prefix.
 */

import { existsSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { run, tryRun, which } from '../lib/exec.mjs';

/**
 * @typedef {object} NativePart
 * @property {string[]} packages
 * @property {(triple: string) => boolean} present whether the system has it
 */

/** @param {string} file @param {string} triple */
const inLibraries = (file, triple) =>
  ['/usr/local/lib', '/usr/local/lib64', '/usr/lib64', '/usr/lib', `/usr/lib/${triple}`].some((folder) =>
    existsSync(join(folder, file)),
  );

/** @type {Record<string, NativePart>} */
export const NATIVE_PARTS = {
  googletest: { packages: ['libgtest-dev'], present: (triple) => inLibraries('cmake/GTest/GTestConfig.cmake', triple) },
  benchmark: {
    packages: ['libbenchmark-dev'],
    present: (triple) => inLibraries('cmake/benchmark/benchmarkConfig.cmake', triple),
  },
  ninja: { packages: ['ninja-build'], present: () => which('ninja') !== undefined },
  patchelf: { packages: ['patchelf'], present: () => which('patchelf') !== undefined },
  // With patchelf, because its libraries lie in the prefix as well.
  'clang-format': { packages: ['clang-format', 'patchelf'], present: () => which('clang-format') !== undefined },
};

/**
 * @param {string[]} parts names in {@link NATIVE_PARTS}
 * @param {string} triple
 * @returns {string[]} those that the system lacks
 */
export function missingParts(parts, triple) {
  return parts.filter((name) => !NATIVE_PARTS[name].present(triple));
}

/**
 * Unpacks packages with those of their dependencies that the system has not installed.
 *
 * @param {object} options
 * @param {import('./apt.mjs').PrivateApt} options.apt with the lists of the system's own suite
 * @param {string[]} options.parts
 * @param {string} options.staging folder that is filled
 * @param {string} options.prefix where it will be
 * @param {string} options.triple
 * @param {import('../lib/log.mjs').Log} options.log
 * @returns {Promise<Record<string, string>>} versions by package name
 */
export async function installNativeParts({ apt, parts, staging, prefix, triple, log }) {
  const { stdout } = await run(['dpkg-query', '-W', '-f', '${Package} ${db:Status-Status}\n']);
  const installed = new Set(
    stdout
      .split('\n')
      .filter((line) => line.endsWith(' installed'))
      .map((line) => line.split(' ')[0]),
  );
  const roots = parts.flatMap((name) => NATIVE_PARTS[name].packages);
  const packages = await apt.closure(
    roots,
    (name) => !installed.has(name) && /^(lib|clang-format-|googletest)/.test(name),
  );
  log(`the system lacks ${parts.join(', ')}: taking it from its own suite`);
  await apt.unpack(packages, staging);
  await setSearchPath({ staging, prefix, triple });
  return Object.fromEntries(packages.map(({ name, version }) => [name, version]));
}

/**
 * Programs that were unpacked must find libraries that were unpacked beside them.
 *
 * @param {{ staging: string, prefix: string, triple: string }} options
 */
async function setSearchPath({ staging, prefix, triple }) {
  const libraries = join(staging, 'usr/lib', triple);
  const patchelf = join(staging, 'usr/bin/patchelf');
  if (!existsSync(libraries) || !existsSync(patchelf)) return;
  const llvm = readdirSync(join(staging, 'usr/lib')).filter((name) => /^llvm-\d+$/.test(name));
  const files = [
    libraries,
    ...llvm.flatMap((name) => ['bin', 'lib'].map((folder) => join(staging, 'usr/lib', name, folder))),
  ]
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
    .filter((file) => lstatSync(file).isFile());
  const rpath = [`usr/lib/${triple}`, ...llvm.map((name) => `usr/lib/${name}/lib`)]
    .map((folder) => join(prefix, folder))
    .join(':');
  // Files that are not ELF (archives, scripts) are refused, which is as good as skipped.
  for (const file of files) await tryRun([patchelf, '--force-rpath', '--set-rpath', rpath, file]);
}

/**
 * @param {string} prefix
 * @param {string} triple
 * @returns {{ path: string[], cmakePrefix?: string }} what the prefix adds to the environment
 */
export function nativePartsIn(prefix, triple) {
  const bin = join(prefix, 'usr/bin');
  const cmake = join(prefix, 'usr/lib', triple, 'cmake');
  return { path: existsSync(bin) ? [bin] : [], cmakePrefix: existsSync(cmake) ? join(prefix, 'usr') : undefined };
}
