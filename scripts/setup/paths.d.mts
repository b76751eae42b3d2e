/** Where the toolchain lives, and which machine this is. */
/**
 * `$SDPA_TOOLCHAIN_DIR`, else `$XDG_CACHE_HOME/sdpa/toolchain`, else `~/.cache/sdpa/toolchain`.
 *
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {string} absolute path
 */
export declare function toolchainDir(env?: NodeJS.ProcessEnv): string;
/**
 * Creates the folder, or says how to choose another one.
 *
 * @param {string} dir
 */
export declare function makeToolchainDir(dir: string): void;
export type Machine = {
    /**
     * architecture as Debian spells it
     */
    debian: string;
    /**
     * folder name of the libraries
     */
    triple: string;
};
/** @returns {Machine | undefined} undefined where Debian packages cannot be used */
export declare function debianMachine(): Machine | undefined;
/** One sentence for systems where the toolchain cannot be fetched by this script. */
export declare const EMSDK_HINT: string;
