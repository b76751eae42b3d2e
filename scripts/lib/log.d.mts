/**
 * Progress lines for the command scripts: one line a step, with the seconds since the start.
 *
 * @typedef {(line: string) => void} Log
 */
export type Log = (line: string) => void;
/**
 * Makes a log that writes to stderr, so that stdout stays free for output meant for other programs.
 *
 * @param {{ quiet?: boolean, stream?: { write(text: string): unknown } }} [options]
 * @returns {Log}
 */
export declare function createLog({ quiet, stream }?: {
    quiet?: boolean;
    stream?: {
        write(text: string): unknown;
    };
}): Log;
/**
 * @param {number} bytes
 * @returns {string} for people, e.g. `88.7 MB`
 */
export declare function megabytes(bytes: number): string;
