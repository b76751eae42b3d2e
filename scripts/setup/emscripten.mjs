/**
 * Emscripten: one that is installed already, or Debian's packages unpacked into a prefix. Those packages are of a
 * newer suite than the system may be, so their programs are set to the C library that comes with them.
 */

import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { run, UserError, which } from '../lib/exec.mjs';

/** Older versions miscompile or lack options that the build uses. */
export const MINIMUM_VERSION = '4.0.18';

/** Suite that has a recent Emscripten; the system's own is kept for everything else. */
export const EMSCRIPTEN_SUITE = 'forky';

/** What Emscripten's JavaScript optimiser imports. */
const OPTIMISER_PACKAGES = ['acorn@8.15.0', 'acorn-import-phases@1.0.4'];

/** Lies in a prefix made by this script, so that it is not taken for an Emscripten of the user's own. */
const MARKER = '.sdpa-toolchain';

/** Programs of LLVM that em++, emar and emcmake start; others may lack libraries that nobody needs here. */
const LLVM_PROGRAMS =
  /^(clang(-\d+)?|lld|llvm-(ar|cxxfilt|dwarfdump|dwp|nm|objcopy|ranlib|readelf|readobj|size|strings|strip|config)|opt|llc|llvm-link)$/;

/** Launchers of Emscripten offered on PATH. */
const LAUNCHERS = [
  'em++',
  'emcc',
  'emar',
  'emranlib',
  'emnm',
  'emcmake',
  'emmake',
  'em-config',
  'embuilder',
  'emsize',
  'emstrip',
];

/**
 * @param {string} a version like `4.0.18`
 * @param {string} b
 * @returns {boolean} a ≥ b
 */
export function versionAtLeast(a, b) {
  const [x, y] = [a, b].map((text) => text.split('.').map((part) => Number.parseInt(part, 10) || 0));
  for (let i = 0; i < Math.max(x.length, y.length); i++) {
    if ((x[i] ?? 0) !== (y[i] ?? 0)) return (x[i] ?? 0) > (y[i] ?? 0);
  }
  return true;
}

/**
 * Looks for the user's own Emscripten: `em++` on PATH, then `$EMSDK`.
 *
 * @param {NodeJS.ProcessEnv} env
 * @returns {{ emxx: string, root: string, version: string } | undefined}
 */
export function findInstalledEmscripten(env) {
  const candidates = [which('em++', env.PATH), env.EMSDK && join(env.EMSDK, 'upstream', 'emscripten', 'em++')];
  for (const emxx of candidates) {
    if (!emxx || !existsSync(emxx)) continue;
    const root = dirname(realpathSync(emxx));
    if (existsSync(join(root, '..', '..', '..', MARKER))) continue;
    return { emxx, root, version: emscriptenVersion(root) };
  }
  return undefined;
}

/**
 * Reads the version's file, which takes no time; starting em++ would take a quarter of a second.
 *
 * @param {string} root folder of Emscripten's own files
 * @returns {string} `0` where there is no such file
 */
export function emscriptenVersion(root) {
  try {
    return readFileSync(join(root, 'emscripten-version.txt'), 'utf8').trim().replaceAll('"', '');
  } catch {
    return '0';
  }
}

/**
 * Says which dependencies of Emscripten's package are unpacked: compiler, linker, optimiser and the shared libraries
 * that they load. Left out is what the machine has anyway (python3, nodejs), compilers and headers for native code,
 * and libraries that only unused programs load.
 *
 * @param {string} name
 */
export function isWantedDependency(name) {
  if (/^(binaryen|clang-\d+|lld-\d+|llvm-\d+|llvm-\d+-linker-tools|libclang-common-\d+-dev)$/.test(name)) return true;
  return /^(lib|zlib1g$)/.test(name) && !/-dev$|^lib(curl|pfm|objc|clang1-|c-gconv)/.test(name);
}

/**
 * Fetches Emscripten into `staging`, made to run from `prefix` (to which the caller moves it).
 *
 * @param {object} options
 * @param {import('./apt.mjs').PrivateApt} options.apt with the lists of {@link EMSCRIPTEN_SUITE}
 * @param {string} options.staging folder that is filled
 * @param {string} options.prefix where it will be
 * @param {string} options.triple
 * @param {string} options.patchelf
 * @param {import('../lib/log.mjs').Log} options.log
 * @returns {Promise<Record<string, string>>} versions by package name
 */
