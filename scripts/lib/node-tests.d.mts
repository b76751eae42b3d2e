/** Runs `node --test` over a folder's files and counts its cases. */
/**
 * @param {string} folder
 * @returns {string[]} its files named `*.test.mjs`, at any depth, sorted
 */
export declare function testFiles(folder: string): string[];
/**
 * @param {object} options
 * @param {string} options.name for the log's name
 * @param {string} options.folder
 * @param {NodeJS.ProcessEnv} [options.env]
 * @param {string[]} [options.flags] for node
 * @returns {Promise<import('./parts.mjs').Counts>}
 * @throws {UserError} where the folder has no tests
 * @throws {CommandError} where tests fail to be counted
 */
export declare function runNodeTests({ name, folder, env, flags }: {
    name: string;
    folder: string;
    env?: NodeJS.ProcessEnv;
    flags?: string[];
}): Promise<import('./parts.mjs').Counts>;
/**
 * @param {string} report in TAP, as node writes it: the sums stand at its end
 * @returns {import('./parts.mjs').Counts}
 */
export declare function countTap(report: string): import('./parts.mjs').Counts;
