/** Finds Chromium for the tests that need a browser, or installs Debian's where that is possible. */
/**
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {string | undefined} `$CHROMIUM`, else the first known program on PATH
 * @throws {UserError} where `$CHROMIUM` is no program
 */
export declare function findChromium(env?: NodeJS.ProcessEnv): string | undefined;
/**
 * @param {{ log: import('./lib/log.mjs').Log }} options
 * @returns {Promise<{ chromium: string } | { chromium: undefined, reason: string }>}
 */
export declare function ensureChromium({ log }: {
    log: import('./lib/log.mjs').Log;
}): Promise<{
    chromium: string;
} | {
    chromium: undefined;
    reason: string;
}>;
