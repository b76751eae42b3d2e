/** Runs the parts of a command one after the other and sums them up; a part that is not run is named with its reason. */
export type Counts = {
    passed: number;
    failed: number;
    skipped: number;
    /**
     * lines for the summary, e.g. the names of skipped tests
     */
    notes?: string[];
};
/**
 * @typedef {object} Counts test cases (or one for a part that does not count)
 * @property {number} passed
 * @property {number} failed
 * @property {number} skipped
 * @property {string[]} [notes] lines for the summary, e.g. the names of skipped tests
 */
/** Thrown by a part that cannot run here; the message is the reason. */
export declare class SkipPart extends Error {
}
export type Part = {
    /**
     * `group` or `group:variant`
     */
    name: string;
    /**
     * what it does, for the progress line
     */
    title: string;
    /**
     * parts without which it cannot run
     */
    after?: string[];
    /**
     * nothing = it counts as one that passed; throws when it fails as a whole
     */
    run: () => Promise<Counts | void>;
};
export type Outcome = {
    name: string;
    counts: Counts;
    seconds: number;
    reason?: string;
};
/**
 * @typedef {object} Part
 * @property {string} name `group` or `group:variant`
 * @property {string} title what it does, for the progress line
 * @property {string[]} [after] parts without which it cannot run
 * @property {() => Promise<Counts | void>} run nothing = it counts as one that passed; throws when it fails as a whole
 */
/** @typedef {{ name: string, counts: Counts, seconds: number, reason?: string }} Outcome */
/**
 * @param {Part[]} parts
 * @param {string[] | undefined} only names or groups; undefined = all
 * @returns {Part[]} the chosen ones and those that they need
 * @throws {UserError} on a name that no part has
 */
export declare function chooseParts(parts: Part[], only: string[] | undefined): Part[];
/**
 * @param {Part[]} parts
 * @param {import('./log.mjs').Log} log
 * @returns {Promise<Outcome[]>}
 */
export declare function runParts(parts: Part[], log: import('./log.mjs').Log): Promise<Outcome[]>;
/**
 * @param {Outcome[]} outcomes
 * @returns {string} a table, the notes, and as the last line the sums: `N passed, N failed, N skipped`
 */
export declare function summary(outcomes: Outcome[]): string;
/**
 * @param {Outcome[]} outcomes
 * @returns {number} exit status
 */
export declare function exitStatus(outcomes: Outcome[]): number;
/**
 * Reads `--only a,b` (also repeated, also `--only=a`) from a command line.
 *
 * @param {string[]} args
 * @returns {{ only: string[] | undefined, rest: string[] }}
 */
export declare function parseOnly(args: string[]): {
    only: string[] | undefined;
    rest: string[];
};
