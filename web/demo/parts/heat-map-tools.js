// Below a heat map: its scale, zooming, the table, and what can be saved.

import { scaleNames } from './colour-scale.js';
import { make } from './dom.js';
import { downloadCsv, downloadPng } from './download.js';

/**
 * @param {import('./heat-map.js').HeatMap} map
 * @param {object} parts
 * @param {string} parts.label of the map
 * @param {string} parts.file name of what is saved
 * @param {readonly import('./colour-scale.js').ScaleName[]} parts.scales that can be chosen
 * @param {HTMLSelectElement} parts.select empty, for their names
 * @param {HTMLCanvasElement} parts.canvas
 * @param {HTMLElement} parts.table hidden until it is asked for
 * @param {() => void} parts.fillTable
 * @returns {HTMLElement}
 */
export function mapTools(map, { label, file, scales, select, canvas, table, fillTable }) {
  const button = (/** @type {string} */ text, /** @type {string} */ name, /** @type {() => void} */ onclick) =>
    make('button', { type: 'button', class: 'quiet', 'aria-label': `${name}: ${label}`, onclick }, text);
  const group = (/** @type {HTMLElement[]} */ ...buttons) => make('span', {}, ...buttons);
  const opener = button('Table', 'Show as table', () => {
    table.hidden = !table.hidden;
    opener.setAttribute('aria-expanded', String(!table.hidden));
    if (!table.hidden) fillTable();
  });
  opener.setAttribute('aria-expanded', 'false');
  select.append(...scales.map((name) => new Option(scaleNames[name], name)));
  select.addEventListener('input', () => map.redraw());
  return make(
    'div',
    { class: 'map-tools', role: 'group', 'aria-label': `Tools of the map: ${label}` },
    make('label', { hidden: scales.length < 2 }, 'Scale ', select),
    group(
      button('−', 'Zoom out', () => map.zoom(1 / 2)),
      button('+', 'Zoom in', () => map.zoom(2)),
      button('All', 'Show all', () => map.zoom(0)),
    ),
    group(
      opener,
      button('PNG', 'Save as PNG', () => void downloadPng(canvas, file)),
      button('CSV', 'Save the cells in view as CSV', () => downloadCsv(map.csv(), file)),
    ),
  );
}
