/** xsimd where Emscripten is the user's own: named by $XSIMD_INCLUDE_DIR, or among the system's headers. */
export declare const XSIMD_MINIMUM_VERSION = "14.0.0";
/**
 * @param {string} include folder that holds `xsimd/xsimd.hpp`
 * @returns {string | undefined} its version
 */
export declare function xsimdVersion(include: string): string | undefined;
/**
 * @param {NodeJS.ProcessEnv} env
 * @returns {string | undefined} `$XSIMD_INCLUDE_DIR`, checked
 */
export declare function xsimdFromEnvironment(env: NodeJS.ProcessEnv): string | undefined;
/**
 * Looks among the system's headers. The folder returned holds xsimd alone: a wasm compiler must not see the system's other headers.
 *
 * @param {string} dir toolchain folder, which receives the link
 * @param {string[]} [folders]
 * @returns {string | undefined} include folder
 */
export declare function linkSystemXsimd(dir: string, folders?: string[]): string | undefined;
