// The lines view: words of queries on one side, of keys on the other, and a line for each weight.

import { make, makeSvg } from '../../parts/dom.js';
import { shortNumber } from '../../parts/format.js';

/** Words of a side at most. */
const most = 24;

/** Height of a word in CSS pixels, as in style.css. */
const high = 32;

/** Weights below are not drawn. */
const least = 0.01;

/**
 * @param {(query: number) => void} onPick a word was pointed at
 */
export function makeLines(onPick) {
  const queries = make('ol', { class: 'words', 'aria-label': 'Queries' });
  const keys = make('ol', { class: 'words keys', 'aria-label': 'Keys with their weights' });
  const middle = make('div', { class: 'middle', 'aria-hidden': 'true' });
  const note = make('p', { class: 'note' });
  const element = make('div', {}, make('div', { class: 'lines' }, queries, middle, keys), note);
  return { element, show };

  /**
   * @param {import('./weights.js').Shown} shown
   * @param {readonly string[]} queryWords
   * @param {readonly string[]} keyWords
   * @param {number} query that is looked at
   */
  function show({ rows, columns, values, masked }, queryWords, keyWords, query) {
    const weight = (/** @type {number} */ i, /** @type {number} */ j) => values[i * columns + j];
    const rowsShown = around(query, rows);
    const columnsShown = heaviest(Array.from({ length: columns }, (_, j) => weight(query, j)));
    queries.replaceChildren(
      ...rowsShown.map((i) => {
        // For the pointer; the slider is there for the keyboard.
        const attributes = { class: 'word', 'aria-current': i === query && 'true', onclick: () => onPick(i) };
        return make('li', {}, make('span', attributes, queryWords[i]));
      }),
    );
    keys.replaceChildren(
      ...columnsShown.map((j) => {
        const isMasked = Boolean(masked?.[query * columns + j]);
        const text = isMasked ? 'masked' : shortNumber(weight(query, j));
        const item = make('li', { class: isMasked && 'masked' }, make('b', {}, keyWords[j]), make('output', {}, text));
        item.style.setProperty('--weight', String(weight(query, j)));
        return item;
      }),
    );
    const height = high * Math.max(rowsShown.length, columnsShown.length);
    const lines = rowsShown.flatMap((i, y) =>
      columnsShown.flatMap((j, x) => (weight(i, j) < least ? [] : [line(y, x, weight(i, j), i === query)])),
    );
    const attributes = { viewBox: `0 0 100 ${height}`, preserveAspectRatio: 'none', height };
    // The chosen ones last: they lie on top.
    lines.sort((a, b) => Number(a.classList.contains('chosen')) - Number(b.classList.contains('chosen')));
    middle.replaceChildren(makeSvg('svg', attributes, ...lines));
    const parts = [
      ...(rowsShown.length < rows ? [`${rowsShown.length} of ${rows} queries`] : []),
      ...(columnsShown.length < columns
        ? [`the ${columnsShown.length} keys of ${columns} with the largest weights`]
        : []),
    ];
    note.textContent = parts.length ? `Here: ${parts.join(', ')}. The matrix has all.` : '';
  }
}

/** @param {number} y @param {number} x @param {number} weight @param {boolean} isChosen */
function line(y, x, weight, isChosen) {
  return makeSvg('line', {
    x1: 0,
    y1: (y + 0.5) * high,
    x2: 100,
    y2: (x + 0.5) * high,
    class: isChosen ? 'chosen' : 'other',
    'vector-effect': 'non-scaling-stroke',
    'stroke-width': 0.5 + 7 * weight,
    'stroke-opacity': isChosen ? 0.25 + 0.75 * weight : 0.3 * weight,
  });
}

/** @param {number} query @param {number} rows @returns {number[]} */
function around(query, rows) {
  const count = Math.min(most, rows);
  const first = Math.min(rows - count, Math.max(0, query - (count >> 1)));
  return Array.from({ length: count }, (_, i) => first + i);
}

/** @param {readonly number[]} weights @returns {number[]} in their order */
function heaviest(weights) {
  const order = weights.map((_, j) => j);
  if (order.length <= most) return order;
  return order
    .sort((a, b) => weights[b] - weights[a])
    .slice(0, most)
    .sort((a, b) => a - b);
}
