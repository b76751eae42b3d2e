// Command-line flags: a table per command says what exists, node:util splits the words, everything else is refused by name.

import { parseArgs } from 'node:util';
import { suggest } from './suggest.js';
import { UsageError } from './usage-error.js';

/**
 * @typedef {object} Flag
 * @property {string} name without the dashes
 * @property {string} [value] what the help shows as its value; a flag without one takes none
 * @property {string} help
 * @property {boolean} [multiple] may be given several times
 * @property {(text: string, flag: string) => unknown} [parse] from the text given; the text itself where absent
 */

/**
 * @param {string[]} args the words after the command
 * @param {readonly Flag[]} flags
 * @param {readonly string[]} [positionals] names of the flags that words without a name stand for, in order
 * @returns {Record<string, any>} by name: true, the parsed value, or a list of those; absent flags are absent
 */
export function parseFlags(args, flags, positionals = []) {
  const { tokens } = parseArgs({
    args,
    options: Object.fromEntries(flags.map(({ name, value }) => [name, { type: value ? 'string' : 'boolean' }])),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  /** @type {Record<string, any>} */
  const values = {};
  const unnamed = [...positionals];
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue;
    if (token.kind === 'positional') {
      const name = unnamed.shift();
      if (name === undefined) throw new UsageError(`unexpected argument '${token.value}'`);
      if (name in values) throw new UsageError(`--${name} is given twice: '${values[name]}' and '${token.value}'`);
      values[name] = token.value;
      continue;
    }
    const flag = flags.find(({ name }) => token.rawName === `--${name}`);
    if (!flag) throw unknownFlag(args[token.index].split('=')[0], flags);
    const value = readValue(flag, token.value, token.inlineValue);
    if (flag.multiple) (values[flag.name] ??= []).push(value);
    else if (flag.name in values) throw new UsageError(`--${flag.name} is given twice`);
    else values[flag.name] = value;
  }
  return values;
}

/**
 * @param {string} given as typed, with its dashes
 * @param {readonly Flag[]} flags
 */
function unknownFlag(given, flags) {
  const names = flags.map(({ name }) => name);
  const near = suggest(given.replace(/^-+/, ''), names).replace("'", "'--");
  return new UsageError(`unknown option '${given}'${near}`);
}

/**
 * @param {Flag} flag
 * @param {string | undefined} value
 * @param {boolean | undefined} inline written as --name=value
 * @returns {unknown}
 */
function readValue(flag, value, inline) {
  if (!flag.value) {
    if (inline) throw new UsageError(`--${flag.name} takes no value, got '${value}'`);
    return true;
  }
  if (value === undefined || value === '') throw new UsageError(`--${flag.name} needs a value: ${flag.value}`);
  // a dash begins a number, stands alone for the standard output, or is the next flag whose value was forgotten
  if (!inline && /^-[^\d.]/.test(value))
    throw new UsageError(`--${flag.name} needs a value (${flag.value}), got '${value}'`);
  return flag.parse ? flag.parse(value, `--${flag.name}`) : value;
}

/**
 * @param {string} text
 * @param {string} flag
 * @returns {number} finite
 */
export function parseNumber(text, flag) {
  const number = Number(text);
  if (text.trim() === '' || !Number.isFinite(number))
    throw new UsageError(`${flag} must be a finite number, got '${text}'`);
  return number;
}

/**
 * @param {string} text
 * @param {string} flag
 * @returns {number}
 */
export function parseCount(text, flag) {
  const count = Number(text);
  if (/^\d+$/.test(text) && count >= 1 && Number.isSafeInteger(count)) return count;
  throw new UsageError(`${flag} must be a whole number, 1 or more, got '${text}'`);
}

/**
 * @param {readonly string[]} choices
 * @returns {(text: string, flag: string) => string}
 */
export function oneOf(choices) {
  return (text, flag) => {
    if (choices.includes(text)) return text;
    throw new UsageError(`${flag} must be one of ${choices.join(', ')}, got '${text}'${suggest(text, choices)}`);
  };
}

/**
 * @param {string} text "left,right"
 * @param {string} flag
 * @returns {[number, number]}
 */
export function parseWindow(text, flag) {
  const sides = text
    .split(',')
    .map((side) => (/^inf(inity)?$/i.test(side) ? Infinity : /^\d+$/.test(side) ? Number(side) : NaN));
  if (sides.length !== 2 || sides.some(Number.isNaN)) {
    throw new UsageError(`${flag} must be two counts of keys, left,right, each a whole number or inf, got '${text}'`);
  }
  return [sides[0], sides[1]];
}

/**
 * @param {string} text one or more integers, separated by commas
 * @returns {Int32Array | undefined} undefined where it is something else
 */
export function parseIntegers(text) {
  if (!/^-?\d+(,-?\d+)*$/.test(text)) return undefined;
  const numbers = text.split(',').map(Number);
  return numbers.every((number) => number === (number | 0)) ? Int32Array.from(numbers) : undefined;
}
