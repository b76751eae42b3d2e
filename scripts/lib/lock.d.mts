/** A lock between processes that the kernel lets go when its holder dies, however it dies. */
/**
 * Runs `action` while this process alone holds the lock file. Uses flock(1): a child holds the lock until its stdin closes, which
 * also happens when this process is killed, so a stale lock cannot exist.
 *
 * @template T
 * @param {string} file created where it is missing; never removed
 * @param {() => void} onWait called once when another process holds the lock
 * @param {() => Promise<T>} action
 * @returns {Promise<T>}
 */
export declare function withLock<T>(file: string, onWait: () => void, action: () => Promise<T>): Promise<T>;
