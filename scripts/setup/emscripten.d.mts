/**
 * Emscripten: one that is installed already, or Debian's packages unpacked into a prefix. Those packages are of a newer suite than
 * the system may be, so their programs are set to the C library that comes with them.
 */
/** Older versions miscompile or lack options that the build uses. */
export declare const MINIMUM_VERSION = "4.0.18";
/** Suite that has a recent Emscripten; the system's own is kept for everything else. */
export declare const EMSCRIPTEN_SUITE = "forky";
/**
 * @param {string} a version like `4.0.18`
 * @param {string} b
 * @returns {boolean} a ≥ b
 */
export declare function versionAtLeast(a: string, b: string): boolean;
/**
 * Looks for the user's own Emscripten: `em++` on PATH, then `$EMSDK`.
 *
 * @param {NodeJS.ProcessEnv} env
 * @returns {{ emxx: string, root: string, version: string } | undefined}
 */
export declare function findInstalledEmscripten(env: NodeJS.ProcessEnv): {
    emxx: string;
    root: string;
    version: string;
} | undefined;
/**
 * Reads the version's file, which takes no time; starting em++ would take a quarter of a second.
 *
 * @param {string} root folder of Emscripten's own files
 * @returns {string} `0` where there is no such file
 */
export declare function emscriptenVersion(root: string): string;
/**
 * Says which dependencies of Emscripten's package are unpacked: compiler, linker, optimiser and the shared libraries that they load.
 * Left out is what the machine has anyway (python3, nodejs), compilers and headers for native code, and libraries that only unused
 * programs load.
 *
 * @param {string} name
 */
export declare function isWantedDependency(name: string): boolean;
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
export declare function installEmscripten({ apt, staging, prefix, triple, patchelf, log }: {
    apt: import('./apt.mjs').PrivateApt;
    staging: string;
    prefix: string;
    triple: string;
    patchelf: string;
    log: import('../lib/log.mjs').Log;
}): Promise<Record<string, string>>;
/**
 * @param {string} prefix of an installed Emscripten
 * @returns {{ root: string, environment: Record<string, string> }}
 */
export declare function emscriptenIn(prefix: string): {
    root: string;
    environment: Record<string, string>;
};
