/** Pieces of Markdown that the tables of results have in common. */

import { digits, NOISY } from './text.mjs';

/**
 * @param {string[]} head
 * @param {string[][]} rows
 * @returns {string[]} lines; every column but the first is right-aligned
 */
export function table(head, rows) {
  /** @param {string[]} cells */
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, i) => (i ? '---:' : '---'))), ...rows.map(line)];
}

/** @param {number} otherLoad */
export const noise = (otherLoad) => (otherLoad > NOISY ? ' (noisy)' : '');

/** @param {string} name of a case @returns {string} as code, without what all have in common */
export const code = (name) => `\`${name.replace('attention/', '')}\``;

/**
 * @template {{ variant: import('sdpa').Variant }} T
 * @param {readonly { timings: readonly T[] }[]} results
 * @returns {import('sdpa').Variant[]} the builds that have timings
 */
export const variantsOf = (results) => [
  ...new Set(results.flatMap(({ timings }) => timings.map(({ variant }) => variant))),
];

/** @param {number | undefined} value @param {string} [unit] @returns {string} */
export const known = (value, unit = '') => (value === undefined ? '–' : `${digits(value)}${unit}`);
