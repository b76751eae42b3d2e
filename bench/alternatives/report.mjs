/**
 * A run of bench/alternatives as Markdown.
 *
 *   node bench/alternatives/report.mjs bench/results/alternatives.json
 */

import { readFileSync } from 'node:fs';
import { isMain, runMain, UserError } from '../../scripts/lib/exec.mjs';
import { noise, table } from '../js/markdown.mjs';
import { digits, percent } from '../js/text.mjs';

/** @typedef {import('./measure.mjs').MethodResult} MethodResult */
/** @typedef {import('./measure.mjs').Row} Row */
/** @typedef {import('./bench.mjs').Results} Results */

/**
 * The factors by which a method's time grows where the length doubles.
 * @param {readonly Row[]} rows
 * @returns {number[]}
 */
const ratiosOf = (rows) =>
  rows.slice(1).flatMap((row, n) => (row.length === 2 * rows[n].length ? [row.ms / rows[n].ms] : []));

/** @param {readonly number[]} values @returns {number} their geometric mean */
const mean = (values) => Math.exp(values.reduce((sum, x) => sum + Math.log(x), 0) / values.length);

/** @param {number} bytes */
const memory = (bytes) => (bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} KB` : `${digits(bytes / 1e6)} MB`);

/** @param {number} length */
const tokens = (length) => (length % 1024 === 0 ? `${length / 1024} k` : String(length));

/**
 * @param {readonly MethodResult[]} methods
 * @param {readonly number[]} lengths
 * @returns {string[]} lines: time, growth, memory and recall
 */
function alternativesTable(methods, lengths) {
  const last = lengths[lengths.length - 1];
  const head = [
    'method',
    ...lengths.map((length) => `${tokens(length)}, ms`),
    'time for twice the length: mean, most',
    `extra memory, ${tokens(last)}`,
    ...lengths.map((length) => `recall, ${tokens(length)}`),
  ];
  const rows = methods.map(({ name, skipped, rows: found }) => {
    if (skipped) return [`${name}: ${skipped}`, ...head.slice(1).map(() => '–')];
    const at = (/** @type {number} */ length) => found.find((row) => row.length === length);
    const growth = ratiosOf(found);
    const cell = (/** @type {Row | undefined} */ row, /** @type {(row: Row) => string} */ show) =>
      row ? show(row) : '–';
    return [
      name,
      ...lengths.map((n) => cell(at(n), ({ ms, otherLoad }) => digits(ms) + noise(otherLoad))),
      growth.length > 0 ? `${mean(growth).toFixed(2)}, ${Math.max(...growth).toFixed(2)}` : '–',
      cell(at(last), ({ extraBytes }) => memory(extraBytes)),
      ...lengths.map((n) => cell(at(n), (row) => percent(row.recall))),
    ];
  });
  return table(head, rows);
}

/**
 * @param {Results} results
 * @returns {string}
 */
export function alternativesReport({ environment, variant, seed, classes, needles, lengths, methods }) {
  const { machine, versions } = environment;
  return [
    `${machine.cpu}, Node ${versions.node}, ${variant} build, one thread, one head of 64, causal, seed ${seed}.`,
    `Recall: ${needles} tokens near the end each ask for the value of a random token before them, one of ${classes} values; chance is ${(100 / classes).toFixed(1)} %.`,
    '',
    ...alternativesTable(methods, lengths),
    '',
    ...methods.map(({ name, what }) => `- ${name}: ${what}.`),
    '',
  ].join('\n');
}

if (isMain(import.meta.url)) {
  runMain(async () => {
    const [file, ...more] = process.argv.slice(2);
    if (!file || more.length > 0) throw new UserError('usage: node bench/alternatives/report.mjs FILE');
    process.stdout.write(alternativesReport(JSON.parse(readFileSync(file, 'utf8'))));
  });
}
