/** Folders of the project. */
/** The checkout. */
export declare const ROOT: string;
/** Everything that is built; not in git. */
export declare const BUILD: string;
/**
 * @param {string} name
 * @returns {string} path of a log file in the build folder (which is created)
 */
export declare function logFile(name: string): string;
