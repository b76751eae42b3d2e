// What can be set in this section, and the part that is shown, in the address.

import { whole } from '../../parts/format.js';
import { headNames } from './example.js';

/** @satisfies {Record<string, import('../../parts/controls.js').Spec>} */
export const specs = {
  source: {
    kind: 'choice',
    label: 'Tensors',
    initial: 'example',
    options: [
      ['example', 'an example'],
      ['file', 'your own'],
    ],
  },
  tokens: {
    kind: 'range',
    label: 'Tokens',
    min: 8,
    max: 15,
    initial: 13,
    show: (power) => whole(2 ** power),
  },
  head: {
    kind: 'choice',
    label: 'Head',
    initial: '3',
    options: headNames.map((name, number) => [String(number), `${number}: ${name}`]),
  },
  kind: {
    kind: 'choice',
    label: 'A cell shows',
    initial: 'max',
    options: [
      ['max', 'its largest weight'],
      ['mean', 'the mean of its weights'],
    ],
  },
  align: {
    kind: 'choice',
    label: 'Causal, aligned',
    initial: 'lower-right',
    options: [
      ['lower-right', 'lower right'],
      ['upper-left', 'upper left'],
    ],
  },
  causal: { kind: 'switch', label: 'Causal', initial: true },
};

/** @param {{ tokens: number }} values */
export const tokensOf = ({ tokens }) => 2 ** tokens;

/** Names of the part in the address: first query, queries, first key, keys. */
const names = ['row', 'rows', 'column', 'columns'];

/**
 * @param {Readonly<Record<string, string>>} texts
 * @returns {import('../../parts/heat-map-view.js').View | null} null: everything
 */
export function readRegion(texts) {
  const numbers = names.map((name) => Number(texts[name] ?? NaN));
  if (!numbers.every((number) => Number.isInteger(number) && number >= 0)) return null;
  const [row, rows, column, columns] = numbers;
  return rows > 0 && columns > 0 ? { row, rows, column, columns } : null;
}

/**
 * @param {import('../../parts/heat-map-view.js').View | null} region
 * @returns {Record<string, string>}
 */
export const regionTexts = (region) =>
  region
    ? { row: `${region.row}`, rows: `${region.rows}`, column: `${region.column}`, columns: `${region.columns}` }
    : {};
