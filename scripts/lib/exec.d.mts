/** Child processes: run to the end, keep the output, fail with its tail. */
export type Result = {
    status: number;
    stdout: string;
    output: string;
};
/** @typedef {{ status: number, stdout: string, output: string }} Result `output` is stdout and stderr as they came */
/**
 * Something that the person who ran the command can mend; shown without a stack trace.
 */
export declare class UserError extends Error {
    /** @param {string} message */
    constructor(message: string);
}
/** A command that ended with a status other than 0; carries the whole output. */
export declare class CommandError extends Error {
    result: Result;
    /**
     * @param {string[]} command
     * @param {Result} result
     */
    constructor(command: string[], result: Result);
}
/**
 * @param {string} text
 * @param {number} [lines]
 * @returns {string} the last lines of the text, indented
 */
export declare function tail(text: string, lines?: number): string;
/**
 * Runs a command without a shell and with no stdin. Resolves with status and output, also where the status is not 0.
 *
 * @param {string[]} command
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, echo?: boolean, log?: string }} [options]
 *   `echo` passes the output on to stdout and stderr while it is kept; `log` is a file that receives it as well
 * @returns {Promise<Result>}
 */
export declare function tryRun(command: string[], { cwd, env, echo, log }?: {
    cwd?: string;
    env?: NodeJS.ProcessEnv;
    echo?: boolean;
    log?: string;
}): Promise<Result>;
/**
 * Like {@link tryRun}, but any status other than 0 is a {@link CommandError}.
 *
 * @param {string[]} command
 * @param {Parameters<typeof tryRun>[1]} [options]
 * @returns {Promise<Result>}
 */
export declare function run(command: string[], options?: Parameters<typeof tryRun>[1]): Promise<Result>;
/**
 * @param {string} name
 * @param {string} [path] a PATH-like list
 * @returns {string | undefined} the first executable file of that name
 */
export declare function which(name: string, path?: string): string | undefined;
/**
 * @param {string} url `import.meta.url` of a module
 * @returns {boolean} whether node was started with that module
 */
export declare function isMain(url: string): boolean;
/**
 * Runs a script's main function when that script is what node was started with: messages for the user without a stack,
 * exit status 1 on failure.
 *
 * @param {() => Promise<number | void>} main resolves with the exit status (none = 0)
 */
export declare function runMain(main: () => Promise<number | void>): void;
