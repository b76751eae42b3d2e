// Pairs of columns as hands that turn: query and key, each pair on a dial of its own.

import { make, makeSvg } from '../../parts/dom.js';
import { dataTable } from '../../parts/data-table.js';
import { shortNumber } from '../../parts/format.js';
import { columnsOf, smallDim } from './rotation.js';

const radius = 46;

/**
 * @param {Float32Array} row
 * @param {readonly [number, number]} columns
 */
const angleOf = (row, [x, y]) => (Math.atan2(row[y], row[x]) * 180) / Math.PI;

/** From -180° on. @param {number} degrees */
const within = (degrees) => ((((degrees + 180) % 360) + 360) % 360) - 180;

/**
 * @returns {{ element: HTMLElement, show: (query: Float32Array, key: Float32Array, pairing: import('./rotation.js').Pairing) => void }}
 */
export function makeDials() {
  const list = make('div', { class: 'dials', role: 'img' });
  const table = make('div');
  const details = make('details', {}, make('summary', {}, 'The angles'), table);
  const element = make('div', {}, list, details);
  return { element, show };

  /** @param {Float32Array} query @param {Float32Array} key @param {import('./rotation.js').Pairing} pairing */
  function show(query, key, pairing) {
    const pairs = Array.from({ length: smallDim / 2 }, (_, pair) => columnsOf(pairing, pair, smallDim));
    const lengths = pairs.map((columns) => [query, key].map((row) => Math.hypot(...columns.map((c) => row[c]))));
    const largest = Math.max(...lengths.flat());
    list.replaceChildren(
      ...pairs.map((columns, pair) =>
        make(
          'figure',
          {},
          dial(
            [query, key].map((row) => /** @type {const} */ ([row[columns[0]] / largest, row[columns[1]] / largest])),
          ),
          make('figcaption', {}, make('b', {}, `pair ${pair}`), make('br'), `columns ${columns.join(' and ')}`),
        ),
      ),
    );
    const angles = pairs.map((columns) => [angleOf(query, columns), angleOf(key, columns)]);
    const between = angles.map(([q, k]) => within(q - k));
    const spoken = between.map((angle, pair) => `pair ${pair} ${Math.round(angle)} degrees`).join(', ');
    list.setAttribute('aria-label', `Angle between query and key: ${spoken}`);
    table.replaceChildren(
      dataTable({
        caption: 'Angles in degrees, and what each pair adds to query · key',
        corner: 'pair',
        columns: ['query', 'key', 'between', 'adds'],
        rows: pairs.map((_, pair) => String(pair)),
        cell: (pair, j) => {
          if (j < 2) return angles[pair][j].toFixed(1);
          if (j === 2) return between[pair].toFixed(1);
          const [x, y] = pairs[pair];
          return shortNumber(query[x] * key[x] + query[y] * key[y]);
        },
      }),
    );
  }
}

/** @param {(readonly [x: number, y: number])[]} hands the query's and the key's, 1 = the whole radius */
function dial([query, key]) {
  const reach = radius + 8;
  return makeSvg(
    'svg',
    { viewBox: `${-reach} ${-reach} ${2 * reach} ${2 * reach}`, 'aria-hidden': 'true' },
    makeSvg('circle', { r: radius, class: 'face' }),
    makeSvg('path', { class: 'axis', d: `M${-radius} 0H${radius}M0 ${-radius}V${radius}` }),
    hand(key, 'key'),
    hand(query, 'query'),
  );
}

/**
 * The query's ends in a dot and the key's in a square: they differ without colour too.
 * @param {readonly [x: number, y: number]} end
 * @param {'query' | 'key'} name
 */
function hand([x, y], name) {
  const [across, down] = [radius * x, -radius * y];
  const tip =
    name === 'query'
      ? makeSvg('circle', { cx: across, cy: down, r: 4.5 })
      : makeSvg('rect', { x: across - 4.5, y: down - 4.5, width: 9, height: 9 });
  return makeSvg('g', { class: name }, makeSvg('line', { x2: across, y2: down }), tip);
}
