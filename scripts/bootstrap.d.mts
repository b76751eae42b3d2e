/** What every command needs first: npm packages as the lock file says, and the toolchain. Quick when both are there. */
/**
 * @param {string} root
 * @returns {boolean} whether node_modules is what package-lock.json says, by the list that npm leaves there when it is done
 */
export declare function modulesMatchLock(root: string): boolean;
/**
 * Runs an action while no other command does the same in this checkout.
 *
 * @template T
 * @param {string} what
 * @param {import('./lib/log.mjs').Log} log
 * @param {() => Promise<T>} action
 * @returns {Promise<T>}
 */
export declare function whileLocked<T>(what: string, log: import('./lib/log.mjs').Log, action: () => Promise<T>): Promise<T>;
/**
 * @param {{ log?: import('./lib/log.mjs').Log, extraParts?: string[] }} [options]
 * @returns {Promise<import('./setup.mjs').Toolchain>}
 */
export declare function bootstrap({ log, extraParts }?: {
    log?: import('./lib/log.mjs').Log;
    extraParts?: string[];
}): Promise<import('./setup.mjs').Toolchain>;