export async function installEmscripten({ apt, staging, prefix, triple, patchelf, log }) {
  const packages = await apt.closure(['emscripten', 'libxsimd-dev'], isWantedDependency);
  const emscripten = packages.find(({ name }) => name === 'emscripten');
  if (!emscripten || !versionAtLeast(emscripten.version, MINIMUM_VERSION)) {
    throw new UserError(`the mirror's Emscripten is ${emscripten?.version}, needed is ${MINIMUM_VERSION} or newer`);
  }
  await apt.unpack(packages, staging);
  // xsimd alone, so that a native compiler which gets this folder sees no other header of a newer suite.
  mkdirSync(join(staging, 'xsimd/include'), { recursive: true });
  renameSync(join(staging, 'usr/include/xsimd'), join(staging, 'xsimd/include/xsimd'));
  quoteLaunchers(join(staging, 'usr/share/emscripten'));

  log('setting the programs to their own C library');
  await setInterpreter({ staging, prefix, triple, patchelf });
  log('fetching the JavaScript parser of the optimiser');
  await installOptimiserPackages(staging);

  const llvm = llvmFolder(staging);
  writeFileSync(
    join(staging, 'emscripten.config'),
    [
      `LLVM_ROOT = ${JSON.stringify(join(prefix, llvm, 'bin'))}`,
      `BINARYEN_ROOT = ${JSON.stringify(join(prefix, 'usr'))}`,
      `EMSCRIPTEN_ROOT = ${JSON.stringify(join(prefix, 'usr/share/emscripten'))}`,
      `NODE_JS = ${JSON.stringify(process.execPath)}`,
      `CACHE = ${JSON.stringify(join(prefix, 'cache'))}`,
      '',
    ].join('\n'),
  );
  mkdirSync(join(staging, 'bin'));
  for (const name of LAUNCHERS) symlinkSync(`../usr/share/emscripten/${name}`, join(staging, 'bin', name));
  writeFileSync(join(staging, MARKER), '');
  return Object.fromEntries(packages.map(({ name, version }) => [name, version]));
}

/**
 * The launchers lack quotes, so that they fail in a folder with a space in its path.
 *
 * @param {string} root
 */
function quoteLaunchers(root) {
  for (const name of readdirSync(root)) {
    const file = join(root, name);
    if (!/^em[a-z+-]*$/.test(name) || !lstatSync(file).isFile()) continue;
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll('readlink -f $0)', 'readlink -f "$0")'));
  }
}

/**
 * @param {string} prefix
 * @returns {string} the folder of LLVM in it, relative
 */
function llvmFolder(prefix) {
  const name = readdirSync(join(prefix, 'usr/lib')).find((entry) => /^llvm-\d+$/.test(entry));
  if (!name) throw new Error(`no llvm folder in ${prefix}/usr/lib`);
  return `usr/lib/${name}`;
}

/** @param {Pick<Parameters<typeof installEmscripten>[0], 'staging' | 'prefix' | 'triple' | 'patchelf'>} options */
async function setInterpreter({ staging, prefix, triple, patchelf }) {
  const libraries = `usr/lib/${triple}`;
  const loader = readdirSync(join(staging, libraries)).find((name) => /^ld-linux-.*\.so\.\d+$/.test(name));
  if (!loader) throw new Error(`no dynamic linker in ${staging}/${libraries}`);
  const rpath = ['--force-rpath', '--set-rpath', join(prefix, libraries)];
  /** @param {string} folder @param {RegExp} names */
  const files = (folder, names) =>
    readdirSync(join(staging, folder))
      .filter((name) => names.test(name))
      .map((name) => join(staging, folder, name))
      .filter((file) => !lstatSync(file).isSymbolicLink());
  const programs = [...files(`${llvmFolder(staging)}/bin`, LLVM_PROGRAMS), ...files('usr/bin', /^wasm(-|2js$)/)];
  await run([patchelf, '--set-interpreter', join(prefix, libraries, loader), ...rpath, ...programs]);
  await checkLibraries({ loader: join(staging, libraries, loader), libraries: join(staging, libraries), programs });
  // Their own RUNPATH would hide the programs' search path.
  await run([patchelf, ...rpath, ...files(libraries, /^lib(LLVM|clang-cpp|binaryen)[.-]/)]);
}

/**
 * Every library must come from the prefix: one that the machine happens to have may be missing on the next.
 *
 * @param {{ loader: string, libraries: string, programs: string[] }} options
 */
async function checkLibraries({ loader, libraries, programs }) {
  for (const program of programs) {
    const { stdout } = await run([loader, '--library-path', libraries, '--list', program]);
    const foreign = stdout
      .split('\n')
      .filter((line) => line.includes('=>') && !line.includes(`=> ${libraries}/`))
      .map((line) => line.trim().split(' ')[0]);
    if (foreign.length > 0) throw new Error(`${program} needs ${foreign.join(', ')}, which the unpacked packages lack`);
  }
}

/** @param {string} staging */
async function installOptimiserPackages(staging) {
  const npm = which('npm', `${process.env.PATH ?? ''}:${dirname(process.execPath)}`);
  if (!npm) throw new UserError('npm is not on PATH; it comes with Node.js');
  const folder = join(staging, 'npm');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{"private":true}');
  // npm's own cache may be in a home folder that cannot be written.
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--no-update-notifier'];
  await run([npm, 'install', ...options, '--cache', join(folder, 'cache'), ...OPTIMISER_PACKAGES], { cwd: folder });
  renameSync(join(folder, 'node_modules'), join(staging, 'usr/share/emscripten/node_modules'));
  rmSync(folder, { recursive: true });
}

/**
 * @param {string} prefix of an installed Emscripten
 * @returns {{ root: string, environment: Record<string, string> }}
 */
export function emscriptenIn(prefix) {
  return {
    root: join(prefix, 'usr/share/emscripten'),
    environment: {
      EM_CONFIG: join(prefix, 'emscripten.config'),
      EM_CACHE: join(prefix, 'cache'),
      // The node that runs now: the one at the time of setup may be gone.
      EM_NODE_JS: process.execPath,
    },
  };
}
