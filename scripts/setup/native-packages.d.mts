/** Libraries and programs for native code: the system's where it has them, else its own suite's packages unpacked into a prefix. */
export type NativePart = {
    packages: string[];
    /**
     * whether the system has it
     */
    present: (triple: string) => boolean;
};
/** @type {Record<string, NativePart>} */
export declare const NATIVE_PARTS: Record<string, NativePart>;
/**
 * @param {string[]} parts names in {@link NATIVE_PARTS}
 * @param {string} triple
 * @returns {string[]} those that the system lacks
 */
export declare function missingParts(parts: string[], triple: string): string[];
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
export declare function installNativeParts({ apt, parts, staging, prefix, triple, log }: {
    apt: import('./apt.mjs').PrivateApt;
    parts: string[];
    staging: string;
    prefix: string;
    triple: string;
    log: import('../lib/log.mjs').Log;
}): Promise<Record<string, string>>;
/**
 * @param {string} prefix
 * @param {string} triple
 * @returns {{ path: string[], cmakePrefix?: string }} what the prefix adds to the environment
 */
export declare function nativePartsIn(prefix: string, triple: string): {
    path: string[];
    cmakePrefix?: string;
};
