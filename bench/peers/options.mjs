/** The command line of bench.mjs. */

import { resolve } from 'node:path';
import { UserError } from '../../scripts/lib/exec.mjs';
import { listOf, readArgs } from '../command-line.mjs';
import { SHAPES } from './shapes.mjs';

/** @typedef {'node' | 'node24' | 'chromium' | 'native'} EngineName */

/** @type {EngineName[]} */
export const ENGINES = ['node', 'node24', 'chromium', 'native'];

/**
 * @typedef {object} Options
 * @property {EngineName[]} [engines] undefined: those that need no more than Node
 * @property {readonly import('../js/cases.mjs').Case[]} shapes
 * @property {RegExp} [peers] ids of the contestants; undefined: all but the optional ones
 * @property {import('./rounds.mjs').Pace} pace
 * @property {number} limitMs
 * @property {string} [out] folder of the results; undefined: none, because only a part is measured
 * @property {boolean} build
 * @property {string} command as somebody else would repeat it
 */

/**
 * @param {string[]} args
 * @param {string} results folder of complete runs
 * @returns {Options}
 */
export function readOptions(args, results) {
  const values = parse(args);
  const known = SHAPES.map(({ nickname }) => nickname);
  const shapes = listOf('--shapes', values.shapes, known) ?? known;
  const isPart = values.shapes !== undefined || values.peers !== undefined;
  return {
    engines: listOf('--engines', values.engines, ENGINES),
    shapes: SHAPES.filter(({ nickname }) => shapes.includes(nickname)),
    peers: values.peers === undefined ? undefined : pattern(values.peers),
    pace: {
      rounds: number('--rounds', values.rounds ?? '7', 1),
      retries: number('--retries', values.retries ?? '2', 0),
      patienceMs: number('--patience', values.patience ?? '2000', 0),
      turnMs: number('--turn', values.turn ?? '120', 0),
    },
    limitMs: 1000 * number('--limit', values.limit ?? '180', 1),
    out: values.out === undefined ? (isPart ? undefined : results) : resolve(values.out),
    build: !values['no-build'],
    command: ['npm run bench:peers', ...repeatable(values)].join(' '),
  };
}

/** @param {string[]} args */
function parse(args) {
  const text = /** @type {const} */ ({ type: 'string' });
  return readArgs(args, {
    engines: text,
    shapes: text,
    peers: text,
    rounds: text,
    retries: text,
    patience: text,
    turn: text,
    limit: text,
    out: text,
    'no-build': { type: 'boolean' },
  });
}

/**
 * What was asked for, without where the results went.
 * @param {Record<string, string | boolean | undefined>} values
 * @returns {string[]}
 */
function repeatable(values) {
  const given = Object.entries(values)
    .filter(([name, value]) => typeof value === 'string' && name !== 'out')
    .map(([name, value]) => `--${name} ${/^[\w.,-]+$/.test(String(value)) ? value : `'${value}'`}`);
  return given.length ? ['--', ...given] : [];
}

/** @param {string} option @param {string} text @param {number} least */
function number(option, text, least) {
  const value = Number(text);
  if (!Number.isInteger(value) || value < least) {
    throw new UserError(`${option} takes a whole number from ${least} on, got ${text}`);
  }
  return value;
}

/** @param {string} source */
function pattern(source) {
  try {
    return new RegExp(source);
  } catch (error) {
    throw new UserError(
      `--peers takes a regular expression, got ${source} (${error instanceof Error ? error.message : error})`,
    );
  }
}
