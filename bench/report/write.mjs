/**
 * Writes the runs in bench/results into the README, between its comments `<!-- bench:js -->` and `<!-- /bench:js -->`, and
 * likewise `bench:alternatives` and `bench:peers`. What they hold already is replaced; a second run changes nothing.
 *
 *   npm run bench:report
 *   npm run bench:report -- --check                 only says whether the README shows these runs
 *   npm run bench:report -- --readme FILE --results FOLDER
 */

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { isMain, runMain, UserError } from '../../scripts/lib/exec.mjs';
import { ROOT } from '../../scripts/lib/project.mjs';
import { alternativesReport } from '../alternatives/report.mjs';
import { readArgs } from '../command-line.mjs';
import { report as jsReport } from '../js/report.mjs';
import { replaceBlock } from './markers.mjs';
import { peersReport } from './peers.mjs';

/** Each kind of run: the comments' name, how its files begin, and the Markdown of them all. */
const BLOCKS = [
  {
    name: 'bench:js',
    prefix: 'js-',
    markdown: (/** @type {any[]} */ runs) => runs.map(jsReport).join('\n'),
  },
  {
    name: 'bench:alternatives',
    prefix: 'alternatives',
    markdown: (/** @type {any[]} */ runs) => runs.map(alternativesReport).join('\n'),
  },
  { name: 'bench:peers', prefix: 'peers-', markdown: (/** @type {any[]} */ runs) => peersReport(runs) },
];

/**
 * @param {string} readme its text
 * @param {string} folder of results
 * @param {import('prettier').Options} style
 * @returns {Promise<{ text: string, shown: string[] }>} `shown`: the files that are quoted. A block without any stays as it is
 * @throws {Error} where there are results and no block for them
 */
export async function withResults(readme, folder, style) {
  const files = existsSync(folder) ? readdirSync(folder).sort() : [];
  let text = readme;
  /** @type {string[]} */
  const shown = [];
  for (const { name, prefix, markdown } of BLOCKS) {
    const found = files.filter((file) => file.startsWith(prefix) && file.endsWith('.json'));
    if (found.length === 0) continue;
    const runs = found.map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')));
    text = replaceBlock(text, name, await format(markdown(runs), { ...style, parser: 'markdown' }));
    shown.push(...found);
  }
  return { text, shown };
}

/** @param {string[]} args */
async function main(args) {
  const { readme, results, check } = parse(args);
  if (!existsSync(readme)) throw new UserError(`there is no ${readme} to write into`);
  const before = readFileSync(readme, 'utf8');
  const style = (await resolveConfig(readme)) ?? {};
  const { text, shown } = await withResults(before, results, style).catch((error) => {
    throw new UserError(error.message);
  });
  if (shown.length === 0)
    throw new UserError(`there are no results js-*.json, alternatives*.json or peers-*.json in ${results}`);
  if (check && text !== before) throw new UserError('the README shows other runs: npm run bench:report');
  if (!check) writeFileSync(readme, text);
  process.stdout.write(`${shown.join(', ')}: ${text === before ? 'shown already' : 'written'}\n`);
}

/** @param {string[]} args */
function parse(args) {
  const values = readArgs(args, {
    readme: { type: 'string' },
    results: { type: 'string' },
    check: { type: 'boolean' },
  });
  return {
    readme: resolve(values.readme ?? join(ROOT, 'README.md')),
    results: resolve(values.results ?? join(ROOT, 'bench/results')),
    check: values.check ?? false,
  };
}

if (isMain(import.meta.url)) runMain(() => main(process.argv.slice(2)));
