// The scores as they come and go, and what is kept of each query.

import { make } from '../../parts/dom.js';
import { fixed } from '../../parts/format.js';
import { sizes } from './example.js';
import { digits } from './words.js';

const { queries, keys, rowTile, keyTile } = sizes;

/** Both tables, and what fills them. */
export function makeBoard() {
  /** @type {HTMLElement[]} */
  const cells = [];
  const head = make('tr', {}, make('th', { scope: 'col' }, make('span', { class: 'visually-hidden' }, 'query')));
  for (let j = 0; j < keys; j++) head.append(make('th', { scope: 'col' }, String(j)));
  const body = make('tbody');
  for (let i = 0; i < queries; i++) {
    const row = make('tr', {}, make('th', { scope: 'row' }, String(i)));
    for (let j = 0; j < keys; j++) {
      const edges = `${j % keyTile === 0 ? ' left' : ''}${i % rowTile === 0 ? ' top' : ''}`;
      const cell = make('td', { class: edges.trim() });
      cells.push(cell);
      row.append(cell);
    }
    body.append(row);
  }
  const caption = make('caption', {}, 'The matrix that is never stored: queries down, keys across');
  const board = make('table', { class: 'board' }, caption, make('thead', {}, head), body);
  const kept = makeKept();
  return {
    board,
    kept: kept.element,
    /**
     * @param {import('./steps.js').Step} step
     * @param {import('./steps.js').Step | undefined} before
     * @param {readonly import('./steps.js').Tile[]} tiles
     */
    show(step, before, tiles) {
      cells.forEach((cell, at) => showCell(cell, at, step, tiles));
      kept.show(step, before);
    },
  };
}

/**
 * @param {HTMLElement} cell
 * @param {number} at
 * @param {import('./steps.js').Step} step
 * @param {readonly import('./steps.js').Tile[]} tiles
 */
function showCell(cell, at, { kind, tile, cells }, tiles) {
  const i = Math.floor(at / keys);
  const j = at % keys;
  const own = Math.floor(i / rowTile) * (keys / keyTile) + Math.floor(j / keyTile);
  const isSkipped = tiles[own].isSkipped && own <= tile;
  const isHere = own === tile;
  const number = cells[at];
  const state = isSkipped
    ? 'skipped'
    : isHere
      ? Number.isNaN(number)
        ? 'masked'
        : kind
      : own < tile
        ? 'gone'
        : 'coming';
  cell.dataset.state = state;
  cell.textContent = isHere && !Number.isNaN(number) ? fixed(number, 1) : state === 'gone' ? '·' : '';
}

function makeKept() {
  const names = ['Maximum', 'Rescaled', 'Sum', 'Output'];
  const head = make(
    'tr',
    {},
    make('th', { scope: 'col' }, 'Query'),
    ...names.map((name) => make('th', { scope: 'col' }, name)),
  );
  const body = make('tbody');
  const rows = Array.from({ length: queries }, (_, i) => {
    const cells = names.map(() => make('td'));
    body.append(make('tr', {}, make('th', { scope: 'row' }, String(i)), ...cells));
    return cells;
  });
  const caption = make('caption', {}, 'What is kept: a few numbers for each query');
  return {
    element: make('table', { class: 'kept' }, caption, make('thead', {}, head), body),
    /**
     * @param {import('./steps.js').Step} step
     * @param {import('./steps.js').Step | undefined} before
     */
    show({ kind, rows: now }, before) {
      now.forEach((row, i) => {
        const texts = textsOf(row, kind === 'max' && before?.rows[i] !== row && row.factor !== 1);
        const old = before && textsOf(before.rows[i], false);
        texts.forEach((text, k) => {
          rows[i][k].textContent = text;
          rows[i][k].classList.toggle('changed', k !== 1 && old !== undefined && old[k] !== text);
          rows[i][k].classList.toggle('rescaled', k === 1 && text !== '');
        });
      });
    },
  };
}

/**
 * @param {import('./steps.js').Row} row
 * @param {boolean} isRescaled
 */
const textsOf = ({ max, factor, sum, out }, isRescaled) => [
  digits(max),
  isRescaled ? `× ${digits(factor)}` : '',
  digits(sum),
  out.map(digits).join(', '),
];
