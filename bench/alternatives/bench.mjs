/**
 * Exact attention and what its quadratic cost has called for, on the same long input: time, memory, and whether a value comes back. See
 * bench/README.md.
 *
 *   node bench/alternatives/bench.mjs [--lengths 2048,4096,…] [--methods exact,window,…] [--variant simd] [--turns N] [--seed N] [--json FILE]
 */

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMain, runMain, UserError } from '../../scripts/lib/exec.mjs';
import { listOf, readArgs } from '../command-line.mjs';
import { environment } from '../js/environment.mjs';
import { digits, percent } from '../js/text.mjs';
import { measureAlternatives } from './measure.mjs';
import { METHODS } from './methods.mjs';
import { CLASSES } from './needle.mjs';
import { alternativesReport } from './report.mjs';
import { makeTask } from './task.mjs';

/**
 * @typedef {object} Results what --json writes
 * @property {import('../js/environment.mjs').Environment} environment
 * @property {import('sdpa').Variant} variant
 * @property {number} seed
 * @property {number} classes of values
 * @property {number} needles of the longest input
 * @property {number[]} lengths
 * @property {import('./measure.mjs').MethodResult[]} methods
 */

const LENGTHS = [2048, 4096, 8192, 16384, 32768, 65536];
const VARIANTS = ['auto', 'simd', 'relaxed', 'scalar'];

/** @param {string[]} args */
function readOptions(args) {
  const text = /** @type {const} */ ({ type: 'string' });
  const values = readArgs(args, { lengths: text, methods: text, variant: text, turns: text, seed: text, json: text });
  const number = (/** @type {string} */ name, /** @type {string} */ given, /** @type {number} */ least) => {
    const value = Number(given);
    if (Number.isInteger(value) && value >= least) return value;
    throw new UserError(`--${name} takes whole numbers from ${least} on, got ${given}`);
  };
  const lengths = (values.lengths?.split(',') ?? LENGTHS).map((length) => number('lengths', String(length), 16));
  const known = METHODS.map(({ name }) => name);
  const names = listOf('--methods', values.methods, known) ?? known;
  const { variant = 'auto', json } = values;
  if (!VARIANTS.includes(variant)) throw new UserError(`--variant takes ${VARIANTS.join(', ')}, got ${variant}`);
  return {
    lengths: lengths.sort((a, b) => a - b),
    methods: METHODS.filter(({ name }) => names.includes(name)),
    variant: /** @type {'auto'} */ (variant),
    turns: number('turns', values.turns ?? '5', 1),
    seed: number('seed', values.seed ?? '1', 0),
    json,
  };
}

/** @param {string[]} args */
async function main(args) {
  const { lengths, methods, variant, turns, seed, json } = readOptions(args);
  const print = (/** @type {string} */ line) => process.stdout.write(`${line}\n`);
  const onLength = (/** @type {number} */ length, /** @type {import('./measure.mjs').MethodResult[]} */ results) => {
    print(`${length} tokens`);
    for (const { name, rows, skipped } of results) {
      const row = rows.find((found) => found.length === length);
      if (row) print(`  ${name.padEnd(14)}${`${digits(row.ms)} ms`.padStart(12)}   recall ${percent(row.recall)}`);
      else print(`  ${name.padEnd(14)}${skipped}`);
    }
  };
  const measured = await measureAlternatives(methods, lengths, { variant, seed, turns, onLength });
  /** @type {Results} */
  const results = {
    environment: environment(fileURLToPath(import.meta.url), args),
    variant: measured.variant,
    seed,
    classes: CLASSES,
    needles: makeTask(lengths[lengths.length - 1], seed).needles.length,
    lengths,
    methods: measured.results,
  };
  print(`\n${alternativesReport(results)}`);
  if (!json) return;
  mkdirSync(dirname(resolve(json)), { recursive: true });
  writeFileSync(json, `${JSON.stringify(results, null, 2)}\n`);
}

if (isMain(import.meta.url)) runMain(() => main(process.argv.slice(2)));
