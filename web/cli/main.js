// The command line, as a function: words in, exit code out.

import { AttentionError, version } from '../index.js';
import { parseFlags } from './arguments.js';
import { runAttention } from './attention-command.js';
import { attentionFlags, infoFlags, weightsFlags } from './flags.js';
import { attentionHelp, infoHelp, mainHelp, weightsHelp } from './help.js';
import { runInfo } from './info-command.js';
import { isClosedPipe, silencePipeErrors, writeAll } from './streams.js';
import { suggest } from './suggest.js';
import { UsageError } from './usage-error.js';
import { runWeights } from './weights-command.js';

/** @import { Flag } from './arguments.js' */
/** @typedef {{ stdout: NodeJS.WriteStream, stderr: NodeJS.WriteStream }} Streams */

/** @type {Record<string, { flags: readonly Flag[], positionals?: readonly string[], help: () => string, run: (flags: Record<string, any>, streams: Streams) => Promise<void> }>} */
const kCommands = {
  attention: { flags: attentionFlags, help: attentionHelp, run: runAttention },
  weights: { flags: weightsFlags, positionals: ['query', 'key'], help: weightsHelp, run: runWeights },
  info: { flags: infoFlags, help: infoHelp, run: runInfo },
};

/** Named in the documentation of the package, not in this version. */
const kLaterCommands = ['bench'];

const kDone = 0;
const kFailure = 1;
const kBadInput = 2;

/** Errors that the user's input causes; the others are failures of ours or of the machine. */
const kInputCodes = ['type', 'shape', 'option', 'unknown-option', 'align-required', 'unsupported'];

/**
 * @param {string[]} words without the program's name
 * @param {Streams} streams
 * @returns {Promise<number>} 0 done; 2 bad input and 1 failure, each with one line on stderr
 */
export async function main(words, streams) {
  silencePipeErrors([streams.stdout, streams.stderr]);
  try {
    await dispatch(words, streams);
    return kDone;
  } catch (error) {
    // text whose reader has seen enough is delivered; an array that did not arrive whole is not
    if (isClosedPipe(error)) return writesArrays(words[0]) && !words.includes('--help') ? kFailure : kDone;
    const badInput = error instanceof UsageError || (AttentionError.is(error) && kInputCodes.includes(error.code));
    const known = badInput || AttentionError.is(error) || typeof (/** @type {any} */ (error).syscall) === 'string';
    const { message, stack } = /** @type {Error} */ (error);
    const text = known ? printable(message) : `internal error: ${stack ?? error}`;
    await writeAll(streams.stderr, `sdpa: ${text}\n`).catch(() => {});
    return badInput ? kBadInput : kFailure;
  }
}

/** @param {string | undefined} command */
const writesArrays = (command) => command === 'attention' || command === 'weights';

/**
 * @param {string[]} words
 * @param {Streams} streams
 */
async function dispatch(words, streams) {
  const [first, ...rest] = words;
  if (first === '--help' || first === '-h' || first === 'help') return writeAll(streams.stdout, mainHelp);
  if (first === '--version' || first === '-v') return writeAll(streams.stdout, `${version}\n`);
  if (first === undefined) {
    throw new UsageError("no command: 'sdpa attention', 'sdpa weights' or 'sdpa info' (sdpa --help says more)");
  }
  if (kLaterCommands.includes(first)) throw new UsageError(`'sdpa ${first}' is not in this version (${version})`);
  if (!Object.hasOwn(kCommands, first)) {
    const kind = first.startsWith('-') ? 'option' : 'command';
    const names = kind === 'option' ? ['--help', '--version'] : Object.keys(kCommands);
    throw new UsageError(`unknown ${kind} '${first}'${suggest(first, names) || ' (sdpa --help lists what there is)'}`);
  }
  const command = kCommands[first];
  if (rest.includes('--help') || rest.includes('-h')) return writeAll(streams.stdout, command.help());
  return command.run(parseFlags(rest, command.flags, command.positionals), streams);
}

/**
 * One line without control characters: names out of files are shown too, and must not steer the terminal.
 * @param {string} message
 * @returns {string}
 */
function printable(message) {
  return message.replace(/\p{Cc}/gu, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`);
}
