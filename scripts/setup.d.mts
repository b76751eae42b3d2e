/**
 * Gets the toolchain: Emscripten, xsimd, GoogleTest, Google Benchmark, Ninja. What the machine has is used; what is missing goes into
 * one cache folder, without root and without touching the system. Quick when everything is there.
 *
 *   node scripts/setup.mjs               sets up
 *   node scripts/setup.mjs --print-env   sets up and prints shell exports: eval "$(node scripts/setup.mjs --print-env)"
 */
import { findInstalledEmscripten } from './setup/emscripten.mjs';
export type Toolchain = {
    /**
     * path of em++
     */
    emxx: string;
    /**
     * path of emar
     */
    emar: string;
    /**
     * for processes that build
     */
    env: NodeJS.ProcessEnv;
    /**
     * what `env` adds to the environment (PATH: the folders in front)
     */
    exports: Record<string, string>;
    /**
     * CMake's toolchain file for Emscripten
     */
    cmakeToolchain: string;
    /**
     * folder that holds xsimd/xsimd.hpp and nothing else
     */
    xsimdInclude: string;
    /**
     * prefix of GoogleTest and Google Benchmark where they are not the system's
     */
    gtestPrefix?: string;
    /**
     * the toolchain folder
     */
    prefix: string;
    versions: Record<string, string>;
};
export type Installed = ReturnType<typeof findInstalledEmscripten>;
/**
 * Sets up what is missing.
 *
 * @param {{ log?: import('./lib/log.mjs').Log, extraParts?: string[] }} [options] `extraParts`: further names in NATIVE_PARTS of
 *   native-packages.mjs
 * @returns {Promise<Toolchain>}
 * @throws {UserError} naming what is to be done by hand
 */
export declare function ensureToolchain({ log, extraParts }?: {
    log?: import('./lib/log.mjs').Log;
    extraParts?: string[];
}): Promise<Toolchain>;
export type Situation = {
    dir: string;
    installed: Installed;
    parts: string[];
    machine: import('./setup/paths.mjs').Machine | undefined;
};
export type Step = {
    dir: string;
    scratch: string;
    state: import('./setup/state.mjs').State;
    machine: import('./setup/paths.mjs').Machine;
    log: import('./lib/log.mjs').Log;
};
/**
 * @param {Record<string, string>} exports
 * @returns {string} lines for a POSIX shell
 */
export declare function shellExports(exports: Record<string, string>): string;
