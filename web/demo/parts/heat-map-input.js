// A heat map under keys and pointers.

import { reveal } from './heat-map-view.js';

/** @typedef {import('./heat-map.js').HeatMap} HeatMap */

/**
 * @param {HeatMap} map
 * @param {HTMLElement} stage
 */
export function listenToKeys(map, stage) {
  /** @param {number} down @param {number} across */
  const move = (down, across) => map.focusCell(map.focus.row + down, map.focus.column + across, true);
  const page = () => Math.max(1, Math.floor(map.view.rows / 2));
  /** @type {Record<string, (control: boolean) => void>} */
  const actions = {
    ArrowLeft: () => move(0, -1),
    ArrowRight: () => move(0, 1),
    ArrowUp: () => move(-1, 0),
    ArrowDown: () => move(1, 0),
    PageUp: () => move(-page(), 0),
    PageDown: () => move(page(), 0),
    Home: (control) => map.focusCell(control ? 0 : map.focus.row, 0, true),
    End: (control) => map.focusCell(control ? Infinity : map.focus.row, Infinity, true),
    '+': () => map.zoom(2),
    '=': () => map.zoom(2),
    '-': () => map.zoom(1 / 2),
    0: () => map.zoom(0),
  };
  stage.addEventListener('keydown', (event) => {
    const { key, altKey, metaKey, ctrlKey } = event;
    if (altKey || metaKey) return;
    if (map.isPainted && (key === 'Enter' || key === ' ')) map.pick(true, true);
    else if (Object.hasOwn(actions, key)) actions[key](ctrlKey);
    else return;
    event.preventDefault();
  });
}

/**
 * Dragging picks cells while the map is painted, and moves it otherwise.
 * @param {HeatMap} map
 * @param {HTMLElement} stage
 * @param {(event: PointerEvent) => { row: number, column: number } | null} cellAt
 */
export function listenToPointer(map, stage, cellAt) {
  /** The cell at which dragging began. @type {{ row: number, column: number } | null} */
  let held = null;
  stage.addEventListener('pointerdown', (event) => {
    const cell = cellAt(event);
    if (!cell || event.button !== 0) return;
    held = cell;
    map.focusCell(cell.row, cell.column);
    map.pick(true);
  });
  stage.addEventListener('pointermove', (event) => {
    const cell = cellAt(event);
    if (!cell) return;
    if (held && !map.isPainted) drag(map, held, cell);
    else if (cell.row !== map.focus.row || cell.column !== map.focus.column) {
      map.focusCell(cell.row, cell.column);
      if (held) map.pick(false);
    }
  });
  for (const end of ['pointerup', 'pointercancel']) addEventListener(end, () => (held = null));
}

/**
 * Moves the view so that the cell that is held comes under the pointer.
 * @param {HeatMap} map
 * @param {{ row: number, column: number }} held
 * @param {{ row: number, column: number }} under the pointer now
 */
function drag(map, held, under) {
  const { row, column, rows, columns } = map.view;
  const to = { row: row + held.row - under.row, column: column + held.column - under.column };
  const moved = reveal(map.view, map.map, to);
  map.setView(reveal(moved, map.map, { row: to.row + rows - 1, column: to.column + columns - 1 }));
}
