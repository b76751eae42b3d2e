/** Child processes: run to the end, keep the output, fail with its tail. */

import { spawn } from 'node:child_process';
import { accessSync, constants, createWriteStream, realpathSync, statSync } from 'node:fs';
import { basename, delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** @typedef {{ status: number, stdout: string, output: string }} Result `output` is stdout and stderr as they came */

/**
 * Something that the person who ran the command can mend; shown without a stack trace.
 */
export class UserError extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = 'UserError';
  }
}

/** A command that ended with a status other than 0; carries the whole output. */
export class CommandError extends Error {
  /**
   * @param {string[]} command
   * @param {Result} result
   */
  constructor(command, result) {
    const [program, ...args] = command;
    const line = [basename(program), ...args].join(' ');
    super(
      `${line.length > 200 ? `${line.slice(0, 200)}…` : line} ended with status ${result.status}:\n${tail(result.output)}`,
    );
    this.name = 'CommandError';
    this.reason = `${basename(program)} ended with status ${result.status}`;
    this.result = result;
  }
}

/**
 * @param {string} text
 * @param {number} [lines]
 * @returns {string} the last lines of the text, indented
 */
export function tail(text, lines = 30) {
  return text
    .trimEnd()
    .split('\n')
    .slice(-lines)
    .map((line) => `    ${line}`)
    .join('\n');
}

/**
 * Runs a command without a shell and with no stdin. Resolves with status and output, also where the status is not 0.
 *
 * @param {string[]} command
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, echo?: boolean, log?: string }} [options]
 *   `echo` passes the output on to stdout and stderr while it is kept; `log` is a file that receives it as well
 * @returns {Promise<Result>}
 */
export function tryRun(command, { cwd, env = process.env, echo = false, log } = {}) {
  return new Promise((resolve, reject) => {
    const [program, ...args] = command;
    const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    /** @type {string[]} */
    const stdout = [];
    /** @type {string[]} */
    const output = [];
    const file = log === undefined ? undefined : createWriteStream(log);
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      stdout.push(chunk);
      output.push(chunk);
      file?.write(chunk);
      if (echo) process.stdout.write(chunk);
    });
    child.stderr.setEncoding('utf8').on('data', (chunk) => {
      output.push(chunk);
      file?.write(chunk);
      if (echo) process.stderr.write(chunk);
    });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      file?.end();
      if (signal) output.push(`\nstopped by ${signal}\n`);
      resolve({ status: code ?? 1, stdout: stdout.join(''), output: output.join('') });
    });
  });
}

/**
 * Like {@link tryRun}, but any status other than 0 is a {@link CommandError}.
 *
 * @param {string[]} command
 * @param {Parameters<typeof tryRun>[1]} [options]
 * @returns {Promise<Result>}
 */
export async function run(command, options) {
  const result = await tryRun(command, options);
  if (result.status !== 0) throw new CommandError(command, result);
  return result;
}

/**
 * @param {string} name
 * @param {string} [path] a PATH-like list
 * @returns {string | undefined} the first executable file of that name
 */
export function which(name, path = process.env.PATH ?? '') {
  for (const folder of path.split(delimiter)) {
    if (folder === '') continue;
    const file = join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      if (statSync(file).isFile()) return file;
    } catch {
      // not here: the next folder
    }
  }
  return undefined;
}

/**
 * @param {string} url `import.meta.url` of a module
 * @returns {boolean} whether node was started with that module
 */
export function isMain(url) {
  return process.argv[1] !== undefined && realpathSync(process.argv[1]) === realpathSync(fileURLToPath(url));
}

/**
 * Runs a script's main function when that script is what node was started with: messages for the user without a stack,
 * exit status 1 on failure.
 *
 * @param {() => Promise<number | void>} main resolves with the exit status (none = 0)
 */
export function runMain(main) {
  main().then(
    (status) => {
      process.exitCode = status ?? 0;
    },
    (error) => {
      const plain = error instanceof UserError || error instanceof CommandError;
      process.stderr.write(`${plain ? `error: ${error.message}` : (error?.stack ?? error)}\n`);
      process.exitCode = 1;
    },
  );
}
