// Numbers as a table, for screen readers and for those who want them exactly.

import { make } from './dom.js';

/** Most rows and columns of one table. */
export const most = 48;

/**
 * @param {object} content
 * @param {string} content.caption
 * @param {string} content.corner what rows and columns are
 * @param {readonly string[]} content.columns
 * @param {readonly string[]} content.rows
 * @param {(row: number, column: number) => string} content.cell
 * @returns {HTMLElement} scrolls by itself
 */
export function dataTable({ caption, corner, columns, rows, cell }) {
  const head = make('tr', {}, make('th', { scope: 'col' }, corner));
  head.append(...columns.map((text) => make('th', { scope: 'col' }, text)));
  const body = make('tbody');
  rows.forEach((text, i) => {
    const line = make('tr', {}, make('th', { scope: 'row' }, text));
    line.append(...columns.map((_, j) => make('td', {}, cell(i, j))));
    body.append(line);
  });
  const table = make('table', {}, make('caption', {}, caption), make('thead', {}, head), body);
  return make('div', { class: 'data-table', tabindex: 0, role: 'group', 'aria-label': caption }, table);
}
